package workspace

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/relpath"
)

// maxConfig is the most bytes of a config.json.
const maxConfig = 1 << 20

// Config is config.json with its defaults (exacta §4.18).
type Config struct {
	Provider, Model, Endpoint       string // of ai
	MaxInputTokens, MaxOutputTokens int

	MaxSteps, MaxFiles, MaxDiffLines int // of limits
	BuildTimeout, AITimeout          int // seconds

	Deny, Allow []string // of file_rules

	Tool, Configuration, WorkingDirectory string // of build; empty if not given, but for Tool

	// Fingerprint is the SHA-256 of the file's canonical JSON, of {} if there is none.
	Fingerprint string
	// Text is the canonical JSON.
	Text []byte
}

// LoadConfig reads .exacta/config.json now and checks it (exacta §4.18): CFG-001, CFG-002,
// CFG-003, SEC-003 in this order, SEC-002 for a link, and before them FS-001 of inPlace. No value
// of the file is in a fault.
func (p *Project) LoadConfig() (*Config, *errcode.Fault) {
	if f := p.inPlace(); f != nil {
		return nil, f
	}
	rel := storeName
	var text []byte
	d, err := p.existingStore()
	if err == nil {
		rel += "/config.json"
		text, _, err = d.read("config.json", maxConfig)
		d.close()
	}
	switch {
	case err == unix.ENOENT:
		return p.parseConfig([]byte(`{"schema_version":1}`), []byte("{}"))
	case err == isTooLarge:
		return nil, errcode.New("CFG-001", "too_large")
	case err != nil:
		return nil, faultOf(err, rel)
	}
	text = jsonx.TrimBOM(text)
	var strict jsonx.Strict
	if problem := strict.Check(text, maxDepth); !problem.OK() {
		return nil, errcode.New("CFG-001", problem.String())
	}
	if jsonx.ValueOf(text).Kind != jsonx.ObjectStart {
		return nil, errcode.New("CFG-001", "not an object")
	}
	return p.parseConfig(text, Canonical(nil, text))
}

func (p *Project) parseConfig(text, canonical []byte) (*Config, *errcode.Fault) {
	r := reader{}
	top := r.object("", text)
	if top.get("schema_version").Kind == jsonx.End {
		return nil, errcode.New("CFG-002", "missing: schema_version", "schema_version")
	}
	top.integer("schema_version", 1, 1, 1)
	ai := top.child("ai")
	c := &Config{
		Provider:        ai.choice("provider", "builtin", "subprocess", "openai_compatible"),
		Model:           ai.text("model"),
		Endpoint:        ai.text("endpoint"),
		MaxInputTokens:  ai.integer("max_input_tokens", 1, 100_000, 100_000),
		MaxOutputTokens: ai.integer("max_output_tokens", 1, 16_000, 16_000),
		Text:            canonical,
		Fingerprint:     Sum(canonical),
	}
	limits := top.child("limits")
	c.MaxSteps = limits.integer("max_steps_per_plan", 1, 10, 10)
	c.MaxFiles = limits.integer("max_total_files_per_plan", 1, 15, 15)
	c.MaxDiffLines = limits.integer("max_diff_lines_per_step", 1, 500, 500)
	c.BuildTimeout = limits.integer("build_timeout_seconds", 1, 3600, 300)
	c.AITimeout = limits.integer("ai_timeout_seconds", 1, 3600, 120)
	rules := top.child("file_rules")
	c.Deny = rules.texts("deny")
	c.Allow = rules.texts("allow")
	build := top.child("build")
	c.Tool = build.choice("tool", "auto", "go", "npm", "cargo", "make", "dotnet")
	if build.get("configuration").Kind != jsonx.End {
		c.Configuration = build.choice("configuration", "Debug", "Release")
	}
	c.WorkingDirectory = build.text("working_directory")
	if dir := strings.TrimSuffix(c.WorkingDirectory, "/"); dir != "" && dir != "." && checkPath(dir) != nil {
		r.bad("build.working_directory")
	}
	if r.setting != "" {
		return nil, errcode.New("CFG-003", "invalid: "+r.setting, r.setting)
	}
	if p.opts.Secret != nil && (p.opts.Secret(text) || p.opts.Secret(canonical)) {
		return nil, errcode.New("SEC-003", storeName+"/config.json")
	}
	return c, nil
}

// reader reads settings and keeps the name of the first bad one.
type reader struct{ setting string }

func (r *reader) bad(setting string) {
	r.setting = cmp.Or(r.setting, setting)
}

// section is an object of the document; prefix is its name with a dot.
type section struct {
	r      *reader
	prefix string
	object []byte
}

func (r *reader) object(prefix string, text []byte) section { return section{r, prefix, text} }

func (s section) get(name string) jsonx.Value {
	var out [1]jsonx.Value
	if s.object != nil {
		jsonx.Pick(s.object, []string{name}, out[:])
	}
	return out[0]
}

func (s section) child(name string) section {
	v := s.get(name)
	switch v.Kind {
	case jsonx.ObjectStart:
		return section{s.r, s.prefix + name + ".", v.Raw}
	case jsonx.End:
	default:
		s.r.bad(s.prefix + name)
	}
	return section{s.r, s.prefix + name + ".", nil}
}

func (s section) integer(name string, least, most, byDefault int) int {
	v := s.get(name)
	if v.Kind == jsonx.End {
		return byDefault
	}
	n, ok := jsonx.ParseInt(v.Raw)
	if v.Kind != jsonx.Number || !ok || n < int64(least) || n > int64(most) {
		s.r.bad(s.prefix + name)
		return byDefault
	}
	return int(n)
}

func (s section) text(name string) string {
	v := s.get(name)
	text, ok := v.Text()
	if !ok && v.Kind != jsonx.End || slices.Contains(text, 0) {
		s.r.bad(s.prefix + name)
	}
	return string(text)
}

// choice returns the first option if there is no such setting.
func (s section) choice(name string, options ...string) string {
	if s.get(name).Kind == jsonx.End {
		return options[0]
	}
	text := s.text(name)
	if !slices.Contains(options, text) {
		s.r.bad(s.prefix + name)
	}
	return text
}

func (s section) texts(name string) []string {
	v := s.get(name)
	list, ok := v.Texts()
	if v.Kind != jsonx.End && !ok || slices.ContainsFunc(list, func(t string) bool {
		return t == "" || len(t) > relpath.MaxBytes || strings.ContainsRune(t, 0)
	}) {
		s.r.bad(s.prefix + name)
	}
	return list
}

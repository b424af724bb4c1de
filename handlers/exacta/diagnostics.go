package exacta

import (
	"archive/zip"
	"bytes"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/workspace"
)

// maxDebug bounds debug_logs.jsonl, in bytes (exacta §4.15).
const maxDebug = 1 << 20

// file is one entry of a bundle.
type file struct {
	name string
	data []byte
}

// export writes a bundle of diagnostics (exacta §4.15).
func (j *job) export() *errcode.Fault {
	s, args := j.p.srv, &j.w.Request.Args
	home, _ := os.UserHomeDir()
	name := "exacta-diagnostics-" + j.p.id.String()[:8] + "-" + s.cfg.Clock.Now().Format("20060102T150405Z") + ".zip"
	ws := j.p.disk.ws
	at, err := ws.Place(args.Path, &workspace.Outputs{Name: name, Home: home, Temp: os.TempDir(), Dirs: s.cfg.DiagnosticsDirs})
	if err != nil {
		return err
	}
	b := &bundle{cfg: &s.cfg, id: j.p.id.String(), snap: j.w.Snapshot, hide: hider(j.p.root, home)}
	list, err := b.files(ws, args)
	if err != nil {
		return err
	}
	for _, f := range list {
		if err := f.check(); err != nil {
			return err
		}
	}
	data, failed := pack(list)
	if failed != nil {
		return errcode.New("RES-002", "the bundle cannot be packed")
	}
	if err := j.act(); err != nil {
		return err
	}
	if err := ws.WriteBundle(at, data, j.stopped); err != nil {
		return err
	}
	j.w.Bundle = at.Path
	return nil
}

// bundle makes the files of a bundle.
type bundle struct {
	cfg  *Config
	id   string
	snap *projects.Snapshot
	hide func(text string) string
}

// files returns the entries in their order.
func (b *bundle) files(ws *workspace.Project, args *projects.Args) ([]file, *errcode.Fault) {
	config, err := ws.LoadConfig()
	if err != nil {
		config = ws.Config() // that of the open; a damaged one is a reason for diagnostics
	}
	logs, _ := b.lines(b.snap.Logs)
	list := []file{
		{"system_info.json", b.system()},
		{"config_sanitized.json", b.config(config)},
		{"recent_logs.jsonl", logs},
		{"state_snapshot.json", b.state()},
		{"error_details.json", b.raised()},
	}
	if args.Debug {
		debug, ends := b.lines(b.snap.Debug)
		list = append(list, file{"debug_logs.jsonl", newest(debug, ends, maxDebug)})
	}
	if args.Tree {
		paths, err := ws.Tree()
		if err != nil {
			return nil, err
		}
		text := []byte(shownRoot + "/\n")
		for _, path := range paths {
			text = append(append(text, b.hide(path)...), '\n')
		}
		list = append(list, file{"project_structure.txt", text})
	}
	return list, nil
}

// begin begins a document.
func (b *bundle) begin() jsonx.Builder {
	return jsonx.Build(nil).Text("schema_version", "1.0").Text("generated_at", b.cfg.Clock.Text())
}

func end(b jsonx.Builder) []byte { return append(b.End(), '\n') }

func object() jsonx.Builder { return jsonx.Build(nil) }

func (b *bundle) system() []byte {
	return end(b.begin().
		Raw("app", object().Text("name", "trunkline").Text("version", b.hide(b.cfg.Version)).Text("ipc_version", "1.0").End()).
		Raw("os", object().Text("family", runtime.GOOS).Text("arch", runtime.GOARCH).End()).
		Raw("hardware", object().Int("logical_cores", int64(runtime.NumCPU())).End()).
		Raw("runtime", object().Text("toolchain", runtime.Version()).End()))
}

// shownRoot stands for the root of a project.
const shownRoot = "{PROJECT_ROOT}"

func (b *bundle) config(c *workspace.Config) []byte {
	hidden := func(list []string) (out []string) {
		for _, text := range list {
			out = append(out, b.hide(text))
		}
		return out
	}
	return end(b.begin().
		Raw("project", object().Text("project_id", b.id).Text("project_root", shownRoot).End()).
		Raw("ai", object().Text("provider", c.Provider).Text("model", b.hide(c.Model)).Text("api_key", secret.Redacted).End()).
		Raw("limits", object().Int("max_steps_per_plan", int64(c.MaxSteps)).Int("max_total_files_per_plan", int64(c.MaxFiles)).
			Int("max_diff_lines_per_step", int64(c.MaxDiffLines)).Int("build_timeout_seconds", int64(c.BuildTimeout)).Int("ai_timeout_seconds", int64(c.AITimeout)).End()).
		Raw("build", object().Text("tool", c.Tool).Text("configuration", configurationOf(c)).Text("working_directory", b.hide(c.WorkingDirectory)).End()).
		Raw("safety", object().Texts("deny", hidden(c.Deny)).Texts("allow", hidden(c.Allow)).End()))
}

func (b *bundle) state() []byte {
	s := b.snap
	orchestrator := object().Text("state", s.State.String())
	if s.Changed.IsZero() {
		orchestrator = orchestrator.Raw("last_transition_at", []byte("null"))
	} else {
		orchestrator = orchestrator.Text("last_transition_at", codec.TimeText(s.Changed))
	}
	requests := []byte{'['}
	for i := range s.Requests {
		a := &s.Requests[i]
		r := object().Bytes("request_id", a.RequestID.Bytes()).Text("command", a.Command.String()).Bool("ok", a.Code == "")
		if a.Code == "" {
			r = r.Raw("error_code", []byte("null"))
		} else {
			r = r.Text("error_code", a.Code)
		}
		requests = append(jsonx.AppendComma(requests), r.End()...)
	}
	return end(b.begin().
		Raw("active_project", object().Text("project_id", b.id).Text("project_root", shownRoot).Text("status", "open").End()).
		Raw("orchestrator", orchestrator.End()).
		Raw("recent_requests", append(requests, ']')))
}

func (b *bundle) raised() []byte {
	f := b.snap.Raised
	if f == nil {
		return end(b.begin().Raw("primary_error", []byte("null")))
	}
	row := f.Row()
	return end(b.begin().Raw("primary_error", object().Text("code", row.Code).Text("category", row.Category).Text("severity", row.Severity).
		Text("message", b.hide(f.Message())).Text("recovery_path", row.Recovery).Bool("retryable", row.Retryable).End()))
}

// lines returns a log, and where each line ends.
func (b *bundle) lines(records []projects.Record) (out []byte, ends []int) {
	for i := range records {
		r := &records[i]
		line := jsonx.Build(out).Text("schema_version", "1.0").Text("ts", codec.TimeText(r.At)).Text("level", r.Level).Text("component", r.Component).Text("event", r.Event)
		if r.RequestID.Bytes() == nil {
			line = line.Raw("request_id", []byte("null"))
		} else {
			line = line.Bytes("request_id", r.RequestID.Bytes())
		}
		out = end(line.Text("message", b.hide(r.Message())))
		ends = append(ends, len(out))
	}
	return out, ends
}

// newest returns the last lines of a log that have at most that many bytes.
func newest(log []byte, ends []int, most int) []byte {
	from := 0
	for _, e := range ends {
		if len(log)-from <= most {
			break
		}
		from = e
	}
	return log[from:]
}

var email = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+`) })

// hider returns what removes from a text what no bundle shows (exacta §6.6).
func hider(root, home string) func(string) string {
	places := []string{root, shownRoot}
	if len(home) > 1 {
		places = append(places, home, "{HOME}")
	}
	replacer := strings.NewReplacer(places...)
	return func(text string) string {
		return redact(email().ReplaceAllString(replacer.Replace(text), secret.Redacted))
	}
}

// check reads an entry again: what is no JSON, or has a credential, is not written.
func (f *file) check() *errcode.Fault {
	texts := slices.Collect(strings.Lines(string(f.data)))
	if !strings.HasSuffix(f.name, ".txt") {
		documents := texts
		if strings.HasSuffix(f.name, ".json") {
			documents = []string{string(f.data)}
		}
		texts = nil
		for _, doc := range documents {
			if !jsonx.Check([]byte(doc), jsonx.MaxDepth).OK() {
				return errcode.New("ST-002", "not readable: "+f.name)
			}
			texts = appendTexts(texts, jsonx.ValueOf([]byte(doc)))
		}
	}
	if secret.Find(f.data) || slices.ContainsFunc(texts, func(text string) bool { return secret.Leaks([]byte(text)) }) {
		return errcode.New("SEC-003", "in "+f.name)
	}
	return nil
}

// appendTexts appends all strings of a value, and the names of members.
func appendTexts(dst []string, v jsonx.Value) []string {
	switch v.Kind {
	case jsonx.String:
		text, _ := v.Text()
		return append(dst, string(text))
	case jsonx.ObjectStart:
		members := jsonx.OpenObject(v.Raw)
		for key, v, ok := members.Next(); ok; key, v, ok = members.Next() {
			dst = appendTexts(append(dst, string(key)), v)
		}
	case jsonx.ArrayStart:
		list := jsonx.OpenArray(v.Raw)
		for v, ok := list.Next(); ok; v, ok = list.Next() {
			dst = appendTexts(dst, v)
		}
	}
	return dst
}

// pack makes the archive. Equal entries make equal bytes.
func pack(list []file) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range list {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

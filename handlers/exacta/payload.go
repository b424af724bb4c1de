package exacta

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"path/filepath"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// Limits of payloads (exacta §6.1).
const (
	maxPath  = 4096
	maxInput = 32_768
	maxDiffs = 50
)

// payload reads the fields of a payload (exacta §4) and notes the first wrong one.
type payload struct {
	object []byte
	usual  *codec.Message // has the fields, if they are those of a usual payload
	names  [1]string
	values [1]jsonx.Value
	field  string
	why    string
}

func (p *payload) get(name string) jsonx.Value {
	p.names[0] = name
	jsonx.Pick(p.object, p.names[:], p.values[:])
	return p.values[0]
}

func (p *payload) bad(field, why string) {
	if p.field == "" {
		p.field, p.why = field, why
	}
}

// id reads a field with an identifier. It does not allocate for one without escapes.
func (p *payload) id(name string) codec.ID {
	var text []byte
	if p.usual != nil {
		text = p.usual.Field(name)
	} else {
		text, _ = p.get(name).Text()
	}
	id, ok := codec.ParseID(text)
	if !ok {
		p.bad(name, ": a uuid is expected")
	}
	return id
}

// text reads a string of least to most bytes.
func (p *payload) text(name string, least, most int, why string) string {
	text, ok := p.get(name).Text()
	if !ok || len(text) < least || len(text) > most {
		p.bad(name, why)
		return ""
	}
	return string(text)
}

// args reads the fields that a command has beside project_id.
func (p *payload) args(c codec.Command, a *projects.Args) {
	switch c {
	case codec.OpenProject:
		a.Path = p.text("path", 1, maxPath, ": a path of 1 to 4096 bytes is expected")
		if strings.IndexByte(a.Path, 0) >= 0 || !filepath.IsAbs(a.Path) {
			p.bad("path", ": an absolute path is expected")
		}
	case codec.ExtractIntent:
		a.UserInput = p.text("user_input", 0, maxInput, ": a string of at most 32768 bytes is expected")
	case codec.GeneratePlan:
		a.Handle = p.id("intent_id")
	case codec.ValidatePlan, codec.ApprovePlan, codec.RejectPlan, codec.ExecutePlan:
		a.Handle = p.id("plan_id")
	case codec.Pause, codec.Resume, codec.Cancel:
		a.Handle = p.id("execution_id")
	case codec.ApplyDiffSet:
		list, ok := p.get("diffs").Texts()
		if !ok || len(list) < 1 || len(list) > maxDiffs {
			p.bad("diffs", ": an array of 1 to 50 strings is expected")
		}
		for _, text := range list {
			a.Diffs = append(a.Diffs, strings.Clone(text))
		}
	case codec.Build:
		if p.get("configuration").Kind != jsonx.End {
			a.Configuration = p.text("configuration", 0, maxPath, ": Debug or Release is expected")
			if a.Configuration != debugBuild && a.Configuration != releaseBuild {
				p.bad("configuration", ": Debug or Release is expected")
			}
		}
		a.Seconds = p.seconds()
	case codec.Preview:
		a.Seconds = p.seconds()
	case codec.ExportDiagnostics:
		a.Path = p.text("output_path", 1, maxPath, ": a path of 1 to 4096 bytes is expected")
		if strings.IndexByte(a.Path, 0) >= 0 {
			p.bad("output_path", ": a path without NUL is expected")
		}
		a.Debug = p.flag("include_debug")
		a.Tree = p.flag("include_project_tree")
	}
}

// flag reads a boolean, false if there is none.
func (p *payload) flag(name string) bool {
	v := p.get(name)
	if v.Kind != jsonx.End && v.Kind != jsonx.True && v.Kind != jsonx.False {
		p.bad(name, ": true or false is expected")
	}
	return v.Kind == jsonx.True
}

// seconds reads timeout_seconds, 0 if there is none.
func (p *payload) seconds() int {
	v := p.get("timeout_seconds")
	if v.Kind == jsonx.End {
		return 0
	}
	n, ok := jsonx.ParseInt(v.Raw)
	if v.Kind != jsonx.Number || !ok || n < 1 || n > 3600 {
		p.bad("timeout_seconds", ": an integer from 1 to 3600 is expected")
	}
	return int(n)
}

// limit returns the time limit of a request that gives none, in milliseconds (exacta §4.0.3). build
// is that of the builds of its project, in seconds.
func limit(c codec.Command, a *projects.Args, build int) int64 {
	switch c {
	case codec.CloseProject:
		return 10_000
	case codec.ExtractIntent, codec.Cancel, codec.ExportDiagnostics:
		return 120_000
	case codec.GeneratePlan:
		return 300_000
	case codec.Pause:
		return 600_000
	case codec.ApplyDiffSet, codec.Preview:
		return 60_000
	case codec.Build:
		return int64(cmp.Or(a.Seconds, build)+30) * 1000
	}
	return 30_000
}

// sums fingerprints payloads (exacta §4.0.4). It is scratch memory for one goroutine.
type sums struct {
	canonical jsonx.Canonical
	hash      hashed
	text      []byte
}

// envelope are the members of a payload that do not count.
var envelope = [...]string{"ipc_version", "request_id", "sent_at", "timeout_ms"}

// of returns the fingerprint of the command of a request and its payload: equal for equal JSON.
func (s *sums) of(m *codec.Message, seeds *projects.Seeds) projects.Sum {
	if m.Usual {
		return seeds.Sum(s.usual(m))
	}
	s.hash.start(seeds, byte(m.Command))
	s.canonical.Start(&s.hash)
	s.canonical.Value(s.counted(m.Payload))
	s.canonical.End()
	return s.hash.sum()
}

// usual returns what the general way hashes of a usual payload.
func (s *sums) usual(m *codec.Message) []byte {
	b := append(s.text[:0], byte(m.Command), '{')
	for i, text := range m.Fields {
		if text == nil {
			continue
		}
		if len(b) > 2 {
			b = append(b, ',')
		}
		b = append(append(b, '"'), codec.FieldNames[i]...)
		b = append(append(b, `":"`...), text...)
		b = append(b, '"')
	}
	s.text = append(b, '}')
	return s.text
}

// counted returns the object without the members that do not count.
func (s *sums) counted(object []byte) []byte {
	found := false
	for _, name := range envelope {
		found = found || bytes.Contains(object, []byte(name)) || bytes.Contains(object, []byte(`\u`))
	}
	if !found {
		return object
	}
	s.text = jsonx.AppendWithout(s.text[:0], object, envelope[:]...)
	return s.text
}

// hashed makes a Sum of bytes that come in pieces, without an allocation.
type hashed [len(projects.Sum{})]maphash.Hash

// start begins with one byte.
func (h *hashed) start(seeds *projects.Seeds, b byte) {
	for i := range h {
		h[i].SetSeed(seeds[i])
		_ = h[i].WriteByte(b) // it does not fail
	}
}

// Write implements io.Writer. It does not fail.
func (h *hashed) Write(p []byte) (int, error) {
	for i := range h {
		_, _ = h[i].Write(p)
	}
	return len(p), nil
}

func (h *hashed) sum() (out projects.Sum) {
	for i := range h {
		out[i] = h[i].Sum64()
	}
	return out
}

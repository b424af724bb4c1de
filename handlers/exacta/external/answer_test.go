package external

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
)

// with returns an object with one member replaced, or left out with the value "".
func with(object, name, value string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		panic(err)
	}
	if value == "" {
		delete(m, name)
	} else {
		m[name] = json.RawMessage(value)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const anIntent = `{"type":"FixBug","confidence":0.9,"target":{"files":["a.txt","src/b.go"],"symbols":["B"],"description":"d"},` +
	`"constraints":[{"type":"MUST_NOT","description":"touch src","scope":"src"}],"more":{"ignored":true}}`

func TestDecodeIntent(t *testing.T) {
	in, f := decodeIntent([]byte(anIntent))
	want := planner.Intent{Type: "FixBug", Confidence: 0.9, Files: []string{"a.txt", "src/b.go"}, Symbols: []string{"B"}, Description: "d",
		Constraints: []plan.Constraint{{Type: "MUST_NOT", Description: "touch src", Scope: "src"}}}
	if f != nil || !reflect.DeepEqual(in, want) {
		t.Fatalf("%+v %v", in, f)
	}
	f1 := func(want, name, value string) {
		t.Helper()
		in, f := decodeIntent([]byte(with(anIntent, name, value)))
		if got := code(f); got != "AI-005 answer: "+want && got != want {
			t.Errorf("%s = %s: %s, want %s", name, value, got, want)
		}
		if f != nil && !reflect.DeepEqual(in, planner.Intent{}) {
			t.Errorf("%s = %s: something of a bad answer is used", name, value)
		}
	}
	for _, kind := range []string{"CreateProject", "AddFeature", "FixBug", "BuildPackage", "UnknownIntent"} {
		f1("ok", "type", `"`+kind+`"`)
	}
	f1("type: missing", "type", "")
	f1("type: no string", "type", "1")
	f1("type: not one of the intents", "type", `"fixBug"`)
	f1("confidence: no number", "confidence", "")
	f1("confidence: no number", "confidence", `"0.9"`)
	f1("confidence: no number", "confidence", "true")
	for _, bad := range []string{"-0.01", "1.01", "2", "-1", "1e300", "18446744073709551615"} {
		f1("confidence: not from 0 to 1", "confidence", bad)
	}
	f1("target: no object", "target", "")
	f1("target: no object", "target", "[]")
	target := `{"files":[],"symbols":[],"description":"d"}`
	f1("ok", "target", target)
	f1("files: missing", "target", with(target, "files", ""))
	f1("files: no array", "target", with(target, "files", `"a"`))
	f1("files: no string", "target", with(target, "files", `[1]`))
	f1("symbols: missing", "target", with(target, "symbols", ""))
	f1("symbols: no string", "target", with(target, "symbols", "[null]"))
	f1("description: missing", "target", with(target, "description", ""))
	for path, token := range map[string]string{"../x": "traversal", "a/../b": "traversal", "/etc/passwd": "absolute", `a\\b`: "absolute", "C:/x": "absolute", "": "path_form",
		"a//b": "path_form", "./a": "path_form", `a\u0000b`: "path_form", strings.Repeat("x", 1025): "path_form"} {
		f1("files: "+token, "target", with(target, "files", `["`+path+`"]`))
	}
	f1("constraints: missing", "constraints", "")
	f1("constraints: no object", "constraints", "[1]")
	f1("constraints.type: not one of the types", "constraints", `[{"type":"MAY","description":"d","scope":"s"}]`)
	f1("constraints.scope: missing", "constraints", `[{"type":"MUST","description":"d"}]`)
	f1("constraints.description: missing", "constraints", `[{"type":"MUST","scope":"d"}]`)
}

// TestConfidence: what is beyond hundredths is cut off.
func TestConfidence(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "1": 1, "-0": 0, "1.0": 1, "0.29": 0.29, "0.57": 0.57, "0.599": 0.59, "0.6": 0.6, "0.999": 0.99, "6e-1": 0.6, "1e-9": 0} {
		in, f := decodeIntent([]byte(with(anIntent, "confidence", text)))
		if f != nil || in.Confidence != want {
			t.Errorf("%s: %v %v, want %v", text, in.Confidence, f, want)
		}
	}
}

// TestAnswerLimits has each limit and one more.
func TestAnswerLimits(t *testing.T) {
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	f := func(want, answer string) {
		t.Helper()
		_, f := decodeIntent([]byte(answer))
		if got := code(f); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	target := `{"files":[],"symbols":[],"description":"d"}`
	files := func(n int) string { return with(anIntent, "target", with(target, "files", list(n, `"a"`))) }
	f("ok", files(maxListed))
	f("AI-005 answer: files: more than 1000", files(maxListed+1))
	symbols := func(n int) string { return with(anIntent, "target", with(target, "symbols", list(n, `"a"`))) }
	f("ok", symbols(maxListed))
	f("AI-005 answer: symbols: more than 1000", symbols(maxListed+1))
	constraints := func(n int) string {
		return with(anIntent, "constraints", list(n, `{"type":"PREFER","description":"d","scope":"s"}`))
	}
	f("ok", constraints(maxConstraints))
	f("AI-005 answer: constraints: more than 100", constraints(maxConstraints+1))
	description := func(n int) string {
		return with(anIntent, "target", with(target, "description", `"`+strings.Repeat("d", n)+`"`))
	}
	f("ok", description(maxText))
	f("AI-005 answer: description: more than 4096 bytes", description(maxText+1))
	const texts = len("FixBugd") + len("MUST_NOTtouch srcsrc")
	whole := func(n int) string { // n bytes of texts
		n -= texts
		long := list(n/maxText, `"`+strings.Repeat("s", maxText)+`"`)
		long = strings.TrimSuffix(long, "]") + `,"` + strings.Repeat("s", n%maxText) + `"]`
		return with(anIntent, "target", with(target, "symbols", long))
	}
	f("ok", whole(maxIntent))
	f("AI-004 answer: its texts are too long", whole(maxIntent+1))
	steps := func(n int) error {
		_, f := decodeSteps([]byte(`{"steps":` + list(n, `{"type":"build","target":".","description":"d","dependencies":[]}`) + `}`))
		if f != nil {
			return f
		}
		return nil
	}
	if err := steps(maxSteps); err != nil {
		t.Error(err)
	}
	if err := steps(maxSteps + 1); err == nil {
		t.Error("too many steps are taken")
	}
}

const aDiff = `"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n"`

func TestDecodeSteps(t *testing.T) {
	step := `{"type":"file_modify","target":"a.txt","description":"d","dependencies":[],"diff":` + aDiff + `}`
	f := func(want, step string) {
		t.Helper()
		steps, f := decodeSteps([]byte(`{"steps":[` + step + `]}`))
		if got := code(f); got != "AI-005 answer: "+want && got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
		if f != nil && steps != nil {
			t.Error("something of a bad answer is used")
		}
	}
	f("ok", step)
	for _, name := range []string{"type", "target", "description", "dependencies"} {
		f("steps."+name+": missing", with(step, name, ""))
	}
	f("steps: no object", "1")
	f("steps.type: not one of the types", with(step, "type", `"file_rename"`))
	for path, token := range map[string]string{"../x": "traversal", "/x": "absolute", "": "path_form", ".": "path_form"} {
		f("steps.target: "+token, with(step, "target", `"`+path+`"`))
	}
	for _, list := range []string{"[0]", "[-1]", "[1.5]", `["1"]`, "[true]", "[1e9]", "[9999999999]", "[null]"} {
		f("steps.dependencies: no order of a step", with(step, "dependencies", list))
	}
	f("ok", with(step, "dependencies", "[1,100]"))
	create, remove, build := with(with(step, "type", `"file_create"`), "diff", ""), with(with(step, "type", `"file_delete"`), "diff", ""), `{"type":"build","target":".","description":"","dependencies":[]}`
	newFile := `"--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+b\n"`
	f("ok", with(create, "content", `""`))
	f("ok", with(create, "diff", newFile))
	f("steps: a file_create has either content or diff", create)
	f("steps: a file_create has either content or diff", with(with(create, "content", `"x"`), "diff", newFile))
	f("steps.content: no string", with(create, "content", "null"))
	f("steps.diff: not that of a file_create", with(create, "diff", aDiff))
	f("steps.diff: not that of a file_create", with(create, "diff", `"NO_CHANGES_REQUIRED"`))
	f("steps: a file_modify has a diff", with(step, "diff", ""))
	f("steps: a file_modify has a diff", with(step, "content", `"x"`))
	f("steps.diff: no string", with(step, "diff", "[]"))
	f("steps.diff: not that of a file_modify", with(step, "diff", newFile))
	f("ok", remove)
	f("steps: a file_delete has neither content nor diff", with(remove, "diff", aDiff))
	f("ok", build)
	f("steps: a build has neither content nor diff", with(build, "content", `"x"`))
	f("steps.target: that of a build is .", with(build, "target", `"a.txt"`))
	// A path of a diff is as dangerous as that of a step; anything else in it can be corrected.
	f("steps.diff: traversal", with(step, "diff", `"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n"`))
	f("steps.diff: absolute", with(step, "diff", `"--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n"`))
	f("ok", with(step, "diff", `"nonsense"`))
	f("ok", with(step, "diff", `"NO_CHANGES_REQUIRED"`))
	for tokens, want := range map[string]string{"0": "ok", "12": "ok", "-1": "AI-005", "1.5": "AI-005", `"1"`: "AI-005", "null": "AI-005"} {
		_, f := decodeSteps([]byte(`{"steps":[` + step + `],"estimated_tokens":` + tokens + `}`))
		if got := code(f); !strings.HasPrefix(got, want) {
			t.Errorf("estimated_tokens %s: %s", tokens, got)
		}
	}
}

// FuzzAnswer decodes answers of any bytes. encoding/json and this room accept the same objects, and
// find the same in them.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(unknownIntent))
	f.Add([]byte(anIntent))
	f.Add([]byte(`{"steps":[{"type":"file_modify","target":"a.txt","description":"d","dependencies":[1],"diff":` + aDiff + `}],"estimated_tokens":3}`))
	f.Add([]byte(`{"steps":[{"type":"file_create","target":"..\/x","description":"\ud83d\ude00","dependencies":[],"content":""}]}`))
	f.Add([]byte(`{"id":"00000000-0000-4000-8000-000000000001","ok":false,"error":{"code":"AI-002","message":"m"}}`))
	f.Add([]byte(`{"choices":[{"finish_reason":"length","message":{"content":"{}"}}]}`))
	f.Add([]byte(`{"type":"FixBug","confidence":1e400,"target":null,"constraints":[]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _, _ = decodeLine(in, "00000000-0000-4000-8000-000000000001")
		_, _ = content(in)
		f := usable(in, func(b []byte) *errcode.Fault {
			_, f := decodeIntent(b)
			return f
		})
		if f == nil {
			sameIntent(t, in)
		}
		f = usable(in, func(b []byte) *errcode.Fault {
			_, f := decodeSteps(b)
			return f
		})
		if f == nil {
			sameSteps(t, in)
		}
	})
}

func sameIntent(t *testing.T, in []byte) {
	var want struct {
		Type       string
		Confidence float64
		Target     struct {
			Files, Symbols []string
			Description    string
		}
		Constraints []plan.Constraint
	}
	if !exact(t, in, &want) {
		return
	}
	got, _ := decodeIntent(in)
	if got.Type != want.Type || fmt.Sprint(got.Files, got.Symbols, got.Description) != fmt.Sprint(want.Target.Files, want.Target.Symbols, want.Target.Description) ||
		len(got.Constraints) != len(want.Constraints) || got.Confidence > want.Confidence+1e-9 || got.Confidence < want.Confidence-0.01 {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

func sameSteps(t *testing.T, in []byte) {
	var want struct {
		Steps []struct {
			Type, Target, Description string
			Dependencies              []int
			Content, Diff             *string
		}
	}
	if !exact(t, in, &want) {
		return
	}
	got, _ := decodeSteps(in)
	if len(got) != len(want.Steps) {
		t.Fatalf("%d steps, want %d", len(got), len(want.Steps))
	}
	for i, s := range want.Steps {
		g := got[i]
		if g.Type != s.Type || g.Target != s.Target || g.Description != s.Description || fmt.Sprint(g.Dependencies) != fmt.Sprint(s.Dependencies) ||
			s.Content != nil && string(g.New) != *s.Content || (g.change != nil || g.problem != nil) != (s.Diff != nil) {
			t.Fatalf("%+v, want %+v", g, s)
		}
	}
}

// exact decodes with encoding/json. It reports false for what has a key that differs from a known
// one only in its case: that package takes it for the known one.
func exact(t *testing.T, in []byte, out any) bool {
	var w jsonx.Walker
	w.Start(in)
	known := " type confidence target files symbols description constraints scope steps dependencies content diff estimated_tokens "
	for kind, raw := w.Step(); kind != jsonx.End; kind, raw = w.Step() {
		key := string(jsonx.AppendUnescaped(nil, raw))
		if kind == jsonx.Key && !strings.Contains(known, " "+key+" ") && strings.Contains(known, " "+strings.ToLower(strings.ToUpper(key))+" ") {
			return false
		}
	}
	if err := json.Unmarshal(in, out); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", in, err)
	}
	return true
}

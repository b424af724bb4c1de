package method

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"trunkline/codec/jsonx"
)

// seeds returns a document of each method.
func seeds(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, doc, _ := strings.Cut(strings.TrimSpace(line), " ")
		list[name] = []byte(doc)
	}
	return list
}

// TestSeeds: each method has a seed, which it takes.
func TestSeeds(t *testing.T) {
	list := seeds(t)
	for i := range Rows {
		r := &Rows[i]
		if list[r.Name] == nil {
			t.Errorf("testdata/seeds.txt has no line for the method %s", r.Name)
			continue
		}
		for _, checked := range []bool{false, true} {
			if f := r.Parse(new(Input), list[r.Name], checked); f != nil {
				t.Errorf("%s, checked %t: %s %s", r.Name, checked, f.Message, f.Details)
			}
		}
		delete(list, r.Name)
	}
	for name := range list {
		t.Errorf("the seed of %s is for no method", name)
	}
}

// TestLimits has the bounds of threads §3.2 and §6: what a field takes at its limit, and beyond.
func TestLimits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}` }
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%d"`, i)
		}
		return "[" + b.String()[1:] + "]"
	}
	for _, c := range []struct{ method, doc, good, bad, code string }{
		{Get, `{"thread_id":"%s"}`, x(256), x(257), "too_big"},
		{Get, `{"thread_id":"%s"}`, " x\u00a0", " \u2003", "too_small"},
		{Get, `{"thread_id":"%s"}`, "é", `a\u0085b`, "invalid_string"},
		{Get, `{"thread_id":"th","schema_version":%s}`, "1.0e0", "2", "invalid_literal"},
		{Create, `{"workspace_id":"w","title":"%s","type":"workflow","participants":["a"]}`, x(1024), x(1025), "too_big"},
		{Create, `{"workspace_id":"w","title":"%s","type":"workflow","participants":["a"]}`, `a\tb`, `a\nb`, "invalid_string"},
		{Create, `{"workspace_id":"w","title":"t","type":"workflow","participants":%s}`, many(256), many(257), "too_big"},
		{Create, `{"workspace_id":"w","title":"t","type":"workflow","participants":%s}`, `["a"]`, `[]`, "too_small"},
		{Create, `{"workspace_id":"w","title":"t","type":"workflow","participants":%s}`, `["a","b"]`, `["a"," a"]`, "not_unique"},
		{Create, `{"workspace_id":"w","title":"t","type":"workflow","participants":["a"],"idempotency_key":"%s"}`, x(200), x(201), "too_big"},
		{Create, `{"workspace_id":"w","title":"t","type":"%s","participants":["a"]}`, "incident", "chat", "invalid_enum_value"},
		{Post, `{"thread_id":"t","schema_version":1,"kind":"chat","body":"b","metadata":%s}`, nested(32), nested(33), "too_big"},
		{Post, `{"thread_id":"t","schema_version":1,"kind":"chat","body":"b","metadata":{"a":"%s"}}`, x(256<<10 - 8), x(256<<10 - 7), "too_big"},
		{Read, `{"thread_id":"t","limit":%s}`, "1", "0", "too_small"},
		{Read, `{"thread_id":"t","limit":%s}`, "2e2", "201", "too_big"},
		{Read, `{"thread_id":"t","since_seq":%s}`, "0", "-1", "too_small"},
		{Read, `{"thread_id":"t","since_seq":%s}`, "9007199254740991", "9007199254740992", "too_big"},
		{Read, `{"thread_id":"t","since_seq":%s}`, "1.50e1", "1.5", "invalid_type"},
		{Summarize, `{"thread_id":"t","max_messages":%s}`, "1000", "1001", "too_big"},
		{Trigger, `{"thread_id":"t","target_agent_id":"a","reason":"%s","trigger_prompt":"p"}`, x(256), x(257), "too_big"},
		{Heartbeat, `{"session_id":"s","runtime":"r","resumable":%s,"status":"idle"}`, "false", "0", "invalid_type"},
		{Heartbeat, `{"session_id":"s","runtime":"r","resumable":%s,"status":"idle"}`, "true", "null", "required"},
		{Get, `{"thread_id":%s,"workspace_id":null,"agent_id":null,"session_id":null,"role":null,"schema_version":null}`,
			`"th"`, "null", "required"},
		{Read, `{"thread_id":%s,"since_seq":null,"limit":null}`, `"th"`, "null", "required"},
		{Post, `{"thread_id":"t","schema_version":%s,"kind":"chat","body":"b","metadata":null,"in_reply_to":null,"idempotency_key":null,"sender_agent_id":null}`,
			"1", "null", "required"},
		{Create, `{"workspace_id":null,"title":"t","type":"workflow","participants":["a"],"created_by":%s}`, "null", `""`,
			"too_small"},
	} {
		r := Lookup([]byte(c.method))
		if f := r.Parse(new(Input), fmt.Appendf(nil, c.doc, c.good), false); f != nil {
			t.Errorf("%s %.80s: %s %.200s", c.method, c.good, f.Message, f.Details)
		}
		f := r.Parse(new(Input), fmt.Appendf(nil, c.doc, c.bad), false)
		if f == nil || f.Condition != Invalid || !bytes.Contains(f.Details, []byte(`"code":"`+c.code+`"`)) {
			t.Errorf("%s %.80s: %+v, want %s", c.method, c.bad, f, c.code)
		}
	}
}

// FuzzParse gives any document to any method. What a method takes, its schema takes, and the
// document is the same whether it was checked before.
func FuzzParse(f *testing.F) {
	for name, doc := range seeds(f) {
		f.Add(name, doc)
		f.Add(name, bytes.Replace(doc, []byte(`"`), []byte(`"\u0041`), 2))
	}
	schemas := map[string]*jsonschema.Resolved{}
	for i := range Rows {
		var s jsonschema.Schema
		if err := json.Unmarshal(Rows[i].InputSchema(), &s); err != nil {
			f.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			f.Fatal(err)
		}
		schemas[Rows[i].Name] = resolved
	}
	f.Fuzz(func(t *testing.T, name string, doc []byte) {
		r := Lookup([]byte(name))
		if r == nil {
			r = &Rows[len(doc)%len(Rows)]
		}
		var in, again Input
		no := r.Parse(&in, doc, false)
		if no != nil {
			var picked Picked
			if next, ok := r.Pick(&picked, new(jsonx.Strict), doc, 0); ok && next == len(doc) && r.Take(&again, &picked) == nil {
				t.Fatalf("picked, and Parse reports %s", no.Message)
			}
			if no.Message == "" || no.Details != nil && !json.Valid(no.Details) {
				t.Fatalf("%+v", no)
			}
			return
		}
		if no := r.Parse(&again, doc, true); no != nil {
			t.Fatalf("checked before: %s", no.Message)
		}
		var picked Picked
		if next, ok := r.Pick(&picked, new(jsonx.Strict), doc, 0); ok && next == len(doc) {
			if no := r.Take(&again, &picked); no != nil {
				t.Fatalf("picked: %s", no.Message)
			}
		}
		for s := range in.texts {
			if in.given != again.given || in.has(slot(s)) && (!bytes.Equal(in.texts[s], again.texts[s]) || in.numbers[s] != again.numbers[s]) {
				t.Fatalf("slot %d: %q %d, checked before %q %d", s, in.texts[s], in.numbers[s], again.texts[s], again.numbers[s])
			}
		}
		var v map[string]any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(v, func(_ string, value any) bool { return value == nil }) // it counts as absent
		if err := schemas[r.Name].Validate(trimmed(v)); err != nil {
			t.Fatalf("%s is taken, and its schema refuses it: %v", doc, err)
		}
	})
}

// trimmed returns a document as a client writes it: the method trims more than a schema does.
func trimmed(v map[string]any) map[string]any {
	for name, value := range v {
		switch value := value.(type) {
		case string:
			v[name] = strings.TrimFunc(value, isSpace)
		case []any:
			for i := range value {
				if text, ok := value[i].(string); ok {
					value[i] = strings.TrimFunc(text, isSpace)
				}
			}
		}
	}
	return v
}

package method

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

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
		{Post, `{"thread_id":"t","schema_version":1,"kind":"chat","body":"b","deliver_at":%s}`, `"2026-02-17T12:00:00.5+01:00"`, `"2026-02-17"`, "invalid_string"},
		{Post, `{"thread_id":"t","schema_version":1,"kind":"chat","body":"b","deliver_at":%s}`, "1e12", "-1", "too_small"},
		{Post, `{"thread_id":"t","schema_version":1,"kind":"chat","body":"b","deliver_at":%s}`, "null", "{}", "invalid_string"},
		{Schedule, `{"thread_id":"t","cron":"%s"}`, x(256), x(257), "too_big"},
		{Schedule, `{"thread_id":"t","every_ms":%s}`, "1000", "999", "too_small"},
		{Schedule, `{"thread_id":"t","every_ms":%s}`, "31622400000", "31622400001", "too_big"},
		{Schedule, `{"thread_id":"t","message":%s}`, "null", "[]", "invalid_type"},
		{Schedule, `{"thread_id":"t","message":{"body":%s}}`, `"b"`, `" "`, "too_small"},
		{Schedule, `{"thread_id":"t","message":{"\u0062ody":"x"},"trigger":%s}`, "null", `{"target_agent_id":"a","reason":"r"}`, "required"},
		{Schedule, `{"thread_id":"t","trigger":{"target_agent_id":"a","reason":"%s","trigger_prompt":"p"}}`, x(256), x(257), "too_big"},
		{Reschedule, `{"schedule_id":"s","paused":%s}`, "true", `"true"`, "invalid_type"},
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

// TestNestedFields: the members of message and trigger go where fields go, and a refusal has the
// way to them.
func TestNestedFields(t *testing.T) {
	r := Lookup([]byte(Schedule))
	var in Input
	doc := []byte(`{"thread_id":"t","every_ms":1000,"message":{"body":"b\n","metadata":{"a": 1}},"trigger":{"reason":"r","x":{},"target_agent_id":" a ","trigger_prompt":"p"}}`)
	for _, checked := range []bool{false, true} {
		if f := r.Parse(&in, doc, checked); f != nil {
			t.Fatalf("%s %s", f.Message, f.Details)
		}
		p := in.Plan()
		if string(p.Body) != `b\n` || string(p.Metadata) != `{"a":1}` || p.Kind != 0 || p.Target != "a" || p.Reason != "r" || string(in.Prompt()) != "p" || p.Every != 1000 || p.Zone != "" || p.Once {
			t.Errorf("%+v", p)
		}
	}
	f := r.Parse(&in, []byte(`{"thread_id":"t","message":{"kind":"x"},"trigger":{"target_agent_id":7}}`), false)
	const want = `{"issues":[{"path":["message.body"],"code":"required","message":"message.body is required"},` +
		`{"path":["message.kind"],"code":"invalid_enum_value","message":"message.kind is none of chat, event, system"},` +
		`{"path":["trigger.target_agent_id"],"code":"invalid_type","message":"trigger.target_agent_id is not a string"},` +
		`{"path":["trigger.reason"],"code":"required","message":"trigger.reason is required"},` +
		`{"path":["trigger.trigger_prompt"],"code":"required","message":"trigger.trigger_prompt is required"}]}`
	if f == nil || f.Message != "message.body is required" || string(f.Details) != want {
		t.Errorf("%+v", f)
	}
	if f := r.Parse(&in, []byte(`{"thread_id":"t","every_ms":1000}`), false); f != nil || len(in.Body()) > 0 || in.Plan().Target != "" {
		t.Errorf("%+v: what the call before had is left", f)
	}
}

// FuzzMoment: a time is taken in one of two notations, and never one that is earlier.
func FuzzMoment(f *testing.F) {
	for _, text := range []string{`"2026-02-17T12:00:00Z"`, `"2026-02-17T12:00:00.0001+23:59"`, "1771329600000", "1e12", `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.9999Z"`, `"2026-02-17t12:00:00z"`, "1.5", `"\u0032026-02-17T12:00:00Z"`, "-1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || !jsonx.Check(text, 8).OK() {
			return
		}
		var in Input
		doc := append(append([]byte(`{"thread_id":"t","schema_version":1,"kind":"chat","body":"b","deliver_at":`), text...), '}')
		no := Lookup([]byte(Post)).Parse(&in, doc, false)
		var want time.Time
		var number float64
		var name string
		if json.Unmarshal(text, &number) == nil {
			if no == nil && in.Deliver() != int64(number) {
				t.Fatalf("%s: %d", text, in.Deliver())
			}
			return
		}
		switch isTime := json.Unmarshal(text, &name) == nil && want.UnmarshalText([]byte(name)) == nil; {
		case isTime != (no == nil):
			t.Fatalf("%s: %+v", text, no)
		case isTime && (time.UnixMilli(in.Deliver()).Before(want) || time.UnixMilli(in.Deliver()-1).After(want)):
			t.Fatalf("%s: %d", text, in.Deliver())
		}
	})
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
		if err := schemas[r.Name].Validate(trimmed(v)); err != nil {
			t.Fatalf("%s is taken, and its schema refuses it: %v", doc, err)
		}
	})
}

// trimmed returns a document as a client writes it: the method trims more than a schema does, and
// null counts as absent.
func trimmed(v map[string]any) map[string]any {
	maps.DeleteFunc(v, func(_ string, value any) bool { return value == nil })
	for name, value := range v {
		switch value := value.(type) {
		case string:
			v[name] = strings.TrimFunc(value, isSpace)
		case map[string]any:
			trimmed(value)
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

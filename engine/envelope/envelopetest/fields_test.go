package envelopetest_test

import (
	"maps"
	"strings"
	"testing"
)

// field lays one member over Base in either shape: raw is its JSON text, "" takes it away.
func field(t reporter, nested bool, key, raw string) (text, path string) {
	t.Helper()
	m := with(t, base(t))
	delete(m, "terminated")
	if nested {
		m = nest(t, m)
	}
	d := document{root: m, nested: nested, model: spec()}
	d.unset(key)
	if raw != "" {
		d.set(key, parse(t, `{"v":`+raw+`}`)["v"])
	}
	return print(t, m), d.path(key)
}

// shapes runs f for the flat shape and, where the member exists there, the nested one.
func shapes(key string, f func(nested bool)) {
	f(false)
	if !flagOnly(key) {
		f(true)
	}
}

// taken: the value is accepted and comes back as result, which is raw itself where result is "".
func taken(t *testing.T, key, raw, result string) {
	t.Helper()
	shapes(key, func(nested bool) {
		t.Helper()
		text, path := field(t, nested, key, raw)
		_, m := process(t, text)
		d := document{root: m, nested: nested, model: spec()}
		if result == "" {
			result = raw
		}
		expect := parse(t, `{"v":`+result+`}`)["v"]
		if nested && expect == nil {
			if d.get(key) != nil {
				t.Errorf("%s %s: got %v, want none", path, raw, d.get(key))
			}
			return
		}
		want(t, text, object{key: expect}, object{key: d.get(key)})
	})
}

// refused: the value is an invalid envelope, and the error names the member or what in it is wrong.
func refused(t *testing.T, key, raw string) {
	t.Helper()
	shapes(key, func(nested bool) {
		t.Helper()
		text, path := field(t, nested, key, raw)
		invalid(t, text, path)
	})
}

func invalid(t reporter, text, path string) {
	t.Helper()
	out, err := step(t, text)
	switch {
	case err == nil:
		t.Errorf("accepted, want a refusal of %q\ninput: %s\nreply: %s", path, short(text), short(out))
	case err.Code != "invalid_envelope":
		t.Errorf("code %q, want invalid_envelope\ninput: %s", err.Code, short(text))
	case err.Field != path && !(strings.HasPrefix(err.Field, path) && strings.ContainsAny(err.Field[len(path):][:1], ".[")):
		t.Errorf("field %q, want %q\ninput: %s", err.Field, path, short(text))
	case err.Message == "":
		t.Errorf("no message for %s", text)
	}
}

func TestFieldTexts(t *testing.T) {
	for key, missing := range map[string]string{
		"request_id": `"req_00000000000000ff"`, "session_id": `"sess_00000000000000ff"`, "user_id": `"anonymous"`,
	} {
		for _, raw := range []string{"", "null", `""`} {
			taken(t, key, raw, missing)
		}
		taken(t, key, `"x"`, "")
	}
	for _, raw := range []string{"", "null"} {
		taken(t, "raw_input", raw, `""`)
		taken(t, "current_stage", raw, `"perception"`)
	}
	taken(t, "raw_input", `""`, "")
	taken(t, "current_stage", `""`, `"perception"`)
	for _, key := range []string{"envelope_id", "request_id", "session_id", "user_id", "raw_input", "current_stage"} {
		for _, raw := range []string{"1", "true", "[]", "{}"} {
			refused(t, key, raw)
		}
	}
}

func TestFieldEnvelopeID(t *testing.T) {
	for _, raw := range []string{"", "null", `""`} {
		text, _ := field(t, false, "envelope_id", raw)
		_, m := process(t, text)
		if m["envelope_id"] != "env_"+idDigit {
			t.Errorf("envelope_id = %v for %s", m["envelope_id"], text)
		}
		text, path := field(t, true, "envelope_id", raw)
		invalid(t, text, path)
	}
	for _, raw := range []string{`"1"`, `"8b1c5fb0-52c2-4a1f-8f0a-52ad4d1f3ac5"`, `"ümläut"`, `"` + strings.Repeat("x", 1024) + `"`} {
		taken(t, "envelope_id", raw, "")
	}
}

// TestFieldIDLength: ids end at 1024 bytes (envelope §3.7).
func TestFieldIDLength(t *testing.T) {
	for _, key := range []string{"envelope_id", "request_id", "session_id"} {
		taken(t, key, `"`+strings.Repeat("x", 1024)+`"`, "")
		refused(t, key, `"`+strings.Repeat("x", 1025)+`"`)
	}
}

func TestFieldCounters(t *testing.T) {
	for key, missing := range map[string]string{
		"iteration": "0", "max_iterations": "3", "llm_call_count": "0", "max_llm_calls": "10",
		"agent_hop_count": "0", "max_agent_hops": "21", "current_stage_number": "1", "max_stages": "5",
	} {
		least, below := "0", "-1"
		if strings.HasPrefix(key, "max_") || key == "current_stage_number" {
			least, below = "1", "0"
		}
		taken(t, key, "", missing)
		taken(t, key, "null", missing)
		for _, raw := range []string{least, "2147483647", "3.0", "3e0", "30e-1", "0.3E+1", "2.147483647e9"} {
			taken(t, key, raw, "")
		}
		for _, raw := range []string{below, "-1", "2147483648", "2.147483648e9", `"3"`, "2.5", "true", "false", "[]", "{}", "1e400",
			"9223372036854775808", "18446744073709551617", "1e-400", "0.1"} {
			refused(t, key, raw)
		}
	}
	taken(t, "iteration", "-0", "")
	taken(t, "iteration", "0e5", "")
}

func TestFieldFlags(t *testing.T) {
	for _, key := range []string{"terminated", "clarification_pending", "confirmation_pending"} {
		taken(t, key, "", "false")
		taken(t, key, "null", "false")
		taken(t, key, "false", "")
		taken(t, key, "true", "")
		for _, raw := range []string{"0", "1", `"true"`, "[]", "{}"} {
			refused(t, key, raw)
		}
	}
	taken(t, "confirmation_response", "", "null")
	taken(t, "confirmation_response", "true", "")
	taken(t, "confirmation_response", "false", "")
	refused(t, "confirmation_response", `"yes"`)
	refused(t, "confirmation_response", "1")
}

func TestFieldNullableTexts(t *testing.T) {
	for _, key := range []string{"terminal_reason", "termination_reason", "clarification_question", "clarification_response",
		"confirmation_id", "confirmation_message"} {
		taken(t, key, "", "null")
		taken(t, key, "null", "")
		taken(t, key, `"some text"`, "")
		for _, raw := range []string{"0", "true", "[]", "{}"} {
			refused(t, key, raw)
		}
	}
}

func TestFieldObjectLists(t *testing.T) {
	for _, key := range []string{"completed_stages", "prior_plans", "processing_history", "errors"} {
		taken(t, key, "", "[]")
		taken(t, key, "null", "[]")
		taken(t, key, "[]", "")
		taken(t, key, `[{},{"stage_number":"not looked at","x":[1.50]}]`, "")
		for _, raw := range []string{"{}", `"x"`, "1", "true", "[1]", `[{},null]`, `["x"]`, "[[]]"} {
			refused(t, key, raw)
		}
	}
}

func TestFieldTextLists(t *testing.T) {
	for _, key := range []string{"all_goals", "remaining_goals", "critic_feedback"} {
		taken(t, key, "", "[]")
		taken(t, key, "null", "[]")
		taken(t, key, "[]", "")
		taken(t, key, `["a","b",""]`, "")
		for _, raw := range []string{"{}", `"x"`, "1", "true", "[1]", `["a",null]`, "[[]]", `["a",{}]`} {
			refused(t, key, raw)
		}
	}
}

func TestFieldStageOrder(t *testing.T) {
	taken(t, "stage_order", "", "[]")
	taken(t, "stage_order", "null", "[]")
	for _, raw := range []string{`[]`, `["a"]`, `["start","a","end","clarification","confirmation"]`, `["end"]`} {
		taken(t, "stage_order", raw, "")
	}
	for _, raw := range []string{`["a","a"]`, `["a",""]`, `["a",1]`, `["a",null]`, `{}`, `"a"`, `["end","a","end"]`, `["a","\u0061"]`} {
		refused(t, "stage_order", raw)
	}
}

func TestFieldOutputs(t *testing.T) {
	taken(t, "outputs", "", "{}")
	taken(t, "outputs", "null", "{}")
	taken(t, "outputs", `{"x":{},"":{"a":[1.0]}}`, "")
	taken(t, "outputs", `{"x":null,"y":{"z":null},"perception":null}`, `{"y":{"z":null}}`)
	for _, raw := range []string{"[]", `"x"`, "1", "false"} {
		refused(t, "outputs", raw)
	}
	for _, raw := range []string{`"x"`, "1", "true", "[]", "[{}]"} {
		for _, nested := range []bool{false, true} {
			text, _ := field(t, nested, "outputs", `{"ok":{},"plan":`+raw+`}`)
			invalid(t, text, "outputs.plan")
		}
	}
}

func TestFieldMaps(t *testing.T) {
	for _, key := range []string{"metadata", "goal_completion_status"} {
		taken(t, key, "", "{}")
		taken(t, key, "null", "{}")
		taken(t, key, "{}", "")
		taken(t, key, `{"a":"b"}`, "")
		for _, raw := range []string{"[]", `"x"`, "1", "true"} {
			refused(t, key, raw)
		}
	}
	for _, raw := range []string{`{"g":1}`, `{"g":true}`, `{"g":{}}`} {
		refused(t, "goal_completion_status", raw)
	}
	taken(t, "metadata", `{"prior_outputs":{"plan":1},"x":1.50}`, "")
	for _, raw := range []string{`{"prior_outputs":[]}`, `{"prior_outputs":"x"}`, `{"prior_outputs":1}`} {
		refused(t, "metadata", raw)
	}
}

func TestFieldInterrupt(t *testing.T) {
	taken(t, "interrupt_pending", "true", "")
	taken(t, "interrupt_pending", "false", "")
	taken(t, "interrupt", `{"kind":"checkpoint"}`, "")
	for _, raw := range []string{"1", `"true"`, "{}"} {
		refused(t, "interrupt_pending", raw)
	}
	for _, raw := range []string{"1", `"x"`, "[]", "true"} {
		refused(t, "interrupt", raw)
	}
}

// TestComplete: a flat reply has exactly the keys of envelope §3.2 where nothing else came in.
func TestComplete(t *testing.T) {
	for _, core := range []string{`"envelope_id":"e"`, `"request_id":"r"`, `"raw_input":"x"`, `"outputs":{}`, `"current_stage":"start"`,
		`"raw_input":null`, `"outputs":null`, `"current_stage":""`} {
		text := `{` + core + `}`
		_, got := process(t, text)
		expect := with(t, complete(t), emptyText)
		for key, v := range parse(t, text) {
			if v != nil {
				expect[key] = v
			}
		}
		expect["current_stage"] = "perception"
		want(t, text, expect, got)
	}
	text := `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{}}`
	_, got := process(t, text)
	expect := with(t, complete(t), emptyText, `{"envelope_id":"e","current_stage":"perception"}`)
	want(t, text, nestComplete(t, expect), got)
	for _, null := range []string{"interrupts", "execution", "audit"} {
		text := strings.Replace(text, `"bounds"`, `"`+null+`":null,"bounds"`, 1)
		_, got := process(t, text)
		want(t, text, nestComplete(t, expect), got)
	}
	nulls := maps.Clone(with(t, complete(t), emptyText))
	for key := range nulls {
		nulls[key] = nil
	}
	_, got = process(t, print(t, nulls))
	want(t, "all null", with(t, complete(t), emptyText, `{"current_stage":"perception"}`), got)
}

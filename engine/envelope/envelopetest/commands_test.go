package envelopetest_test

import (
	"strings"
	"testing"

	"trunkline/engine/envelope"
)

// The commands beside `process` (envelope §4.4, §9.17).

type command func(dst, src []byte) ([]byte, *envelope.Error)

func ask(t *testing.T, c command, text string) object {
	t.Helper()
	out, err := c([]byte("x"), []byte(text))
	if err != nil {
		t.Fatalf("refused: %s %s %s\ninput: %s", err.Code, err.Message, err.Field, text)
	}
	return parse(t, strings.TrimPrefix(string(out), "x"))
}

// fails: the command refuses text with a code and a field, "*" for any.
func fails(t *testing.T, c command, text, code, field string) {
	t.Helper()
	out, err := c(nil, []byte(text))
	switch {
	case err == nil:
		t.Errorf("accepted %s: %s", text, out)
	case string(err.Code) != code || field != "*" && err.Field != field || err.Message == "":
		t.Errorf("%s: %s %q field %q, want %s, field %q", text, err.Code, err.Message, err.Field, code, field)
	}
}

func TestCreate(t *testing.T) {
	f := func(text string, over ...string) {
		t.Helper()
		want(t, text, with(t, complete(t), append([]string{emptyText, text}, over...)...), ask(t, newEngine().Create, text))
	}
	f(`{"raw_input":"hi","user_id":"u","session_id":"s","stage_order":["a","b"]}`)
	f(`{}`)
	f(`{"request_id":"r","metadata":{"m":1.50},"max_iterations":7,"extra":[1e2]}`)
	f(`{"envelope_id":"e","raw_input":"x","outputs":{"perception":{}},"llm_call_count":99}`)
	f(`{"raw_input":"x","user_id":"","stage_order":null}`, `{"user_id":"anonymous","stage_order":[]}`)
	f(`{"raw_input":"x","all_goals":["g"]}`, `{"remaining_goals":["g"],"goal_completion_status":{"g":"pending"}}`)
}

func TestCreateRefuses(t *testing.T) {
	c := newEngine().Create
	for _, text := range []string{"", "{", "NaN", `{} {}`} {
		fails(t, c, text, "parse_error", "")
	}
	for _, text := range []string{"[]", "1", "null", `"x"`} {
		fails(t, c, text, "invalid_envelope", "")
	}
	fails(t, c, `{"raw_input":1}`, "invalid_envelope", "raw_input")
	fails(t, c, `{"stage_order":["a","a"]}`, "invalid_envelope", "stage_order")
	fails(t, c, `{"stage_order":"a"}`, "invalid_envelope", "stage_order")
	fails(t, c, `{"metadata":[]}`, "invalid_envelope", "metadata")
	fails(t, c, `{"max_llm_calls":0}`, "invalid_envelope", "max_llm_calls")
}

func TestCreateThenProcess(t *testing.T) { // 9.17
	out, err := newEngine().Create(nil, []byte(`{"raw_input":"hi","user_id":"u","session_id":"s","stage_order":["a","b"]}`))
	if err != nil {
		t.Fatal(err.Message)
	}
	if m := parse(t, string(out)); m["current_stage"] != "start" {
		t.Errorf("current_stage = %v, want start", m["current_stage"])
	}
	reply, m := process(t, string(out))
	if m["current_stage"] != "a" {
		t.Errorf("current_stage = %v, want a", m["current_stage"])
	}
	want(t, reply, parse(t, `{"can_continue":true,"terminal_reason":null,"iteration":0,"llm_call_count":0,"agent_hop_count":0}`),
		ask(t, newEngine().CanContinue, reply))
}

func TestCanContinue(t *testing.T) {
	f := func(over, expect string) {
		t.Helper()
		reply := with(t, parse(t, `{"can_continue":true,"terminal_reason":null,"iteration":0,"llm_call_count":0,"agent_hop_count":0}`), expect)
		m := with(t, base(t), over)
		want(t, over, reply, ask(t, newEngine().CanContinue, print(t, m)))
		for key := range m {
			if flagOnly(key) {
				return
			}
		}
		want(t, "nested "+over, reply, ask(t, newEngine().CanContinue, print(t, nest(t, m))))
	}
	no := func(reason string) string { return `{"can_continue":false,"terminal_reason":` + reason }
	f(`{}`, `{}`)
	f(`{"iteration":3,"llm_call_count":9,"agent_hop_count":20}`, `{"iteration":3,"llm_call_count":9,"agent_hop_count":20}`)
	f(`{"iteration":4}`, no(`"max_iterations_exceeded"`)+`,"iteration":4}`)
	f(`{"llm_call_count":10}`, no(`"max_llm_calls_exceeded"`)+`,"llm_call_count":10}`)
	f(`{"agent_hop_count":21}`, no(`"max_agent_hops_exceeded"`)+`,"agent_hop_count":21}`)
	f(`{"iteration":9,"llm_call_count":99}`, no(`"max_iterations_exceeded"`)+`,"iteration":9,"llm_call_count":99}`)
	f(`{"terminated":true}`, no(`null`)+`}`)
	f(`{"terminated":true,"terminal_reason":"user_cancelled"}`, no(`"user_cancelled"`)+`}`)
	f(`{"terminated":true,"terminal_reason":"completed_successfully"}`, no(`"completed_successfully"`)+`}`)
	f(`{"clarification_pending":true}`, no(`"clarification_required"`)+`}`)
	f(`{"confirmation_pending":true}`, no(`"confirmation_required"`)+`}`)
	f(`{"clarification_pending":true,"clarification_response":"yes"}`, `{}`)
	f(`{"confirmation_pending":true,"confirmation_response":false}`, `{}`)
	f(`{"interrupt_pending":true,"interrupt":{"kind":"clarification"}}`, no(`"clarification_required"`)+`}`)
	f(`{"interrupt_pending":true,"interrupt":{"kind":"confirmation"}}`, no(`"confirmation_required"`)+`}`)
	f(`{"interrupt_pending":true}`, no(`null`)+`}`)
	want(t, "9.17", parse(t, `{"can_continue":true,"terminal_reason":null,"iteration":0,"llm_call_count":0,"agent_hop_count":0}`),
		ask(t, newEngine().CanContinue, `{"envelope_id":"e"}`))
	fails(t, newEngine().CanContinue, `{}`, "invalid_envelope", "*")
	fails(t, newEngine().CanContinue, `{`, "parse_error", "")
	fails(t, newEngine().CanContinue, `{"raw_input":"a","iteration":"1"}`, "invalid_envelope", "iteration")
}

func TestResult(t *testing.T) {
	f := func(over, expect string) {
		t.Helper()
		reply := with(t, parse(t, `{"envelope_id":"env_00000000000000a1","request_id":"req_00000000000000b2","user_id":"u1",
			"session_id":"sess_00000000000000c3","current_stage":"start","terminated":false,"termination_reason":null,"response":null,
			"interrupt_pending":false,"iteration":0,"llm_call_count":0,"processing_time_ms":0,"errors":[]}`), expect)
		m := with(t, base(t), over)
		want(t, over, reply, ask(t, newEngine().Result, print(t, m)))
		want(t, "nested "+over, reply, ask(t, newEngine().Result, print(t, nest(t, m))))
	}
	f(`{}`, `{}`)
	f(`{"outputs":{"integration":{"final_response":"done"}},"terminated":true,"termination_reason":"completed_successfully",
		"current_stage":"end","iteration":2,"llm_call_count":3}`, `{"outputs":{"integration":{"final_response":"done"}},"response":"done",
		"terminated":true,"termination_reason":"completed_successfully","current_stage":"end","iteration":2,"llm_call_count":3}`)
	f(`{"outputs":{"integration":{"final_response":5},"x":{"n":1.50}}}`, `{"outputs":{"integration":{"final_response":5},"x":{"n":1.50}}}`)
	f(`{"errors":[{"agent":"a","message":"m","n":1.0}]}`, `{"errors":[{"agent":"a","message":"m","n":1.0}]}`)
	f(`{"processing_history":[{"duration_ms":5},{"duration_ms":"x"},{},{"duration_ms":null},{"duration_ms":7}]}`, `{"processing_time_ms":12}`)
	fails(t, newEngine().Result, `{}`, "invalid_envelope", "*")
	fails(t, newEngine().Result, ``, "parse_error", "")
	fails(t, newEngine().Result, `{"raw_input":"a","outputs":[]}`, "invalid_envelope", "outputs")
}

func TestResultQuestions(t *testing.T) {
	f := func(text, kind string, members string) {
		t.Helper()
		got := ask(t, newEngine().Result, text)
		for key, v := range parse(t, members) {
			want(t, text+" "+key, object{key: v}, object{key: got[key]})
		}
		interrupt, _ := got["interrupt"].(object)
		if interrupt["kind"] != kind {
			t.Errorf("%s: interrupt %v, want kind %s", text, got["interrupt"], kind)
		}
	}
	out := `"outputs":{"integration":{"final_response":"done"}}`
	f(`{"clarification_pending":true,"clarification_question":"Q?",`+out+`}`, "clarification",
		`{"response":"Q?","clarification_needed":true,"clarification_question":"Q?"}`)
	f(`{"confirmation_pending":true,"confirmation_message":"M","confirmation_id":"c",`+out+`}`, "confirmation",
		`{"response":"M","confirmation_needed":true,"confirmation_message":"M","confirmation_id":"c"}`)
	f(`{"interrupt_pending":true,"interrupt":{"kind":"clarification","id":"i","question":"Q?"},`+out+`}`, "clarification",
		`{"response":"Q?","interrupt_pending":true,"clarification_needed":true,"clarification_question":"Q?"}`)
	f(`{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},"interrupts":{"interrupt_pending":true,"interrupt":
		{"kind":"confirmation","id":"c","message":"M","created_at":"x"}},`+out+`}`, "confirmation",
		`{"response":"M","interrupt_pending":true,"confirmation_needed":true,"confirmation_message":"M","confirmation_id":"c"}`)
}

func TestValidate(t *testing.T) {
	f := func(text string, valid bool, id any) {
		t.Helper()
		got := parse(t, string(newEngine().Validate(nil, []byte(text))))
		errors, ok := got["errors"].([]any)
		if got["valid"] != valid || !ok || valid != (len(errors) == 0) {
			t.Errorf("%s: valid %v, errors %v", text, got["valid"], got["errors"])
		}
		if _, ok := got["warnings"].([]any); !ok {
			t.Errorf("%s: warnings %v", text, got["warnings"])
		}
		if s, ok := got["envelope_id"].(string); id != nil && s != id || !ok && valid {
			t.Errorf("%s: envelope_id %v, want %v", text, got["envelope_id"], id)
		}
	}
	f(baseText, true, "env_00000000000000a1")
	f(print(t, nest(t, base(t))), true, "env_00000000000000a1")
	f(`{"envelope_id":"off the pattern"}`, true, "off the pattern")
	f(`{"envelope_id":"e","terminal_reason":"free"}`, true, "e")
	f(`{"envelope_id":"e","iteration":"3"}`, false, nil)
	f(`{"envelope_id":"e","outputs":{"plan":1}}`, false, nil)
	f(`{}`, false, nil)
	f(`[1]`, false, nil)
	f(`{not json`, false, nil)
	f(``, false, nil)
	f("\xff", false, nil)
}

func TestValidateWarns(t *testing.T) {
	warnings := func(text string) int {
		t.Helper()
		list, _ := parse(t, string(newEngine().Validate(nil, []byte(text))))["warnings"].([]any)
		return len(list)
	}
	full := print(t, complete(t))
	if n := warnings(full); n != 0 {
		t.Errorf("%d warnings for a complete envelope", n)
	}
	for _, over := range []string{`{"envelope_id":"x"}`, `{"request_id":"x"}`, `{"session_id":"x"}`, `{"terminal_reason":"odd"}`} {
		if warnings(print(t, with(t, complete(t), over))) == 0 {
			t.Errorf("no warning for %s", over)
		}
	}
	if warnings(`{"envelope_id":"env_00000000000000a1"}`) == 0 {
		t.Error("no warning for missing keys")
	}
}

func TestErrorObject(t *testing.T) { // §2.4
	_, err := step(t, `{"raw_input":"a","iteration":"3"}`)
	got := parse(t, string(err.Append(nil)))
	want(t, "error", parse(t, `{"error":true,"code":"invalid_envelope","message":"*","field":"iteration"}`), got)
	_, err = step(t, `{`)
	got = parse(t, string(err.Append([]byte{})))
	want(t, "error", parse(t, `{"error":true,"code":"parse_error","message":"*"}`), got)
	_, err = step(t, `{"outputs":{"a\"\u0000b":1}}`)
	got = parse(t, string(err.Append(nil)))
	want(t, "error", parse(t, `{"error":true,"code":"invalid_envelope","message":"*","field":"outputs.a\"\u0000b"}`), got)
}

package envelopetest_test

import (
	"strings"
	"testing"
)

// The echo-and-overlay rule of envelope §3.1, looked at byte by byte where the spelling matters.

// echoes: the reply to text holds every literal.
func echoes(t *testing.T, text string, literals ...string) {
	t.Helper()
	out, _ := process(t, text)
	for _, literal := range literals {
		if !strings.Contains(out, literal) {
			t.Errorf("%s is not in the reply\ninput: %s\nreply: %s", literal, text, out)
		}
	}
}

func TestEchoUnknownMembers(t *testing.T) {
	for _, literal := range []string{`"x":1`, `"x":{"y":{"z":[1,{"w":null}]}}`, `"request_context":{"request_id":"r"}`, `"":0`, `"a.b":[]`,
		`"n":1.50`, `"n":1E+2`, `"n":-0`, `"n":-0.0`, `"n":12345678901234567890`, `"n":1e400`, `"n":0.1000000000000000055`, `"s":"\u00e9"`,
		`"s":"\/<>&"`, `"s":"é\ud83d\ude00"`, `"s":"\u0000"`, `"k\u0065y":1`, `"b":true`, `"e":{}`, `"identity_":{}`, `"_ext":{"bounds":{"x":1}}`} {
		echoes(t, `{"raw_input":"a",`+literal+`}`, literal)
		echoes(t, `{"outputs":{"perception":{`+literal+`}}}`, literal)
		echoes(t, `{"outputs":{"other":{"deep":[{`+literal+`}]}}}`, literal)
		echoes(t, `{"raw_input":"a","metadata":{`+literal+`}}`, literal)
		echoes(t, `{"raw_input":"a","errors":[{`+literal+`}],"prior_plans":[{`+literal+`}],"completed_stages":[{`+literal+`}]}`, literal)
		echoes(t, `{"raw_input":"a","interrupt":{"kind":"checkpoint",`+literal+`}}`, literal)
		for _, group := range []string{"identity", "pipeline", "bounds", "interrupts", "execution", "audit"} {
			text := `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},"interrupts":{},"execution":{},"audit":{}}`
			text = strings.Replace(text, `"`+group+`":{`, `"`+group+`":{`+literal+`,`, 1)
			echoes(t, strings.Replace(text, ",}", "}", 1), literal)
		}
	}
}

func TestEchoUnchangedSpelling(t *testing.T) {
	f := func(literal string) {
		t.Helper()
		echoes(t, `{"raw_input":"a","outputs":{"perception":{}},`+literal+`}`, literal)
	}
	for _, literal := range []string{`"iteration":1.0`, `"iteration":0e0`, `"max_iterations":30e-1`, `"max_agent_hops":2.1e1`,
		`"received_at":"2025-12-10t10:00:00,5"`, `"received_at":"2025-12-10 10:00"`, `"created_at":"2025-12-10T10:00+0100"`,
		`"completed_at":"2025-12-10T10:00:00.123456"`, `"user_id":"\u0061\/"`, `"stage_order":["p\u0065rception","x"]`,
		`"goal_completion_status":{"g":"odd"}`, `"termination_reason":"t\u0061"`, `"clarification_question":"Q\u003f"`} {
		f(literal)
	}
	echoes(t, `{"raw_input":"a","terminated":true,"terminal_reason":"COMPLETED"}`, `"terminal_reason":"COMPLETED"`)
	echoes(t, `{"raw_input":"a","terminated":true,"terminal_reason":"Max_LLM_calls_Exceeded"}`, `"terminal_reason":"Max_LLM_calls_Exceeded"`)
	echoes(t, `{"raw_input":"a","terminal_reason":"policy_VIOLATION"}`, `"terminal_reason":"policy_VIOLATION"`, `"terminated":true`)
	echoes(t, `{"raw_input":"a","terminal_reason":"wh\u0061tever"}`, `"terminal_reason":"wh\u0061tever"`)
}

// TestEchoMoved: what the engine moves or copies keeps its literals too.
func TestEchoMoved(t *testing.T) {
	out, _ := process(t, `{"current_stage":"critic","outputs":{"plan":{"n":1.50,"s":"\u0061"},"critic":{"verdict":"r\u0065intent","x":1e1,
		"feedback":"n\u0065ed"}},"agent_hop_count":1.0}`)
	for _, literal := range []string{`"prior_plans":[{"n":1.50,"s":"\u0061"}]`, `"plan":{"n":1.50,"s":"\u0061"}`, `"x":1e1`,
		`"agent_hop_count":2`, `"iteration":1`} {
		if !strings.Contains(out, literal) {
			t.Errorf("%s is not in %s", literal, out)
		}
	}
}

// TestEchoCompact: the reply has no space between tokens (§2.2: compact) and does not escape what
// JSON need not.
func TestEchoCompact(t *testing.T) {
	out, _ := process(t, " \t{ \"raw_input\" : \"<a> & b\" , \"x\" : [ 1 , { \"y\" : 2 } ] ,\r\n \"outputs\" : { \"perception\" : { } } } \n")
	if strings.ContainsAny(out, "\n\r\t") || !strings.Contains(out, `"<a> & b"`) || !strings.Contains(out, `"x":[1,{"y":2}]`) {
		t.Errorf("not compact: %s", out)
	}
	for _, literal := range []string{`"x":"a \" [ 1 , 2 ] \\"`, `"x y":[" ","\\"," \" , "]`} {
		echoes(t, `{ "raw_input":"a", `+literal+` }`, literal)
	}
}

func TestEchoDialectKeys(t *testing.T) {
	_, got := process(t, `{"raw_input":"a","outputs":{"perception":{},"intent":{"goals":["g"]}}}`)
	for _, key := range []string{"interrupt_pending", "interrupt", "active_stages", "completed_stage_set", "failed_stages", "parallel_mode",
		"dag_mode", "loop_feedback", "created_at", "tool_call_count", "tokens_in", "tokens_out", "_ext", "identity", "error"} {
		if v, ok := got[key]; ok {
			t.Errorf("%s = %v appeared", key, v)
		}
	}
	for _, literal := range []string{`"interrupt_pending":false`, `"interrupt":{"kind":"checkpoint"}`, `"active_stages":{"a":true,"b":false}`,
		`"active_stages":["a"]`, `"completed_stage_set":{}`, `"failed_stages":{"a":"why"}`, `"parallel_mode":true`, `"dag_mode":true`,
		`"created_at":"2025-01-01T00:00"`, `"tool_call_count":3`, `"tokens_in":9007199254740993`, `"tokens_out":0`} {
		echoes(t, `{"raw_input":"a",`+literal+`}`, literal)
	}
}

// TestEchoDialectNulls: a dialect key that came in as null is not lost; null or its default are as
// good.
func TestEchoDialectNulls(t *testing.T) {
	for _, key := range []string{"interrupt_pending", "interrupt", "active_stages", "completed_stage_set", "failed_stages", "parallel_mode",
		"created_at", "tool_call_count", "tokens_in", "tokens_out"} {
		_, got := process(t, `{"raw_input":"a","`+key+`":null}`)
		if _, ok := got[key]; !ok {
			t.Errorf("%s is gone", key)
		}
	}
}

// TestFeedbackNames: critic_feedback is the live one where both came in; the other is echoed
// (§3.1).
func TestFeedbackNames(t *testing.T) {
	flat(t, `{"stage_order":["critic"],"current_stage":"critic","outputs":{"critic":{"verdict":"reintent","feedback":"f"}},
		"critic_feedback":["c"],"loop_feedback":["l"]}`, `{"outputs":{},"iteration":1,"critic_feedback":["c","f"],
		"metadata":{"prior_outputs":{"critic":{"verdict":"reintent","feedback":"f"}}}}`)
}

// TestFeedbackNewName: loop_feedback alone is read; the complete reply has the live name beside it,
// and both state the same.
func TestFeedbackNewName(t *testing.T) {
	flat(t, `{"stage_order":["critic"],"current_stage":"critic","outputs":{"critic":{"verdict":"reintent","feedback":"f"}},
		"loop_feedback":["l"]}`, `{"outputs":{},"iteration":1,"critic_feedback":["l","f"],"loop_feedback":["l","f"],
		"metadata":{"prior_outputs":{"critic":{"verdict":"reintent","feedback":"f"}}}}`)
	invalid(t, `{"raw_input":"a","loop_feedback":[1]}`, "loop_feedback")
}

// TestLeftovers: error, code, message of an earlier reply are dropped, in either shape, and nothing
// else of those names (§3.2).
func TestLeftovers(t *testing.T) {
	nested := `"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{}`
	for _, core := range []string{`"raw_input":"a"`, nested} {
		for _, over := range []string{`"error":true,"code":"bounds_exceeded","message":"Cannot continue"`, `"error":true,"code":""`,
			`"code":"c","error":true,"message":{"x":1}`, `"err\u006fr":true,"c\u006fde":"c","message":1`} {
			_, got := process(t, `{`+over+`,`+core+`}`)
			for _, key := range []string{"error", "code", "message"} {
				if v, ok := got[key]; ok {
					t.Errorf("%s: %s = %v stayed", over, key, v)
				}
			}
		}
		for _, over := range []string{`"error":false,"code":"c","message":"m"`, `"error":"x","code":"c"`, `"error":true,"code":7,"message":"m"`,
			`"error":true,"message":"m"`, `"code":"c","message":"m"`, `"error":1,"code":"c"`, `"error":null,"code":"c","message":"m"`} {
			_, got := process(t, `{`+over+`,`+core+`}`)
			expect := parse(t, `{`+over+`}`)
			for key, v := range expect {
				want(t, over, object{key: v}, object{key: got[key]})
			}
		}
	}
}

// TestDuplicates: the last one counts for what the engine reads (§6).
func TestDuplicates(t *testing.T) {
	f := func(over, key, value string) {
		t.Helper()
		_, got := process(t, `{"raw_input":"a",`+over+`}`)
		want(t, over, object{key: parse(t, `{"v":`+value+`}`)["v"]}, object{key: got[key]})
	}
	f(`"iteration":1,"iteration":2`, "iteration", "2")
	f(`"iteration":9,"iteration":2`, "terminated", "false")
	f(`"iteration":2,"iteration":9`, "terminated", "true")
	f(`"iteration":1,"\u0069teration":2`, "iteration", "2")
	f(`"iteration":"x","iteration":2`, "iteration", "2")
	f(`"current_stage":"plan","current_stage":"critic"`, "current_stage", `"critic"`)
	f(`"current_stage":"plan","current_stage":"start"`, "current_stage", `"perception"`)
	f(`"outputs":{"perception":{}},"outputs":{}`, "current_stage", `"perception"`)
	f(`"outputs":{},"outputs":{"perception":{}}`, "current_stage", `"intent"`)
	f(`"outputs":{"perception":{"status":"error"},"perception":{}}`, "current_stage", `"intent"`)
	f(`"outputs":{"perception":{},"perception":null}`, "current_stage", `"perception"`)
	f(`"outputs":{"perception":{"status":"error","status":"ok"}}`, "terminated", "false")
	f(`"outputs":{"perception":{"status":"ok","st\u0061tus":"error"}}`, "terminated", "true")
	f(`"outputs":{"perception":{},"intent":{"goals":["a"],"goals":["b"]}}`, "all_goals", `["b"]`)
	f(`"errors":[{"agent":"perception","recoverable":true,"recoverable":false}]`, "terminated", "true")
	f(`"metadata":{"a":1},"metadata":{"b":2}`, "metadata", `{"b":2}`)
	f(`"all_goals":["a"],"goal_completion_status":{"a":"pending","a":"satisfied"}`, "remaining_goals", `[]`)
	f(`"all_goals":["a"],"goal_completion_status":{"a":"satisfied","b":"odd","\u0061":"pending"}`, "remaining_goals", `["a"]`)
	f(`"goal_completion_status":{"g":1,"g":"pending"},"outputs":{"x":1,"x":{}}`, "current_stage", `"perception"`)
	f(`"clarification_pending":true,"clarification_pending":false`, "current_stage", `"perception"`)
	invalid(t, `{"raw_input":"a","iteration":2,"iteration":"x"}`, "iteration")
	_, got := process(t, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{"llm_call_count":99},"bounds":{"llm_call_count":1}}`)
	if bounds := got["bounds"].(object); bounds["terminated"] != false || bounds["llm_call_count"] != number(1) {
		t.Errorf("bounds = %v, want the last ones", bounds)
	}
	_, got = process(t, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{"llm_call_count":99,"llm_call_count":1}}`)
	if bounds := got["bounds"].(object); bounds["terminated"] != false || bounds["llm_call_count"] != number(1) {
		t.Errorf("bounds = %v, want the last member", bounds)
	}
}

// TestNestedOmits: what the nested shape never has, though it came in: members of the omitted list
// that are empty (§3.1).
func TestNestedOmits(t *testing.T) {
	for _, over := range []string{`"pipeline":{"failed_stages":{}}`, `"pipeline":{"active_stages":[]}`, `"pipeline":{"completed_stage_set":{}}`,
		`"bounds":{"terminal_reason":null}`, `"bounds":{"terminal_reason":""}`, `"bounds":{"termination_reason":null}`,
		`"bounds":{"termination_reason":""}`, `"interrupts":{"interrupt":null}`, `"audit":{"completed_at":null}`} {
		m := with(t, parse(t, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{}}`), `{`+over+`}`)
		_, got := process(t, print(t, m))
		for group, members := range parse(t, `{`+over+`}`) {
			for name := range members.(object) {
				if v, ok := got[group].(object)[name]; ok {
					t.Errorf("%s: %v stayed", over, v)
				}
			}
		}
	}
}

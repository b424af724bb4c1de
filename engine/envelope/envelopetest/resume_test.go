package envelopetest_test

import "testing"

// S4 to S6 of envelope §5.1 in the flat shape; f lays over on Base and wants changed over the
// completed Base.

func flat(t *testing.T, over, changed string) {
	t.Helper()
	text := print(t, with(t, base(t), over))
	_, got := process(t, text)
	want(t, text, with(t, complete(t), over, changed), got)
}

const (
	needsClarification = `"terminal_reason":"clarification_required","clarification_pending":true`
	needsConfirmation  = `"terminal_reason":"confirmation_required","confirmation_pending":true`
)

func TestClarificationWaits(t *testing.T) { // S4, no answer
	f := func(over, changed string) {
		t.Helper()
		flat(t, `{"current_stage":"plan","outputs":{"plan":{},"intent":{"clarification_needed":true}},"llm_call_count":99,`+over+`}`,
			`{`+needsClarification+changed+`}`)
	}
	f(`"clarification_pending":true`, "")
	f(`"clarification_pending":true,"clarification_question":"Q?"`, "")
	f(`"clarification_pending":true,"clarification_response":""`, "")
	f(`"clarification_pending":true,"terminal_reason":null`, "")
	f(`"interrupt_pending":true,"interrupt":{"kind":"clarification","id":"i"}`, "")
	f(`"interrupt_pending":true,"interrupt":{"kind":"CLARIFICATION","question":"Q?"}`, `,"clarification_question":"Q?"`)
	f(`"interrupt_pending":true,"interrupt":{"kind":"Clarification","question":"Q?"},"clarification_question":"mine"`, "")
	f(`"interrupt_pending":true,"interrupt":{"kind":"clarification","question":5,"response":{"approved":true}}`, "")
	f(`"interrupt_pending":true,"interrupt":{"kind":"clarification","response":{"text":""}}`, "")
	f(`"clarification_pending":true,"interrupt_pending":false,"interrupt":{"kind":"clarification","response":{"text":"old"}}`, "")
	f(`"clarification_pending":true,"confirmation_pending":true,"confirmation_response":false`, "")
}

func TestClarificationAnswered(t *testing.T) { // S4, where it goes on
	f := func(over, changed string) {
		t.Helper()
		flat(t, `{"clarification_pending":true,"clarification_response":"yes",`+over+`}`,
			`{"clarification_pending":false,"terminal_reason":null,`+changed+`}`)
	}
	answered := `"user_clarification":"yes"`
	f(`"current_stage":"plan","agent_hop_count":2,"outputs":{"perception":{},"intent":{"a":1},"plan":{"b":2}}`,
		`"current_stage":"intent","agent_hop_count":3,"outputs":{"perception":{}},
		"metadata":{`+answered+`,"prior_outputs":{"intent":{"a":1},"plan":{"b":2}}}`)
	f(`"current_stage":"intent","outputs":{"intent":{}}`, `"current_stage":"intent","outputs":{},"metadata":{`+answered+`,"prior_outputs":{"intent":{}}}`)
	f(`"current_stage":"perception","outputs":{"perception":{"clarification_needed":true},"intent":{}}`,
		`"outputs":{},"metadata":{`+answered+`,"prior_outputs":{"perception":{"clarification_needed":true},"intent":{}}}`)
	f(`"current_stage":"b","stage_order":["intent","b"],"outputs":{"intent":{}}`,
		`"current_stage":"intent","agent_hop_count":1,"outputs":{},"metadata":{`+answered+`,"prior_outputs":{"intent":{}}}`)
	f(`"current_stage":"plan","llm_call_count":10`, `"current_stage":"intent","agent_hop_count":1,"metadata":{`+answered+`},
		"terminated":true,"terminal_reason":"max_llm_calls_exceeded","termination_reason":"LLM call limit reached (10 >= 10)",`+at)
	f(`"current_stage":"clarification"`, `"current_stage":"intent","metadata":{`+answered+`}`)
	f(`"current_stage":"start"`, `"current_stage":"intent","metadata":{`+answered+`}`)
	f(`"current_stage":"zzz","stage_order":["a","b"],"outputs":{"zzz":{},"b":{}}`,
		`"current_stage":"a","outputs":{"zzz":{}},"metadata":{`+answered+`,"prior_outputs":{"b":{}}}`)
	f(`"current_stage":"b","stage_order":["a","b","c"],"outputs":{"a":{},"b":{},"c":{}}`,
		`"outputs":{"a":{}},"metadata":{`+answered+`,"prior_outputs":{"b":{},"c":{}}}`)
	f(`"current_stage":"mine","stage_order":[],"outputs":{"mine":{"m":1.50},"b":{}}`,
		`"outputs":{"b":{}},"metadata":{`+answered+`,"prior_outputs":{"mine":{"m":1.50}}}`)
	f(`"current_stage":"end"`, `"current_stage":"intent","metadata":{`+answered+`}`)
	f(`"current_stage":"critic","stage_order":["perception","planner","executor","critic"],
		"outputs":{"plan":{},"executor":{},"critic":{"clarification_needed":true}}`,
		`"outputs":{"plan":{},"executor":{}},"metadata":{`+answered+`,"prior_outputs":{"critic":{"clarification_needed":true}}}`)
	f(`"current_stage":"plan","outputs":{"plan":{"new":1}},
		"metadata":{"keep":0.10,"user_clarification":"old","prior_outputs":{"plan":{"old":1},"x":[]}}`,
		`"current_stage":"intent","agent_hop_count":1,"outputs":{},
		"metadata":{"keep":0.10,`+answered+`,"prior_outputs":{"plan":{"new":1},"x":[]}}`)
	f(`"current_stage":"intent","outputs":{"intent":{"new":1}},"metadata":{"prior_outputs":{"intent":{"old":1}}}`,
		`"current_stage":"intent","outputs":{},"metadata":{`+answered+`,"prior_outputs":{"intent":{"new":1}}}`)
	f(`"current_stage":"intent","metadata":{"user_clarification":{"old":1}}`, `"metadata":{`+answered+`}`)
	f(`"current_stage":"intent","metadata":{"prior_outputs":null}`, `"metadata":{`+answered+`,"prior_outputs":null}`)
}

func TestRewindTakesTheAlias(t *testing.T) { // rewind moves the output of each stage "under the same key"
	flat(t, `{"clarification_pending":true,"clarification_response":"yes","current_stage":"executor","stage_order":["planner","executor"],
		"outputs":{"plan":{"p":1},"execution":{"e":1}}}`,
		`{"clarification_pending":false,"outputs":{"plan":{"p":1}},
		"metadata":{"user_clarification":"yes","prior_outputs":{"execution":{"e":1}}}}`)
}

func TestClarificationByInterrupt(t *testing.T) { // S4, the answer or the question in an interrupt
	f := func(over, changed string) {
		t.Helper()
		flat(t, `{"current_stage":"intent","interrupt_pending":true,`+over+`}`,
			`{"clarification_pending":false,"interrupt_pending":false,"metadata":{"user_clarification":"yes"},`+changed+`}`)
	}
	const kind = `"interrupt":{"kind":"clarification","extra":1.50`
	f(kind+`,"response":{"text":"yes","received_at":"x"}}`, `"clarification_response":"yes"`)
	f(kind+`},"clarification_response":"yes"`, kind+`,"response":{"text":"yes","received_at":"2026-01-02T03:04:05.000000Z"}}`)
	f(kind+`,"response":null},"clarification_response":"yes"`,
		kind+`,"response":{"text":"yes","received_at":"2026-01-02T03:04:05.000000Z"}}`)
	f(kind+`,"response":{"text":"other"}},"clarification_response":"yes","clarification_pending":true`, `"max_stages":5`)
	f(kind+`,"response":{}},"clarification_response":"yes"`, `"max_stages":5`)
	flat(t, `{"current_stage":"intent","interrupt_pending":true,`+kind+`,"response":{"text":"y"}}}`, `{"clarification_response":"y",
		"interrupt_pending":false,"metadata":{"user_clarification":"y"}}`)
	f(kind+`,"response":{"text":"yes"}},"clarification_response":""`, `"clarification_response":"yes"`)
}

func TestConfirmationWaits(t *testing.T) { // S5, no answer
	f := func(over, changed string) {
		t.Helper()
		flat(t, `{"current_stage":"plan","outputs":{"plan":{}},"llm_call_count":99,`+over+`}`, `{`+needsConfirmation+changed+`}`)
	}
	f(`"confirmation_pending":true`, "")
	f(`"confirmation_pending":true,"confirmation_response":null,"confirmation_id":"c"`, "")
	f(`"confirmation_pending":true,"interrupt_pending":true,"interrupt":{"kind":"checkpoint","response":{"approved":true}}`, "")
	f(`"interrupt_pending":true,"interrupt":{"kind":"CONFIRMATION","message":"M"},"confirmation_id":"c"`, `,"confirmation_message":"M"`)
	f(`"interrupt_pending":true,"interrupt":{"kind":"confirmation","response":{"approved":"yes"}},"confirmation_id":"c"`, "")
	f(`"interrupt_pending":true,"interrupt":{"kind":"confirmation","id":"i"}`, `,"confirmation_id":"i"`)
}

func TestConfirmationYes(t *testing.T) { // S5, true
	f := func(over, changed string) {
		t.Helper()
		flat(t, `{"confirmation_pending":true,"confirmation_response":true,`+over+`}`,
			`{"confirmation_pending":false,"terminal_reason":null,`+changed+`}`)
	}
	f(`"current_stage":"perception"`, `"current_stage":"intent","agent_hop_count":1`)
	f(`"current_stage":"plan","outputs":{"plan":{"confirmation_needed":true}}`, `"current_stage":"execution","agent_hop_count":1`)
	f(`"current_stage":"plan","outputs":{"plan":{},"execution":{"status":"success"}}`, `"current_stage":"critic","agent_hop_count":2`)
	f(`"current_stage":"integration"`,
		`"current_stage":"end","agent_hop_count":0,`+ended("completed_successfully", "completed_successfully"))
	f(`"current_stage":"integration","interrupt_pending":true,"interrupt":{"kind":"checkpoint","response":{}}`,
		`"current_stage":"end",`+ended("completed_successfully", "completed_successfully"))
	f(`"current_stage":"execution","outputs":{"execution":{"approval":"requires_confirmation"},"critic":{}}`,
		`"outputs":{},"metadata":{"prior_outputs":{"execution":{"approval":"requires_confirmation"},"critic":{}}}`)
	f(`"current_stage":"executor","stage_order":["executor","x"],"outputs":{"execution":{}}`,
		`"outputs":{},"metadata":{"prior_outputs":{"execution":{}}}`)
	f(`"current_stage":"execution","stage_order":["executor","execution"],"outputs":{"execution":{}}`,
		`"current_stage":"executor","agent_hop_count":1,"outputs":{},"metadata":{"prior_outputs":{"execution":{}}}`)
	f(`"current_stage":"confirmation"`, `"current_stage":"execution"`)
	f(`"current_stage":"confirmation","stage_order":["a","b"],"outputs":{"b":{}}`,
		`"current_stage":"a","outputs":{},"metadata":{"prior_outputs":{"b":{}}}`)
	f(`"current_stage":"mine","stage_order":[],"outputs":{"mine":{}}`, `"outputs":{},"metadata":{"prior_outputs":{"mine":{}}}`)
	f(`"current_stage":"zzz","stage_order":["execution"]`, `"current_stage":"execution"`)
	exceeded := ended("max_llm_calls_exceeded", "LLM call limit reached (10 >= 10)")
	f(`"current_stage":"confirmation","stage_order":["a","b"],"llm_call_count":10`, `"current_stage":"a",`+exceeded)
	f(`"current_stage":"execution","llm_call_count":10`, exceeded)
	f(`"current_stage":"mine","stage_order":[],"llm_call_count":10`, exceeded)
	f(`"current_stage":"plan","llm_call_count":10`,
		`"current_stage":"execution","agent_hop_count":1,`+exceeded)
}

func TestConfirmationNo(t *testing.T) { // S5, false; D14
	no := ended("denied_by_policy", "User denied confirmation")
	flat(t, `{"current_stage":"plan","confirmation_pending":true,"confirmation_response":false,"outputs":{"plan":{}}}`,
		`{"confirmation_pending":false,`+no+`}`)
	flat(t, `{"current_stage":"zzz","confirmation_pending":true,"confirmation_response":false}`, `{"confirmation_pending":false,`+no+`}`)
	flat(t, `{"current_stage":"plan","interrupt_pending":true,"interrupt":{"kind":"confirmation","response":{"approved":false}}}`,
		`{"confirmation_response":false,"interrupt_pending":false,`+no+`}`)
	flat(t, `{"current_stage":"plan","interrupt_pending":true,"interrupt":{"kind":"confirmation"},"confirmation_response":false}`,
		`{"interrupt_pending":false,"interrupt":{"kind":"confirmation","response":{"approved":false,
		"received_at":"2026-01-02T03:04:05.000000Z"}},`+no+`}`)
}

func TestBothPending(t *testing.T) { // S4 answered, then S5
	flat(t, `{"current_stage":"plan","clarification_pending":true,"clarification_response":"c","confirmation_pending":true}`,
		`{"current_stage":"intent","agent_hop_count":1,"clarification_pending":false,"metadata":{"user_clarification":"c"},`+
			needsConfirmation+`}`)
	flat(t, `{"current_stage":"plan","clarification_pending":true,"clarification_response":"c","confirmation_pending":true,
		"confirmation_response":true}`, `{"current_stage":"plan","agent_hop_count":2,"clarification_pending":false,
		"confirmation_pending":false,"metadata":{"user_clarification":"c"}}`)
}

func TestUnansweredFlagsAreInert(t *testing.T) { // an answer without a pending flag starts nothing
	flat(t, `{"current_stage":"plan","clarification_response":"c","confirmation_response":false}`, `{}`)
}

func TestOtherInterrupts(t *testing.T) { // S6; an answered one lets the step go on
	for _, kind := range []string{`"checkpoint"`, `"agent_review"`, `"critic_review"`, `"TIMEOUT"`, `"resource_exhausted"`, `"system_error"`,
		`"unspecified"`, `""`, `null`, `7`} {
		one := `"current_stage":"plan","outputs":{"plan":{}},"interrupt_pending":true,"interrupt":{"kind":` + kind
		steps(t, `{`+one+`},"terminal_reason":"confirmation_required","llm_call_count":99}`, `{"terminal_reason":null}`)
		steps(t, `{`+one+`,"response":null}}`, `{}`)
		steps(t, `{`+one+`,"response":{}}}`, `{"interrupt_pending":false,"current_stage":"execution","agent_hop_count":1}`)
		steps(t, `{`+one+`,"response":{"decision":"reject"}}}`,
			`{"interrupt_pending":false,"current_stage":"execution","agent_hop_count":1}`)
	}
	steps(t, `{"current_stage":"plan","interrupt_pending":true,"interrupt":null,"outputs":{"plan":{}}}`, `{}`)
	steps(t, `{"current_stage":"plan","interrupt_pending":true,"outputs":{"plan":{}}}`, `{}`)
	steps(t, `{"current_stage":"plan","interrupt_pending":false,"interrupt":{"kind":"clarification"},"outputs":{"plan":{}}}`,
		`{"current_stage":"execution","agent_hop_count":1}`)
}

package envelopetest_test

import (
	"strings"
	"testing"
)

// TestReasonSpellings: any case of either column is understood in either shape (envelope §3.4). A
// final reason ends the envelope (S2), the two _required ones are cleared (S3), and what is not
// changed keeps its spelling.
func TestReasonSpellings(t *testing.T) {
	f := func(reason, spelled string) {
		t.Helper()
		text := `{"raw_input":"a","terminal_reason":"` + spelled + `"}`
		_, got := process(t, text)
		nestedText := `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{"terminal_reason":"` + spelled + `"}}`
		_, reply := process(t, nestedText)
		bounds := reply["bounds"].(object)
		if strings.HasSuffix(reason, "_required") {
			want(t, text, object{"": nil, "terminated": false}, object{"": got["terminal_reason"], "terminated": got["terminated"]})
			if v, ok := bounds["terminal_reason"]; ok || bounds["terminated"] != false {
				t.Errorf("%s: nested reason %v, terminated %v", spelled, v, bounds["terminated"])
			}
			return
		}
		want(t, text, object{"": spelled, "terminated": true}, object{"": got["terminal_reason"], "terminated": got["terminated"]})
		want(t, nestedText, object{"": spelled, "terminated": true, "at": clock},
			object{"": bounds["terminal_reason"], "terminated": bounds["terminated"], "at": reply["audit"].(object)["completed_at"]})
	}
	for reason := range reasons {
		for _, spelled := range []string{reason, wireReason(reason), strings.ToUpper(reason), strings.ToLower(wireReason(reason)),
			strings.ToUpper(reason[:1]) + reason[1:]} {
			f(reason, spelled)
		}
	}
	f("completed_successfully", "Completed")
	f("", "out of patience") // D45
	f("", "denied")
}

// TestReasonColumn: the engine writes the left column in the flat shape, the right one in the
// nested.
func TestReasonColumn(t *testing.T) {
	f := func(over, left, right, text string) {
		t.Helper()
		_, got := process(t, `{"raw_input":"a",`+over+`}`)
		want(t, over, object{"r": left, "t": text}, object{"r": got["terminal_reason"], "t": got["termination_reason"]})
		_, got = process(t, print(t, nest(t, parse(t, `{"envelope_id":"e",`+over+`}`))))
		bounds := got["bounds"].(object)
		want(t, over, object{"r": right, "t": text}, object{"r": bounds["terminal_reason"], "t": bounds["termination_reason"]})
	}
	f(`"current_stage":"end"`, "completed_successfully", "COMPLETED", "completed_successfully")
	f(`"outputs":{"perception":{"approval":"denied"}}`, "denied_by_policy", "POLICY_VIOLATION", "Denied by perception")
	f(`"outputs":{"perception":{"status":"error"}}`, "tool_failed_fatally", "TOOL_FAILED_FATALLY", "Stage perception reported an error")
	f(`"outputs":{"perception":{"status":"error"}},"errors":[{"agent":"perception","recoverable":true,"message":"m"}]`,
		"tool_failed_recoverably", "TOOL_FAILED_RECOVERABLY", "m")
	f(`"iteration":4`, "max_iterations_exceeded", "MAX_ITERATIONS_EXCEEDED", "Iteration limit exceeded (4 > 3)")
	f(`"llm_call_count":10`, "max_llm_calls_exceeded", "MAX_LLM_CALLS_EXCEEDED", "LLM call limit reached (10 >= 10)")
	f(`"agent_hop_count":21`, "max_agent_hops_exceeded", "MAX_AGENT_HOPS_EXCEEDED", "Agent hop limit reached (21 >= 21)")
}

// TestReasonOfAnOpenQuestion: the same question asked twice may keep the input's spelling; its
// meaning stays.
func TestReasonOfAnOpenQuestion(t *testing.T) {
	for _, spelled := range []string{`"CLARIFICATION_REQUIRED"`, `"clarification_required"`, `null`, `"confirmation_required"`} {
		_, got := process(t, `{"raw_input":"a","clarification_pending":true,"terminal_reason":`+spelled+`}`)
		if s, _ := got["terminal_reason"].(string); canonical(s) != "clarification_required" || got["terminated"] != false {
			t.Errorf("%s: reason %v, terminated %v", spelled, got["terminal_reason"], got["terminated"])
		}
		_, got = process(t, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{"terminal_reason":`+spelled+`},
			"interrupts":{"interrupt_pending":true,"interrupt":{"kind":"clarification"}}}`)
		if v := got["bounds"].(object)["terminal_reason"]; v != nil {
			t.Errorf("%s: nested reason %v while not terminated", spelled, v)
		}
	}
}

// TestVersions: v1.0, v1.1 and v1.2 envelopes are all answered by a complete v1.2 (envelope §3.2,
// Versions).
func TestVersions(t *testing.T) {
	rest := func(keys ...string) string { return "{" + strings.Join(keys, ",") + "}" }
	outputs := `"outputs":{"perception":{},"intent":{},"plan":{},"execution":{},"critic":{"verdict":"next_stage"}}`
	finished := `{"current_stage":"integration","agent_hop_count":5,
		"completed_stages":[{"stage_number":1,"satisfied_goals":[],"summary":{},"plan_id":null}]}`
	v10 := `"terminal_reason":null,"termination_reason":null,"completed_at":null,"metadata":{}`
	v11 := `"completed_stages":[],"current_stage_number":1,"max_stages":5,"all_goals":[],"remaining_goals":[],
		"goal_completion_status":{},"prior_plans":[],"critic_feedback":[]`
	v12 := `"iteration":0,"llm_call_count":0,"agent_hop_count":0,"max_iterations":3,"max_llm_calls":10,"max_agent_hops":21`
	flat(t, rest(outputs, v10), finished) // all goals unset behaves as "no goals"
	flat(t, rest(outputs, v10, v11), finished)
	flat(t, rest(outputs, v10, v11, v12), finished)
	flat(t, rest(outputs, v12), finished)
	flat(t, rest(outputs, v11), finished)
}

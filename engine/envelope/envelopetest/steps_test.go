package envelopetest_test

import (
	"strings"
	"testing"
)

// One test per step of envelope §5.1; f lays over on Base and wants changed over the completed
// Base, in both shapes.

const at = `"completed_at":"2026-01-02T03:04:05.000000Z"`

func ended(reason, text string) string {
	return `"terminated":true,"terminal_reason":"` + reason + `","termination_reason":"` + text + `",` + at
}

func TestStepTerminated(t *testing.T) { // S1, §4.3
	f := func(over string) { t.Helper(); steps(t, over, `{}`) }
	f(`{"terminated":true}`)
	f(`{"terminated":true,"llm_call_count":99,"iteration":99,"agent_hop_count":99}`)
	f(`{"terminated":true,"current_stage":"nowhere","outputs":{"perception":{"status":"error"}}}`)
	f(`{"terminated":true,"terminal_reason":"user_cancelled","termination_reason":"by hand","completed_at":"2025-01-01 00:00"}`)
	f(`{"terminated":true,"terminal_reason":"max_critic_fires_exceeded"}`)
	f(`{"terminated":true,"terminal_reason":"clarification_required"}`)
	f(`{"terminated":true,"current_stage":"intent","outputs":{"intent":{"goals":["g"]}}}`)
	f(`{"terminated":true,"clarification_pending":true,"clarification_response":"x","confirmation_pending":true,
		"confirmation_response":true,"outputs":{"plan":{}}}`)
	f(`{"terminated":true,"interrupt_pending":true,"interrupt":{"kind":"checkpoint","response":{}}}`)
}

func TestStepReasonSet(t *testing.T) { // S2
	f := func(reason, over string) {
		t.Helper()
		steps(t, `{"terminal_reason":"`+reason+`","current_stage":"plan","llm_call_count":99,"outputs":{"plan":{}}`+over+`}`,
			`{"terminated":true,`+strings.TrimPrefix(`"completed_at":"2026-01-02T03:04:05.000000Z"`+over, ",")+`}`)
	}
	for reason := range reasons {
		if !strings.HasSuffix(reason, "_required") {
			f(reason, "")
			f(reason, `,"termination_reason":"kept"`)
			f(reason, `,"completed_at":"2025-01-01T00:00:00"`)
		}
	}
	f("WHATEVER", "") // D45; the nested helper writes free text in capitals, which is what it then expects back
}

func TestStepReasonCleared(t *testing.T) { // S3: the two _required reasons are not final
	f := func(reason string) {
		t.Helper()
		steps(t, `{"terminal_reason":"`+reason+`","current_stage":"plan"}`, `{"terminal_reason":null}`)
	}
	f("clarification_required")
	f("confirmation_required")
	f("CLARIFICATION_REQUIRED")
	f("Confirmation_Required")
}

func TestStepGoalsBeforeTheStage(t *testing.T) { // S3
	known := `"all_goals":["g"],"remaining_goals":["g"],"goal_completion_status":{"g":"pending"}`
	steps(t, `{"outputs":{"intent":{"goals":["g"]}}}`, `{"current_stage":"perception",`+known+`}`)
	steps(t, `{"current_stage":"zzz","outputs":{"intent":{"goals":["g"]}}}`,
		`{`+ended("tool_failed_fatally", "Unknown stage: zzz")+`,`+known+`}`)
	steps(t, `{"outputs":{"intent":{"goals":["h"]}},`+known+`}`, `{"current_stage":"perception"}`)
	steps(t, `{"outputs":{"intent":{"goals":"g"}}}`, `{"current_stage":"perception"}`)
	steps(t, `{"outputs":{"plan":{"goals":["g"]}}}`, `{"current_stage":"perception"}`)
}

func TestStepPlaces(t *testing.T) { // S7
	for _, cs := range []string{"start", "clarification", "confirmation", ""} {
		steps(t, `{"current_stage":"`+cs+`"}`, `{"current_stage":"perception"}`)
		steps(t, `{"current_stage":"`+cs+`","stage_order":[]}`, `{"current_stage":"perception"}`)
		steps(t, `{"current_stage":"`+cs+`","stage_order":["end","start"]}`, `{"current_stage":"perception"}`)
		steps(t, `{"current_stage":"`+cs+`","stage_order":["start","a","b","end"]}`, `{"current_stage":"a"}`)
	}
	completed := ended("completed_successfully", "completed_successfully")
	steps(t, `{"current_stage":"end"}`, `{`+completed+`}`)
	steps(t, `{"current_stage":"end","stage_order":["a"],"llm_call_count":99,"outputs":{"a":{"status":"error"}}}`, `{`+completed+`}`)
	steps(t, `{"current_stage":"end","stage_order":["a","end","b"]}`, `{`+completed+`}`)
	steps(t, `{"current_stage":"zzz"}`, `{`+ended("tool_failed_fatally", "Unknown stage: zzz")+`}`)
	steps(t, `{"current_stage":"planner"}`, `{`+ended("tool_failed_fatally", "Unknown stage: planner")+`}`)
	steps(t, `{"current_stage":"perception","stage_order":["a"],"outputs":{"perception":{}}}`,
		`{`+ended("tool_failed_fatally", "Unknown stage: perception")+`}`)
	steps(t, `{"current_stage":"a","stage_order":["a"]}`, `{}`)
}

func TestStepEmptyOrder(t *testing.T) { // D12
	for i, cs := range sixStages[:5] {
		steps(t, `{"stage_order":[],"current_stage":"`+cs+`","outputs":{"`+cs+`":{}},"completed_stages":[{}]}`,
			afterEmptyOrder(cs, sixStages[i+1]))
		steps(t, `{"stage_order":["start"],"current_stage":"`+cs+`"}`, `{}`)
	}
	steps(t, `{"stage_order":[],"current_stage":"integration","outputs":{"integration":{}}}`,
		`{"current_stage":"end",`+ended("completed_successfully", "completed_successfully")+`}`)
}

func afterEmptyOrder(cs, next string) string {
	if cs == "critic" {
		return `{"agent_hop_count":1,"current_stage":"integration",
			"completed_stages":[{},{"stage_number":1,"satisfied_goals":[],"summary":{},"plan_id":null}]}`
	}
	return `{"agent_hop_count":1,"current_stage":"` + next + `"}`
}

func TestStepCustomStage(t *testing.T) { // "If S is not in O row i stops the loop"
	f := func(over, changed string) {
		t.Helper()
		steps(t, `{"stage_order":[],"current_stage":"mine"`+over+`}`, changed)
	}
	f("", `{}`)
	f(`,"outputs":{"mine":{"x":1}}`, `{}`)
	f(`,"outputs":{"mine":{"x":1}},"llm_call_count":99`, `{}`)
	f(`,"outputs":{"mine":{"status":"error"}}`, `{`+ended("tool_failed_fatally", "Stage mine reported an error")+`}`)
	f(`,"outputs":{"mine":{"approval":"denied"}}`, `{`+ended("denied_by_policy", "Denied by mine")+`}`)
	f(`,"llm_call_count":10`, `{`+ended("max_llm_calls_exceeded", "LLM call limit reached (10 >= 10)")+`}`)
	f(`,"errors":[{"agent":"mine","recoverable":false}]`, `{`+ended("tool_failed_fatally", "Stage mine failed")+`}`)
	steps(t, `{"stage_order":["end"],"current_stage":"planner","outputs":{"plan":{}}}`, `{}`)
	steps(t, `{"stage_order":[],"current_stage":"executor","outputs":{"execution":{"status":"error"}}}`,
		`{`+ended("tool_failed_fatally", "Stage executor reported an error")+`}`)
}

func TestStepLastError(t *testing.T) { // S9, first half
	f := func(errors, changed string) {
		t.Helper()
		steps(t, `{"current_stage":"plan","errors":`+errors+`,"llm_call_count":10}`, changed)
	}
	over := `{` + ended("max_llm_calls_exceeded", "LLM call limit reached (10 >= 10)") + `}`
	f(`[{"agent":"plan","recoverable":false,"message":"no disk"}]`, `{`+ended("tool_failed_fatally", "no disk")+`}`)
	f(`[{"agent":"intent"},{"agent":"plan","recoverable":false}]`, `{`+ended("tool_failed_fatally", "Stage plan failed")+`}`)
	f(`[{"agent":"plan","recoverable":false,"message":5}]`, `{`+ended("tool_failed_fatally", "Stage plan failed")+`}`)
	f(`[{"agent":"plan","recoverable":true}]`, over)
	f(`[{"agent":"plan"}]`, over)
	f(`[{"agent":"plan","recoverable":"false"}]`, over)
	f(`[{"agent":"planner","recoverable":false}]`, over)
	f(`[{"agent":"plan","recoverable":false},{"agent":"intent","recoverable":false}]`, over)
	f(`[{"recoverable":false}]`, over)
	f(`[]`, over)
}

func TestStepBounds(t *testing.T) { // S9, second half; D9
	f := func(over, changed string) {
		t.Helper()
		steps(t, `{"current_stage":"plan",`+over+`}`, changed)
	}
	f(`"iteration":3`, `{}`)
	f(`"iteration":4`, `{`+ended("max_iterations_exceeded", "Iteration limit exceeded (4 > 3)")+`}`)
	f(`"iteration":2,"max_iterations":1`, `{`+ended("max_iterations_exceeded", "Iteration limit exceeded (2 > 1)")+`}`)
	f(`"iteration":4.0`, `{`+ended("max_iterations_exceeded", "Iteration limit exceeded (4 > 3)")+`}`)
	f(`"llm_call_count":9`, `{}`)
	f(`"llm_call_count":11`, `{`+ended("max_llm_calls_exceeded", "LLM call limit reached (11 >= 10)")+`}`)
	f(`"llm_call_count":10,"max_llm_calls":11`, `{}`)
	f(`"agent_hop_count":20`, `{}`)
	f(`"agent_hop_count":21`, `{`+ended("max_agent_hops_exceeded", "Agent hop limit reached (21 >= 21)")+`}`)
	f(`"agent_hop_count":2147483647,"max_agent_hops":2147483647`,
		`{`+ended("max_agent_hops_exceeded", "Agent hop limit reached (2147483647 >= 2147483647)")+`}`)
	f(`"iteration":9,"llm_call_count":10,"agent_hop_count":21`,
		`{`+ended("max_iterations_exceeded", "Iteration limit exceeded (9 > 3)")+`}`)
	f(`"llm_call_count":10,"agent_hop_count":21`, `{`+ended("max_llm_calls_exceeded", "LLM call limit reached (10 >= 10)")+`}`)
	f(`"current_stage_number":9,"max_stages":1`, `{}`)
}

func TestStepBoundsOnlyBeforeAnAgent(t *testing.T) { // D9: finishing at the limit is completion; hops may pass it on the way
	steps(t, `{"stage_order":["a","b"],"current_stage":"b","outputs":{"b":{}},"llm_call_count":10,"iteration":9,"agent_hop_count":21}`,
		`{"current_stage":"end",`+ended("completed_successfully", "completed_successfully")+`}`)
	steps(t, `{"stage_order":["a","b"],"current_stage":"a","outputs":{"a":{}},"agent_hop_count":20}`,
		`{"current_stage":"b","agent_hop_count":21,`+ended("max_agent_hops_exceeded", "Agent hop limit reached (21 >= 21)")+`}`)
	steps(t, `{"stage_order":["a","b"],"current_stage":"a","outputs":{"a":{},"b":{}},"agent_hop_count":21}`,
		`{"current_stage":"end","agent_hop_count":22,`+ended("completed_successfully", "completed_successfully")+`}`)
	steps(t, `{"stage_order":["a","b"],"current_stage":"a","outputs":{"a":{}},"agent_hop_count":2147483647,"max_agent_hops":2147483647}`,
		`{"current_stage":"b",`+ended("max_agent_hops_exceeded", "Agent hop limit reached (2147483647 >= 2147483647)")+`}`)
}

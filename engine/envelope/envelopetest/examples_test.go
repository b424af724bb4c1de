package envelopetest_test

import (
	"strings"
	"testing"
)

// The examples of envelope §9, each as a whole expected object, flat and (where the shapes do not
// differ in more than place) nested.

func TestExampleAdvance(t *testing.T) { // 9.1
	steps(t, `{"outputs":{"perception":{"normalized_input":"trace login"},
		"intent":{"goals":["g1","g2"],"clarification_needed":false}}}`,
		`{"current_stage":"plan","agent_hop_count":2,"all_goals":["g1","g2"],"remaining_goals":["g1","g2"],
		"goal_completion_status":{"g1":"pending","g2":"pending"}}`)
}

const asking = `{"outputs":{"perception":{},"intent":{"goals":["g1"],"clarification_needed":true,
	"clarification_question":"Which login?"}}}`

const asked = `{"current_stage":"intent","agent_hop_count":1,"clarification_pending":true,
	"clarification_question":"Which login?","terminal_reason":"clarification_required",
	"all_goals":["g1"],"remaining_goals":["g1"],"goal_completion_status":{"g1":"pending"}}`

func TestExampleAskAndAnswer(t *testing.T) { // 9.2, 9.3
	reply := steps(t, asking, asked)
	text := print(t, with(t, reply, `{"clarification_response":"the web one"}`))
	_, got := process(t, text)
	want(t, text, with(t, complete(t), asking, asked, `{"outputs":{"perception":{}},"clarification_pending":false,
		"clarification_response":"the web one","terminal_reason":null,
		"metadata":{"user_clarification":"the web one","prior_outputs":{"intent":
			{"goals":["g1"],"clarification_needed":true,"clarification_question":"Which login?"}}}}`), got)
}

const judged = `{"current_stage":"critic","agent_hop_count":4,"all_goals":["g1","g2"],"remaining_goals":["g1","g2"],
	"goal_completion_status":{"g1":"pending","g2":"pending"},"outputs":{"perception":{},"intent":{"goals":["g1","g2"]},
	"plan":{"plan_id":"plan_1"},"execution":{"status":"success"},"critic":VERDICT}}`

func applyCritic(critic string) string { return strings.Replace(judged, "VERDICT", critic, 1) }

func TestExampleReintent(t *testing.T) { // 9.4
	critic := `{"verdict":"reintent","satisfied_goals":["g1"],"feedback":"need more"}`
	steps(t, applyCritic(critic), `{"outputs":{"perception":{}},"current_stage":"intent","iteration":1,"agent_hop_count":5,
		"remaining_goals":["g2"],"goal_completion_status":{"g1":"satisfied","g2":"pending"},"critic_feedback":["need more"],
		"prior_plans":[{"plan_id":"plan_1"}],"metadata":{"prior_outputs":{"intent":{"goals":["g1","g2"]},
		"plan":{"plan_id":"plan_1"},"execution":{"status":"success"},"critic":`+critic+`}}}`)
}

func TestExampleNextStage(t *testing.T) { // 9.5
	critic := `{"verdict":"next_stage","satisfied_goals":["g1"],"feedback":"need more"}`
	steps(t, applyCritic(critic), `{"outputs":{"perception":{},"intent":{"goals":["g1","g2"]}},"current_stage":"plan",
		"current_stage_number":2,"agent_hop_count":5,"remaining_goals":["g2"],
		"goal_completion_status":{"g1":"satisfied","g2":"pending"},
		"completed_stages":[{"stage_number":1,"satisfied_goals":["g1"],"summary":{},"plan_id":"plan_1"}],
		"metadata":{"prior_outputs":{"plan":{"plan_id":"plan_1"},"execution":{"status":"success"},"critic":`+critic+`}}}`)
}

func TestExampleFinish(t *testing.T) { // 9.6
	over := applyCritic(`{"verdict":"approved","satisfied_goals":["g1","g2"],"feedback":"need more"},
		"integration":{"final_response":"done"}`)
	steps(t, over, `{"current_stage":"end","terminated":true,"terminal_reason":"completed_successfully",
		"termination_reason":"completed_successfully","completed_at":"2026-01-02T03:04:05.000000Z","agent_hop_count":5,
		"remaining_goals":[],"goal_completion_status":{"g1":"satisfied","g2":"satisfied"},
		"completed_stages":[{"stage_number":1,"satisfied_goals":["g1","g2"],"summary":{},"plan_id":"plan_1"}]}`)
}

func TestExampleBounds(t *testing.T) { // 9.7; step checks the reason beside the envelope
	steps(t, `{"llm_call_count":10}`, `{"current_stage":"perception","terminated":true,
		"terminal_reason":"max_llm_calls_exceeded","termination_reason":"LLM call limit reached (10 >= 10)",
		"completed_at":"2026-01-02T03:04:05.000000Z"}`)
}

const confirming = `{"outputs":{"perception":{},"intent":{"goals":[]},"plan":{"plan_id":"p",
	"approval":"requires_confirmation","confirmation_message":"Delete 3 files?"}}}`

const confirmAsked = `{"current_stage":"plan","agent_hop_count":2,"confirmation_pending":true,
	"confirmation_id":"conf_9084cc48154543a5","confirmation_message":"Delete 3 files?",
	"terminal_reason":"confirmation_required"}`

func TestExampleConfirm(t *testing.T) { // 9.8, 9.9
	reply := steps(t, confirming, confirmAsked)
	f := func(answer, changed string) {
		t.Helper()
		text := print(t, with(t, reply, `{"confirmation_response":`+answer+`}`))
		_, got := process(t, text)
		want(t, text, with(t, complete(t), confirming, confirmAsked,
			`{"confirmation_pending":false,"confirmation_response":`+answer+`}`, changed), got)
	}
	f("true", `{"current_stage":"execution","agent_hop_count":3,"terminal_reason":null}`)
	f("false", `{"terminated":true,"terminal_reason":"denied_by_policy","termination_reason":"User denied confirmation",
		"completed_at":"2026-01-02T03:04:05.000000Z"}`)
}

func TestExampleToolError(t *testing.T) { // 9.10
	f := func(errors, reason, text string) {
		t.Helper()
		steps(t, `{"current_stage":"execution","outputs":{"execution":{"status":"error"}},"errors":`+errors+`}`,
			`{"terminated":true,"terminal_reason":"`+reason+`","termination_reason":"`+text+`",
			"completed_at":"2026-01-02T03:04:05.000000Z"}`)
	}
	f(`[{"agent":"execution","message":"timeout","recoverable":true}]`, "tool_failed_recoverably", "timeout")
	f(`[{"agent":"execution","message":"timeout","recoverable":false}]`, "tool_failed_fatally", "timeout")
	f(`[]`, "tool_failed_fatally", "Stage execution reported an error")
}

func TestExampleOpaque(t *testing.T) { // 9.11
	over := `{"outputs":{"perception":{"n":12345678901234567890,"f":0.10}},"trace":{"a":[1]}}`
	steps(t, over, `{"current_stage":"intent","agent_hop_count":1}`)
	text, _ := process(t, print(t, with(t, base(t), over)))
	for _, literal := range []string{`"n":12345678901234567890`, `"f":0.10`, `"trace":{"a":[1]}`} {
		if !strings.Contains(text, literal) {
			t.Errorf("%s is not in %s", literal, text)
		}
	}
}

func TestExampleHTTPBody(t *testing.T) { // the envelope of 9.12
	text := `{"envelope_id":"env_00000000000000a1","raw_input":"hi","outputs":{},"current_stage":"start","terminated":false}`
	_, got := process(t, text)
	want(t, text, with(t, complete(t), emptyText, text, `{"current_stage":"perception"}`), got)
}

package envelopetest_test

import (
	"strings"
	"testing"
)

// One test per row of the second table of envelope §5.1.

func TestRowError(t *testing.T) { // a
	f := func(stage, errors, reason, text string) {
		t.Helper()
		steps(t, `{"current_stage":"plan","stage_order":["plan","x"],"outputs":{"`+stage+`":{"status":"error","approval":"denied",
			"clarification_needed":true}},"errors":`+errors+`}`, `{`+ended(reason, text)+`}`)
	}
	const soft, hard = "tool_failed_recoverably", "tool_failed_fatally"
	f("plan", `[]`, hard, "Stage plan reported an error")
	f("plan", `[{"agent":"plan","recoverable":true}]`, soft, "Stage plan reported an error")
	f("plan", `[{"agent":"plan","recoverable":true,"message":"m"},{"agent":"other","recoverable":false,"message":"n"}]`, soft, "m")
	f("plan", `[{"agent":"plan","recoverable":true,"message":"m"},{"agent":"plan","message":"n"}]`, hard, "n")
	f("plan", `[{"agent":"plan","recoverable":1,"message":7}]`, hard, "Stage plan reported an error")
	f("plan", `[{"agent":"planner","recoverable":true,"message":"m"}]`, hard, "Stage plan reported an error")
	f("planner", `[{"agent":"planner","recoverable":true,"message":"m"}]`, soft, "m")
	f("planner", `[{"agent":"plan","recoverable":true,"message":"m"}]`, soft, "m")
	f("planner", `[]`, hard, "Stage plan reported an error")
	for _, status := range []string{`"ERROR"`, `"success"`, `true`, `null`, `"errors"`, `["error"]`} {
		steps(t, `{"stage_order":["a","b"],"outputs":{"a":{"status":`+status+`}}}`, `{"current_stage":"b","agent_hop_count":1}`)
	}
}

func TestRowClarification(t *testing.T) { // b
	f := func(output, question string) {
		t.Helper()
		steps(t, `{"stage_order":["a","b"],"clarification_response":"old","clarification_question":"older?","outputs":{"a":`+output+`}}`,
			`{"current_stage":"a","clarification_pending":true,"clarification_question":`+question+`,
			"clarification_response":null,"terminal_reason":"clarification_required"}`)
	}
	f(`{"clarification_needed":true,"clarification_question":"Q?"}`, `"Q?"`)
	f(`{"clarification_needed":true,"clarification_question":"Q\u003f\n\"é"}`, `"Q?\n\"é"`)
	f(`{"clarification_needed":true}`, `null`)
	f(`{"clarification_needed":true,"clarification_question":7}`, `null`)
	f(`{"clarification_needed":true,"confirmation_needed":true,"approval":"denied"}`, `null`)
	for _, needed := range []string{`"true"`, `1`, `false`, `null`, `[true]`} {
		steps(t, `{"stage_order":["a","b"],"outputs":{"a":{"clarification_needed":`+needed+`,"clarification_question":"Q?"}}}`,
			`{"current_stage":"b","agent_hop_count":1}`)
	}
}

func TestRowConfirmation(t *testing.T) { // c
	f := func(output, id, message string) {
		t.Helper()
		steps(t, `{"stage_order":["plan","b"],"confirmation_response":true,"confirmation_message":"older","confirmation_id":"older","outputs":{"plan":`+output+`}}`,
			`{"current_stage":"plan","confirmation_pending":true,"confirmation_id":"`+id+`","confirmation_message":`+message+`,
			"confirmation_response":null,"terminal_reason":"confirmation_required"}`)
	}
	const derived = "conf_9084cc48154543a5" // the id of example 9.8: same envelope, stage, iteration, stage number
	f(`{"confirmation_needed":true,"confirmation_message":"M"}`, derived, `"M"`)
	f(`{"approval":"requires_confirmation"}`, derived, `null`)
	f(`{"approval":"requires_confirmation","confirmation_message":5,"confirmation_id":5}`, derived, `null`)
	f(`{"confirmation_needed":true,"approval":"denied","confirmation_id":"mine"}`, "mine", `null`)
	for _, member := range []string{`"confirmation_needed":"yes"`, `"confirmation_needed":false`, `"approval":"approved"`, `"approval":true`,
		`"approval":"REQUIRES_CONFIRMATION"`, `"approval":["denied"]`} {
		steps(t, `{"stage_order":["a","b"],"outputs":{"a":{`+member+`}}}`, `{"current_stage":"b","agent_hop_count":1}`)
	}
}

func TestRowConfirmationDerivesItsID(t *testing.T) { // §3.7: stage, iteration and stage number count, repeated calls agree
	seen := map[any]string{}
	for _, over := range []string{`"iteration":0`, `"iteration":1`, `"current_stage_number":2`, `"stage_order":["b"]`, `"envelope_id":"e"`} {
		stage := "a"
		if strings.Contains(over, `"b"`) {
			stage = "b"
		}
		text := print(t, with(t, base(t), `{"stage_order":["a"],"outputs":{"`+stage+`":{"confirmation_needed":true}},`+over+`}`))
		_, got := process(t, text)
		id := got["confirmation_id"]
		if other, again := seen[id]; again || !strings.HasPrefix(id.(string), "conf_") || len(id.(string)) != 21 {
			t.Errorf("id %v of %s, also of %s", id, over, other)
		}
		seen[id] = over
	}
}

func TestRowDenied(t *testing.T) { // d
	steps(t, `{"stage_order":["a","b"],"outputs":{"a":{"approval":"denied"}}}`,
		`{"current_stage":"a",`+ended("denied_by_policy", "Denied by a")+`}`)
	steps(t, `{"current_stage":"executor","stage_order":["executor","b"],"outputs":{"execution":{"approval":"denied"}}}`,
		`{`+ended("denied_by_policy", "Denied by executor")+`}`)
	steps(t, `{"stage_order":["a","b"],"outputs":{"a":{"approval":"Denied"}}}`, `{"current_stage":"b","agent_hop_count":1}`)
}

func TestRowIntent(t *testing.T) { // e
	f := func(goals, over, changed string) {
		t.Helper()
		steps(t, `{"current_stage":"intent","outputs":{"intent":{"goals":`+goals+`}}`+over+`}`,
			`{"current_stage":"plan","agent_hop_count":1`+changed+`}`)
	}
	f(`["g"]`, "", `,"all_goals":["g"],"remaining_goals":["g"],"goal_completion_status":{"g":"pending"}`)
	f(`["g",5,null,"h",["i"]]`, "",
		`,"all_goals":["g","h"],"remaining_goals":["g","h"],"goal_completion_status":{"g":"pending","h":"pending"}`)
	f(`[]`, "", "")
	f(`"g"`, "", "")
	f(`{"g":1}`, "", "")
	f(`["g","new"]`, `,"all_goals":["g"],"remaining_goals":[],"goal_completion_status":{"g":"satisfied"}`,
		`,"all_goals":["g","new"],"remaining_goals":["new"],"goal_completion_status":{"g":"satisfied","new":"pending"}`)
	f(`["g","g"]`, "", `,"all_goals":["g"],"remaining_goals":["g"],"goal_completion_status":{"g":"pending"}`)
	f(`["g","\u0067"]`, "", `,"all_goals":["g"],"remaining_goals":["g"],"goal_completion_status":{"g":"pending"}`)
	steps(t, `{"stage_order":["a","b"],"outputs":{"a":{"goals":["g"]}}}`, `{"current_stage":"b","agent_hop_count":1}`)
}

func TestRowReintent(t *testing.T) { // f
	f := func(critic, over, changed string) {
		t.Helper()
		steps(t, `{"stage_order":["intent","critic"],"current_stage":"critic","outputs":{"critic":`+critic+`}`+over+`}`,
			`{"outputs":{},"current_stage":"intent","agent_hop_count":1,"iteration":1,"metadata":{"prior_outputs":{"critic":`+critic+`}}`+
				changed+`}`)
	}
	f(`{"verdict":"reintent"}`, "", "")
	f(`{"verdict":"reintent","feedback":""}`, "", "")
	f(`{"verdict":"reintent","feedback":["x"],"satisfied_goals":"g"}`, "", "")
	f(`{"verdict":"reintent","feedback":"x"}`, `,"critic_feedback":["w"]`, `,"critic_feedback":["w","x"]`)
	f(`{"verdict":"reintent","summary":{"s":1}}`, `,"prior_plans":[{"a":1.50}]`, "")
	f(`{"verdict":"reintent"}`, `,"max_iterations":1,"iteration":0.0`, "")
}

func TestRowReintentBeyondTheBudget(t *testing.T) { // D15
	steps(t, `{"iteration":3,`+applyCritic(`{"verdict":"reintent"}`)[1:],
		`{"outputs":{"perception":{}},"current_stage":"intent","agent_hop_count":5,"iteration":4,"prior_plans":[{"plan_id":"plan_1"}],
		"metadata":{"prior_outputs":{"intent":{"goals":["g1","g2"]},"plan":{"plan_id":"plan_1"},"execution":{"status":"success"},
		"critic":{"verdict":"reintent"}}},`+ended("max_iterations_exceeded", "Iteration limit exceeded (4 > 3)")+`}`)
}

func TestRowNextStage(t *testing.T) { // g, and where it becomes h
	critic := `{"verdict":"next_stage","goal_updates":{"satisfied":["g1"]},"summary":{"n":1.0}}`
	entry := `[{"stage_number":4,"satisfied_goals":["g1"],"summary":{"n":1.0},"plan_id":"plan_1"}]`
	in := func(over string) string { return `{` + over + `,"current_stage_number":4,` + applyCritic(critic)[1:] }
	rest := `"goal_completion_status":{"g1":"satisfied","g2":"pending"},"remaining_goals":["g2"],"agent_hop_count":5,
		"completed_stages":` + entry
	steps(t, in(`"max_stages":5`), `{"current_stage":"plan","current_stage_number":5,`+rest+`,
		"outputs":{"perception":{},"intent":{"goals":["g1","g2"]}},"metadata":{"prior_outputs":
		{"plan":{"plan_id":"plan_1"},"execution":{"status":"success"},"critic":`+critic+`}}}`)
	steps(t, in(`"max_stages":4`), `{"current_stage":"integration",`+rest+`}`)
	steps(t, in(`"max_stages":3`), `{"current_stage":"integration",`+rest+`}`)
	all := `{"verdict":"next_stage","satisfied_goals":["g1","g2"]}`
	steps(t, applyCritic(all), `{"current_stage":"integration","agent_hop_count":5,"remaining_goals":[],
		"goal_completion_status":{"g1":"satisfied","g2":"satisfied"},
		"completed_stages":[{"stage_number":1,"satisfied_goals":["g1","g2"],"summary":{},"plan_id":"plan_1"}]}`)
}

func TestRowApproved(t *testing.T) { // h
	f := func(critic, goals, errors string) {
		t.Helper()
		steps(t, `{"stage_order":["critic","z"],"outputs":{"critic":`+critic+`}}`, `{"current_stage":"z","agent_hop_count":1,
			"completed_stages":[{"stage_number":1,"satisfied_goals":`+goals+`,"summary":{},"plan_id":null}],"errors":`+errors+
			statuses(goals)+`}`)
	}
	f(`{}`, `[]`, `[]`)
	f(`{"verdict":"approved","satisfied_goals":["g"]}`, `["g"]`, `[]`)
	f(`{"verdict":"approved","satisfied_goals":["g",1,null],"goal_updates":{"satisfied":["h"]}}`, `["g"]`, `[]`)
	f(`{"verdict":"approved","satisfied_goals":5,"goal_updates":{"satisfied":["g"]}}`, `["g"]`, `[]`)
	f(`{"verdict":"approved","goal_updates":["g"]}`, `[]`, `[]`)
	f(`{"verdict":5}`, `[]`, `[]`)
	f(`{"verdict":""}`, `[]`, `[]`)
	f(`{"verdict":null,"summary":"s"}`, `[]`, `[]`)
	f(`{"verdict":"next_stage"}`, `[]`, `[]`)
	f(`{"verdict":"maybe"}`, `[]`, unknownVerdict("maybe"))
	f(`{"verdict":"APPROVED","satisfied_goals":["g"]}`, `["g"]`, unknownVerdict("APPROVED"))
	steps(t, `{"stage_order":["critic"],"outputs":{"critic":{"summary":{"a":[1.50]}},"plan":{"plan_id":5}}}`,
		`{"current_stage":"end",`+ended("completed_successfully", "completed_successfully")+`,
		"completed_stages":[{"stage_number":1,"satisfied_goals":[],"summary":{"a":[1.50]},"plan_id":null}]}`)
	steps(t, `{"stage_order":["other","z"],"outputs":{"other":{"verdict":"reintent","satisfied_goals":["g"]}}}`,
		`{"current_stage":"z","agent_hop_count":1}`)
}

func statuses(goals string) string {
	if goals == "[]" {
		return ""
	}
	return `,"goal_completion_status":{"g":"satisfied"}`
}

func unknownVerdict(verdict string) string {
	return `[{"agent":"critic","error_type":"UnknownVerdict","message":"*","timestamp":"2026-01-02T03:04:05.000000Z",
		"recoverable":true,"details":{"verdict":"` + verdict + `"}}]`
}

func TestRowOtherwise(t *testing.T) { // i
	steps(t, `{"stage_order":["a","b","c"],"outputs":{"a":{},"b":{}}}`, `{"current_stage":"c","agent_hop_count":2}`)
	steps(t, `{"stage_order":["a","start","b"],"outputs":{"a":{}}}`, `{"current_stage":"b","agent_hop_count":1}`)
	steps(t, `{"stage_order":["a","b","end"],"outputs":{"a":{},"b":{}}}`,
		`{"current_stage":"end","agent_hop_count":1,`+ended("completed_successfully", "completed_successfully")+`}`)
	steps(t, `{"stage_order":["plan","x"],"outputs":{"planner":{}}}`, `{"current_stage":"x","agent_hop_count":1}`)
	steps(t, `{"stage_order":["executor","x"],"outputs":{"execution":{}}}`, `{"current_stage":"x","agent_hop_count":1}`)
	steps(t, `{"stage_order":["a","b"],"current_stage":"b","outputs":{"a":{}}}`, `{}`)
	steps(t, `{"stage_order":["a","b"],"outputs":{"a":null}}`, `{"current_stage":"a","outputs":{}}`)
	steps(t, `{"stage_order":["a\u0062","c"],"outputs":{"ab":{}}}`, `{"current_stage":"c","agent_hop_count":1}`)
}

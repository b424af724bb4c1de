package envelopetest_test

import "testing"

// TestGoalDefaults: remaining_goals and goal_completion_status complete each other (envelope §3.2).
func TestGoalDefaults(t *testing.T) {
	f := func(over, changed string) {
		t.Helper()
		steps(t, `{"current_stage":"plan",`+over+`}`, `{`+changed+`}`)
	}
	f(`"all_goals":["a","b"]`, `"remaining_goals":["a","b"],"goal_completion_status":{"a":"pending","b":"pending"}`)
	f(`"all_goals":["a","b"],"remaining_goals":[]`, `"goal_completion_status":{"a":"satisfied","b":"satisfied"}`)
	f(`"all_goals":["a","b"],"remaining_goals":["b"]`, `"goal_completion_status":{"a":"satisfied","b":"pending"}`)
	f(`"all_goals":["a","b"],"remaining_goals":null,"goal_completion_status":null`,
		`"remaining_goals":["a","b"],"goal_completion_status":{"a":"pending","b":"pending"}`)
	f(`"all_goals":["a","b","c","d","e"],"goal_completion_status":{"a":"satisfied","b":"complete","c":"failed","d":"pending","z":"satisfied"}`,
		`"remaining_goals":["c","d","e"],"goal_completion_status":{"a":"satisfied","b":"complete","c":"failed","d":"pending",
		"z":"satisfied","e":"pending"}`)
	f(`"all_goals":["a"],"remaining_goals":["a"],"goal_completion_status":{"a":"satisfied"}`, `"max_stages":5`)
	f(`"all_goals":["a"],"remaining_goals":["x"],"goal_completion_status":{"y":"odd"}`,
		`"goal_completion_status":{"y":"odd","a":"satisfied"}`)
	f(`"remaining_goals":["x"]`, `"all_goals":[],"goal_completion_status":{}`)
	f(`"all_goals":["\u0061"],"goal_completion_status":{"a":"satisfied"}`, `"remaining_goals":[]`)
	f(`"terminated":true,"all_goals":["a"]`, `"remaining_goals":["a"],"goal_completion_status":{"a":"pending"}`)
}

// TestGoalsAdded: each new string, to both lists, pending (envelope §5.1, Goals).
func TestGoalsAdded(t *testing.T) {
	f := func(goals, over, changed string) {
		t.Helper()
		steps(t, `{"stage_order":["intent","x"],"outputs":{"intent":{"goals":`+goals+`}}`+over+`}`,
			`{"current_stage":"x","agent_hop_count":1`+changed+`}`)
	}
	f(`["a","b"]`, `,"all_goals":["b","c"],"remaining_goals":["c"],"goal_completion_status":{"b":"failed","c":"pending"}`,
		`,"all_goals":["b","c","a"],"remaining_goals":["c","a"],"goal_completion_status":{"b":"failed","c":"pending","a":"pending"}`)
	f(`["z"]`, `,"all_goals":["a"],"remaining_goals":["a"],"goal_completion_status":{"a":"pending","z":"satisfied"}`,
		`,"all_goals":["a","z"],"remaining_goals":["a","z"],"goal_completion_status":{"a":"pending","z":"pending"}`)
	f(`["é\n\"","\ud83d\ude00"]`, ``, `,"all_goals":["é\n\"","😀"],"remaining_goals":["é\n\"","😀"],
		"goal_completion_status":{"é\n\"":"pending","😀":"pending"}`)
}

// TestGoalsSatisfied: also goals that are not in all_goals (envelope §5.1, Goals).
func TestGoalsSatisfied(t *testing.T) {
	f := func(goals, over, changed string) {
		t.Helper()
		critic := `{"verdict":"reintent","satisfied_goals":` + goals + `}`
		steps(t, `{"stage_order":["critic"],"outputs":{"critic":`+critic+`}`+over+`}`,
			`{"current_stage":"critic","iteration":1,"outputs":{},"metadata":{"prior_outputs":{"critic":`+critic+`}}`+changed+`}`)
	}
	known := `,"all_goals":["a","b"],"remaining_goals":["a","b"],"goal_completion_status":{"a":"pending","b":"failed"}`
	f(`["a"]`, known, `,"remaining_goals":["b"],"goal_completion_status":{"a":"satisfied","b":"failed"}`)
	f(`["b","a"]`, known, `,"remaining_goals":[],"goal_completion_status":{"a":"satisfied","b":"satisfied"}`)
	f(`["z"]`, known, `,"goal_completion_status":{"a":"pending","b":"failed","z":"satisfied"}`)
	f(`[5,null]`, known, ``)
	f(`["\u0061","b"]`, known, `,"remaining_goals":[],"goal_completion_status":{"a":"satisfied","b":"satisfied"}`)
	f(`["a"]`, `,"remaining_goals":["a","x"]`, `,"all_goals":[],"remaining_goals":["x"],"goal_completion_status":{"a":"satisfied"}`)
}

// TestRewindTargets: where f and g go in orders that lack the documented names, and when they
// become i and h.
func TestRewindTargets(t *testing.T) {
	const goal = `"all_goals":["g"],"remaining_goals":["g"],"goal_completion_status":{"g":"pending"}`
	f := func(order, verdict, changed string) {
		t.Helper()
		steps(t, `{"stage_order":`+order+`,"current_stage":"critic","outputs":{"a":{},"critic":{"verdict":"`+verdict+`"}},`+goal+`}`,
			`{`+changed+`}`)
	}
	moved := `"outputs":{"a":{}},"agent_hop_count":1,`
	prior := func(verdict string) string {
		return `"metadata":{"prior_outputs":{"critic":{"verdict":"` + verdict + `"}}}`
	}
	f(`["a","intent","critic"]`, "reintent", moved+`"current_stage":"intent","iteration":1,`+prior("reintent"))
	f(`["intent","a","critic"]`, "reintent", `"outputs":{},"agent_hop_count":1,"current_stage":"intent","iteration":1,
		"metadata":{"prior_outputs":{"a":{},"critic":{"verdict":"reintent"}}}`)
	f(`["b","critic","z"]`, "reintent", moved+`"current_stage":"b","iteration":1,`+prior("reintent"))
	f(`["critic","z"]`, "reintent", `"outputs":{"a":{}},"iteration":1,`+prior("reintent"))
	f(`["b","critic","intent"]`, "reintent", `"current_stage":"intent","agent_hop_count":1`)
	f(`["critic","intent","z"]`, "reintent", `"current_stage":"intent","agent_hop_count":1`)
	entry := `"current_stage_number":2,"completed_stages":[{"stage_number":1,"satisfied_goals":[],"summary":{},"plan_id":null}],`
	f(`["plan","critic"]`, "next_stage", moved+entry+`"current_stage":"plan",`+prior("next_stage"))
	f(`["intent","planner","critic"]`, "next_stage", moved+entry+`"current_stage":"planner",`+prior("next_stage"))
	f(`["planner","plan","critic"]`, "next_stage", moved+entry+`"current_stage":"plan",`+prior("next_stage"))
	f(`["x","intent","y","critic"]`, "next_stage", moved+entry+`"current_stage":"y",`+prior("next_stage"))
	f(`["x","critic","intent"]`, "next_stage", moved+entry+`"current_stage":"x",`+prior("next_stage"))
	f(`["critic","intent"]`, "next_stage", `"outputs":{"a":{}},`+entry+prior("next_stage"))
	f(`["x","y","critic"]`, "next_stage", moved+entry+`"current_stage":"x",`+prior("next_stage"))
	f(`["intent","critic","z"]`, "next_stage", `"outputs":{"a":{}},`+entry+prior("next_stage"))
	stays := `"completed_stages":[{"stage_number":1,"satisfied_goals":[],"summary":{},"plan_id":null}],"agent_hop_count":1,`
	f(`["critic","plan","z"]`, "next_stage", stays+`"current_stage":"plan"`)
	f(`["intent","critic","planner"]`, "next_stage", stays+`"current_stage":"planner"`)
	f(`["critic","intent","y"]`, "next_stage", stays+`"current_stage":"intent"`)
}

// TestReintentBecomesOtherwise: goals satisfied, nothing else.
func TestReintentBecomesOtherwise(t *testing.T) {
	steps(t, `{"stage_order":["critic","intent"],"outputs":{"plan":{"plan_id":"p"},
		"critic":{"verdict":"reintent","satisfied_goals":["g"],"feedback":"f"}},"all_goals":["g"]}`,
		`{"current_stage":"intent","agent_hop_count":1,"remaining_goals":[],"goal_completion_status":{"g":"satisfied"}}`)
}

// TestGoalsAfterRewind: a second intent output adds only what is new.
func TestGoalsAfterRewind(t *testing.T) {
	_, got := process(t, print(t, with(t, base(t), applyCritic(`{"verdict":"reintent","satisfied_goals":["g1"]}`))))
	got["outputs"] = parse(t, `{"perception":{},"intent":{"goals":["g1","g2","g3"]}}`)
	text := print(t, got)
	_, next := process(t, text)
	want(t, text, with(t, got, `{"current_stage":"plan","agent_hop_count":6,"all_goals":["g1","g2","g3"],"remaining_goals":["g2","g3"],
		"goal_completion_status":{"g1":"satisfied","g2":"pending","g3":"pending"}}`), next)
}

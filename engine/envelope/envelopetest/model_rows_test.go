package envelopetest_test

import (
	"slices"
	"strings"
)

// order is O: the stages in their order, the six documented ones where nothing else is known.
func (d document) order() []string {
	names, _ := texts(d.get("stage_order"))
	names = slices.DeleteFunc(names, pseudo)
	cs := d.text("current_stage")
	if len(names) == 0 && (pseudo(cs) || slices.Contains(sixStages, cs)) {
		return d.model.stages
	}
	return names
}

var aliases = map[string]string{"plan": "planner", "planner": "plan", "execution": "executor", "executor": "execution"}

// key is the output key of a stage, "" for none.
func (d document) key(stage string) string {
	outputs := d.object("outputs")
	if _, ok := outputs[stage]; ok {
		return stage
	}
	if other, ok := aliases[stage]; ok {
		if _, ok := outputs[other]; ok {
			return other
		}
	}
	return ""
}

func (d document) outputMember(key, name string) any {
	output, _ := d.object("outputs")[key].(map[string]any)
	return output[name]
}

// consume is S8: it advances over outputs and reports whether S9 has to look at the stage it
// stopped at.
func (d document) consume() (dispatch bool) {
	for {
		stage := d.text("current_stage")
		key := d.key(stage)
		if key == "" {
			return true
		}
		output := d.object("outputs")[key].(map[string]any)
		if d.stop(stage, key, output) {
			return false
		}
		if goals, ok := texts(output["goals"]); key == "intent" && ok { // e
			d.addGoals(goals)
		}
		if key == "critic" && d.applyCritic(stage, output) { // f, g
			return true
		}
		order := d.order()
		at := slices.Index(order, stage)
		if at < 0 || d.advance(order, at) { // i
			return false
		}
	}
}

// stop is rows a to d.
func (d document) stop(stage, key string, output map[string]any) bool {
	approval, _ := output["approval"].(string)
	switch {
	case output["status"] == "error":
		d.fail(stage, key)
	case output["clarification_needed"] == true:
		d.raise(clarification, stage, output["clarification_question"], nil)
	case output["confirmation_needed"] == true, approval == "requires_confirmation":
		d.raise(confirmation, stage, output["confirmation_message"], output["confirmation_id"])
	case approval == "denied":
		d.terminate("denied_by_policy", "Denied by "+stage)
	default:
		return false
	}
	return true
}

func (d document) fail(stage, key string) {
	reason, text := "tool_failed_fatally", "Stage "+stage+" reported an error"
	for _, e := range slices.Backward(d.list("errors")) {
		entry := e.(map[string]any)
		if entry["agent"] != stage && entry["agent"] != key {
			continue
		}
		text = messageOr(entry, text)
		if entry["recoverable"] == true {
			reason = "tool_failed_recoverably"
		}
		break
	}
	d.terminate(reason, text)
}

// applyCritic is rows f, g and h; true when it rewound.
func (d document) applyCritic(stage string, output map[string]any) bool {
	order := d.order()
	goals := satisfiedGoals(output)
	verdict, _ := output["verdict"].(string)
	d.satisfy(goals)
	if verdict == "reintent" {
		target := firstOf(order, stage, "intent")
		if slices.Index(order, target) > slices.Index(order, stage) {
			return false
		}
		d.reintent(output, target)
		return true
	}
	target := d.replanTarget(order, stage)
	d.push("completed_stages", d.record(output, goals))
	more := len(d.list("remaining_goals")) > 0 && d.number("current_stage_number") < d.number("max_stages")
	if verdict == "next_stage" && more && slices.Index(order, target) <= slices.Index(order, stage) {
		d.bump("current_stage_number")
		d.rewind(target)
		return true
	}
	if !slices.Contains([]string{"", "approved", "next_stage"}, verdict) {
		d.push("errors", map[string]any{"agent": stage, "error_type": "UnknownVerdict", "message": "*",
			"timestamp": d.model.now, "recoverable": true, "details": map[string]any{"verdict": verdict}})
	}
	return false
}

func (d document) reintent(output map[string]any, target string) {
	if s, _ := output["feedback"].(string); s != "" {
		d.push("critic_feedback", s)
		if d.newFeedback {
			d.root["loop_feedback"] = d.get("critic_feedback")
		}
	}
	if plan, ok := d.object("outputs")["plan"]; ok {
		d.push("prior_plans", clone(plan))
	}
	d.bump("iteration")
	d.rewind(target)
}

func (d document) replanTarget(order []string, stage string) string {
	after := slices.Index(order, "intent") + 1
	if !slices.Contains(order, "plan") && !slices.Contains(order, "planner") && after > 0 && after < len(order) {
		return order[after]
	}
	return firstOf(order, stage, "plan", "planner")
}

func satisfiedGoals(output map[string]any) []string {
	if goals, ok := texts(output["satisfied_goals"]); ok {
		return goals
	}
	updates, _ := output["goal_updates"].(map[string]any)
	goals, _ := texts(updates["satisfied"])
	return goals
}

func (d document) record(output map[string]any, goals []string) map[string]any {
	summary, ok := output["summary"].(map[string]any)
	if !ok {
		summary = map[string]any{}
	}
	var plan any
	if id, ok := d.outputMember("plan", "plan_id").(string); ok {
		plan = id
	}
	return map[string]any{"stage_number": number(d.number("current_stage_number")), "satisfied_goals": anys(goals),
		"summary": clone(summary), "plan_id": plan}
}

// firstOf is the first of the names that is a stage, else the first stage, else cs.
func firstOf(order []string, cs string, names ...string) string {
	for _, name := range names {
		if slices.Contains(order, name) {
			return name
		}
	}
	if len(order) > 0 {
		return order[0]
	}
	return cs
}

// advance moves to the stage after order[at]; true when there is none and the envelope is complete.
func (d document) advance(order []string, at int) bool {
	if at == len(order)-1 {
		d.finish()
		return true
	}
	d.move(order, order[at+1])
	return false
}

func (d document) move(order []string, to string) {
	cs := d.text("current_stage")
	d.set("current_stage", to)
	if cs != to && slices.Contains(order, cs) {
		d.bump("agent_hop_count")
	}
}

func (d document) rewind(to string) {
	order := d.order()
	stages := []string{to}
	if at := slices.Index(order, to); at >= 0 {
		stages = order[at:]
	}
	outputs, metadata := d.object("outputs"), d.object("metadata")
	for _, stage := range stages {
		for key := d.key(stage); key != ""; key = d.key(stage) {
			prior, ok := metadata["prior_outputs"].(map[string]any)
			if !ok {
				prior = map[string]any{}
				metadata["prior_outputs"] = prior
			}
			prior[key] = outputs[key]
			delete(outputs, key)
		}
	}
	d.move(order, to)
}

func (d document) addGoals(goals []string) {
	for _, goal := range goals {
		if slices.Contains(d.list("all_goals"), any(goal)) {
			continue
		}
		d.push("all_goals", goal)
		if !slices.Contains(d.list("remaining_goals"), any(goal)) { // It may have come in without being in all_goals.
			d.push("remaining_goals", goal)
		}
		d.object("goal_completion_status")[goal] = "pending"
	}
}

func (d document) satisfy(goals []string) {
	for _, goal := range goals {
		d.object("goal_completion_status")[goal] = "satisfied"
		d.set("remaining_goals", slices.DeleteFunc(slices.Clone(d.list("remaining_goals")),
			func(other any) bool { return other == goal }))
	}
}

func (d document) finish() {
	d.set("current_stage", "end")
	d.terminate("completed_successfully", "completed_successfully")
}

func (d document) terminate(reason, text string) {
	d.set("terminated", true)
	d.setReason(reason)
	d.set("termination_reason", text)
	d.stamp()
}

func (d document) stamp() {
	if d.get("completed_at") == nil {
		d.set("completed_at", d.model.now)
	}
}

// wireReasons are the spellings of envelope §3.4 that differ by more than case.
var wireReasons = map[string]string{"completed_successfully": "COMPLETED", "denied_by_policy": "POLICY_VIOLATION"}

func wireReason(reason string) string {
	if s, ok := wireReasons[reason]; ok {
		return s
	}
	return strings.ToUpper(reason)
}

// canonical is the left column's spelling of a reason in any case of either column; free text
// stays.
func canonical(reason string) string {
	lower := strings.ToLower(reason)
	for left := range reasons {
		if lower == left || lower == strings.ToLower(wireReason(left)) {
			return left
		}
	}
	return reason
}

// setReason writes a reason in the shape's spelling; a value that is the same already keeps its
// own. The nested shape names no reason before the end (envelope §3.4).
func (d document) setReason(reason string) {
	switch {
	case !d.nested && reason == "":
		d.set("terminal_reason", nil)
	case d.nested && (reason == "" || !d.flag("terminated")):
		d.unset("terminal_reason")
	case d.nested:
		d.set("terminal_reason", wireReason(reason))
	default:
		d.set("terminal_reason", reason)
	}
}

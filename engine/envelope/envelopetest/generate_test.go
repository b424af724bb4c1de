package envelopetest_test

import (
	"encoding/json"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// envelopes generates the texts of envelopes.
func envelopes() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string { return print(t, draws{t}.envelope()) })
}

// draws makes random envelopes. Values that matter to the engine are likely, odd ones possible,
// invalid ones left out.
type draws struct{ t *rapid.T }

// chance is false where rapid shrinks, so that failing envelopes come out small.
func (d draws) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(d.t, "chance") >= 100-percent
}
func (d draws) small(from, to int) int { return rapid.IntRange(from, to).Draw(d.t, "n") }

func pick[T any](d draws, of ...T) T { return of[d.small(0, len(of)-1)] }

// some is a random selection of the list in its order.
func (d draws) some(of []string, percent int) []string {
	return slices.DeleteFunc(slices.Clone(of), func(string) bool { return !d.chance(percent) })
}

var (
	stagePool = []string{"perception", "intent", "plan", "planner", "execution", "executor", "critic", "integration", "a", "b"}
	goalPool  = []string{"g1", "g2", "g3", "gé\""}
	orders    = [][]string{nil, {}, sixStages, sixStages, sixStages, sixStages, {"perception", "intent", "planner", "executor", "critic", "integration"},
		{"a", "b", "critic"}, {"critic", "intent", "plan"}, {"intent", "critic", "plan", "a"}, {"start", "plan", "end", "critic"}, {"end"},
		{"plan", "planner", "critic"}}
)

// envelope draws a flat envelope, or a nested one with the same content.
func (d draws) envelope() object {
	flat := d.flat()
	if !d.chance(40) {
		return flat
	}
	doc := document{root: object{"identity": object{}, "pipeline": object{}, "bounds": object{}}, nested: true}
	for key, v := range flat {
		if !flagOnly(key) && key != "loop_feedback" && !(v == nil && slices.Contains(nullable, key)) {
			doc.set(key, v)
		}
	}
	if doc.text("envelope_id") == "" {
		doc.set("envelope_id", "e")
	}
	return doc.root
}

// notNulled have a meaning of null of their own, and tests of their own.
var notNulled = append([]string{"outputs", "interrupt_pending", "tool_call_count", "tokens_in", "loop_feedback"}, nullable...)

var nullable = []string{"terminal_reason", "termination_reason", "completed_at", "interrupt"}

func (d draws) flat() object {
	m := object{"outputs": d.outputs()}
	d.identity(m)
	d.goals(m)
	d.questions(m)
	d.counters(m)
	d.ending(m)
	d.lists(m)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if m[key] != nil && !slices.Contains(notNulled, key) && d.chance(2) {
			m[key] = nil // null is the default
		}
	}
	return m
}

func (d draws) identity(m object) {
	order := orders[d.small(0, len(orders)-1)]
	if d.chance(10) {
		order = rapid.Permutation(stagePool).Draw(d.t, "order")[:d.small(1, 7)]
	}
	if order != nil {
		m["stage_order"] = anys(order)
	}
	stages := append(slices.Clone(order), order...)
	m["current_stage"] = pick(d, append(stages, "start", "start", "plan", "critic", "intent", "clarification", "confirmation", "end", "a",
		"planner", "zzz", "")...)
	for _, key := range []string{"envelope_id", "request_id", "user_id", "session_id", "raw_input"} {
		if d.chance(70) {
			m[key] = pick(d, "e1", "r\u00e9\"<&>", "x", "env_0123456789abcdef")
		}
	}
	if d.chance(30) {
		m["received_at"] = pick(d, "2025-12-10T10:00:00.123456", "2025-12-10 10:00", "2025-12-10T10:00:00,5+0100")
	}
	if d.chance(30) {
		m["request_context"] = d.opaque()
	}
}

func (d draws) outputs() object {
	m := object{}
	keep := pick(d, 0, 20, 50, 80)
	for _, key := range d.some(stagePool, keep) {
		if slices.Contains([]string{"planner", "executor"}, key) && d.chance(70) {
			continue
		}
		m[key] = d.output(key)
	}
	if d.chance(5) {
		m[pick(d, stagePool...)] = nil
	}
	return m
}

// output is an agent's answer; most do not stop the line.
func (d draws) output(key string) object {
	m := object{}
	if d.chance(30) {
		m["data"] = d.opaque()
	}
	set := func(percent int, name string, v ...any) {
		if d.chance(percent) {
			m[name] = pick(d, v...)
		}
	}
	set(10, "status", "success", "success", "error", "ERROR", true, nil)
	set(6, "clarification_needed", true, true, false, "true", nil)
	set(10, "clarification_question", "Which?", "W\n\"é", 5, nil)
	set(4, "confirmation_needed", true, false, 1)
	set(8, "approval", "requires_confirmation", "denied", "approved", true)
	set(8, "confirmation_message", "Sure?", 5)
	set(8, "confirmation_id", "c1", 5)
	if key == "intent" || d.chance(5) {
		set(60, "goals", d.goalList(), d.goalList(), "g1", nil)
	}
	if key == "plan" || d.chance(5) {
		set(70, "plan_id", "plan_1", "p2", 7)
	}
	if key == "critic" || d.chance(5) {
		set(85, "verdict", "reintent", "reintent", "next_stage", "next_stage", "approved", "odd", "Reintent", 5, nil)
		set(60, "satisfied_goals", d.goalList(), d.goalList(), "g1")
		set(30, "goal_updates", object{"satisfied": d.goalList()}, object{"satisfied": "g1"}, []any{})
		set(40, "feedback", "do more", "", []any{"x"})
		set(30, "summary", object{"done": json.Number("1.50")}, "text")
	}
	return m
}

func (d draws) goalList() any {
	list := anys(d.some(goalPool, 40))
	if d.chance(15) {
		list = append(list, pick[any](d, json.Number("1.0"), nil, object{}))
	}
	return list
}

func (d draws) goals(m object) {
	if d.chance(50) {
		return
	}
	all := d.some(goalPool, 60)
	m["all_goals"] = anys(all)
	if d.chance(50) {
		m["remaining_goals"] = anys(d.some(all, 60))
	}
	if d.chance(50) {
		status := object{}
		for _, goal := range d.some(goalPool, 50) {
			status[goal] = pick(d, "pending", "satisfied", "failed", "complete", "odd")
		}
		m["goal_completion_status"] = status
	}
}

func (d draws) questions(m object) {
	set := func(percent int, name string, v ...any) {
		if d.chance(percent) {
			m[name] = pick(d, v...)
		}
	}
	set(12, "clarification_pending", true, true, false)
	set(12, "clarification_question", "Old?", nil)
	set(25, "clarification_response", "the answer", "", nil)
	set(12, "confirmation_pending", true, true, false)
	set(12, "confirmation_id", "c0")
	set(12, "confirmation_message", "Old!")
	set(25, "confirmation_response", true, false, nil)
	set(30, "interrupt_pending", true, true, false)
	if d.chance(25) {
		m["interrupt"] = d.interrupt()
	}
}

func (d draws) interrupt() any {
	m := object{"kind": pick(d, "clarification", "CLARIFICATION", "confirmation", "Confirmation", "checkpoint", "agent_review", "odd"), "id": "c0"}
	if d.chance(50) {
		m["question"], m["message"] = "Int?", "Int!"
	}
	if d.chance(20) {
		m["extra"] = d.opaque()
	}
	if d.chance(50) {
		m["response"] = pick[any](d, nil, object{}, object{"text": "told"}, object{"approved": true}, object{"approved": false},
			object{"text": "told", "approved": true, "received_at": "then"}, object{"decision": "approve", "text": 5})
	}
	return m
}

// counters stand near their bounds, and now and then at the end of the range.
func (d draws) counters(m object) {
	for _, pair := range [][2]string{{"iteration", "max_iterations"}, {"llm_call_count", "max_llm_calls"},
		{"agent_hop_count", "max_agent_hops"}, {"current_stage_number", "max_stages"}} {
		limit := d.small(1, 9)
		if d.chance(50) {
			m[pair[1]] = spelled(d, limit)
		}
		if d.chance(60) {
			m[pair[0]] = spelled(d, max(d.small(limit-5, limit+1), 1))
		}
		if d.chance(3) {
			m[pair[0]], m[pair[1]] = json.Number("2147483647"), json.Number("2147483647")
		}
	}
	for _, key := range []string{"tool_call_count", "tokens_in"} {
		if d.chance(10) {
			m[key] = spelled(d, d.small(0, 9))
		}
	}
}

// spelled is a whole number in one of its spellings.
func spelled(d draws, n int) json.Number {
	return json.Number(number(int64(n)).String() + pick(d, "", "", "", ".0", "e0", ".00E+0"))
}

func (d draws) ending(m object) {
	if d.chance(4) {
		m["terminated"] = pick(d, true, false)
	}
	if d.chance(12) {
		m["terminal_reason"] = pick[any](d, nil, "clarification_required", "CONFIRMATION_REQUIRED", "confirmation_required", "user_cancelled",
			"COMPLETED", "Max_Iterations_Exceeded", "free text")
	}
	if d.chance(5) {
		m["termination_reason"] = "before"
	}
	if d.chance(5) {
		m["completed_at"] = pick[any](d, nil, "2025-01-01 00:00")
	}
}

func (d draws) lists(m object) {
	if d.chance(25) {
		errors := []any{}
		for range d.small(1, 3) {
			errors = append(errors, d.failure())
		}
		m["errors"] = errors
	}
	for _, key := range []string{"prior_plans", "completed_stages", "processing_history"} {
		if d.chance(15) {
			m[key] = []any{d.opaque()}
		}
	}
	for _, key := range []string{"critic_feedback", "loop_feedback"} {
		if d.chance(15) {
			m["critic_feedback"] = []any{"earlier"}
			m[key] = []any{"earlier"}
		}
	}
	if d.chance(40) {
		metadata := d.opaque()
		if d.chance(40) {
			metadata["prior_outputs"] = object{"plan": object{"old": true}, "x": nil}
		}
		m["metadata"] = metadata
	}
}

func (d draws) failure() object {
	m := object{"agent": pick[any](d, append(anys(stagePool), nil)...)}
	if d.chance(70) {
		m["recoverable"] = pick[any](d, true, false, false, "false")
	}
	if d.chance(60) {
		m["message"] = pick[any](d, "timeout", "no \"disk\"", 5)
	}
	return m
}

func (d draws) opaque() object {
	return pick(d, object{}, object{"n": json.Number("1.50"), "big": json.Number("12345678901234567890")},
		object{"deep": []any{object{"status": "error"}, nil, "é"}}, object{"e": json.Number("1E+2"), "": false})
}

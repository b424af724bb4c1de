package envelopetest_test

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// member is one row of envelope §3.2.
type member struct {
	key   string
	check func(any) bool
	// fill gives the default; nil leaves a nullable member null.
	fill func(document) any
	// blank reports that "" counts as missing.
	blank bool
	// omitted members are not added to the nested shape; dialect members not to the flat one.
	omitted, dialect bool
}

func is[T any](v any) bool { _, ok := v.(T); return ok }

func every(check func(any) bool) func(any) bool {
	return func(v any) bool {
		l, ok := v.([]any)
		return ok && !slices.ContainsFunc(l, func(item any) bool { return !check(item) })
	}
}

func atLeast(least int64) func(any) bool {
	return func(v any) bool {
		n, ok := integer(v)
		return ok && n >= least && n <= 1<<31-1
	}
}

func textMap(v any) bool {
	m, ok := v.(map[string]any)
	for _, status := range m {
		ok = ok && is[string](status)
	}
	return ok
}

func stageNames(v any) bool {
	seen := map[any]bool{"": true}
	return every(is[string])(v) && every(func(name any) bool {
		again := seen[name]
		seen[name] = true
		return !again
	})(v)
}

var timeShape = regexp.MustCompile(
	`^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?([Zz]|[+-]\d\d(:?\d\d)?)?$`)

// isTime takes the spellings of envelope §3.6; the calendar is the standard library's.
func isTime(v any) bool {
	s, ok := v.(string)
	if !ok || !timeShape.MatchString(s) {
		return false
	}
	clock := s[11:16] + ":00"
	if len(s) > 16 && s[16] == ':' {
		clock = s[11:19]
	}
	if zone := strings.TrimLeft(timeShape.FindStringSubmatch(s)[3], "Zz+-"); zone != "" && (zone[:2] > "23" || zone[len(zone)-2:] > "59") {
		return false
	}
	_, err := time.Parse("2006-01-02 15:04:05", s[:10]+" "+clock)
	return err == nil
}

// isID: ids are short (envelope §3.7).
func isID(v any) bool { s, ok := v.(string); return ok && len(s) <= 1024 }

func always(v any) func(document) any { return func(document) any { return clone(v) } }
func ids(prefix string) func(document) any {
	return func(d document) any { return prefix + d.model.id }
}
func now(d document) any { return d.model.now }

var rows = []member{
	{key: "envelope_id", check: isID, fill: ids("env_"), blank: true},
	{key: "request_id", check: isID, fill: ids("req_"), blank: true},
	{key: "session_id", check: isID, fill: ids("sess_"), blank: true},
	{key: "user_id", check: is[string], fill: always("anonymous"), blank: true},
	{key: "raw_input", check: is[string], fill: always("")},
	{key: "received_at", check: isTime, fill: now},
	{key: "outputs", check: is[map[string]any], fill: always(map[string]any{})},
	{key: "current_stage", check: is[string], fill: always("start"), blank: true},
	{key: "stage_order", check: stageNames, fill: always([]any{})},
	{key: "iteration", check: atLeast(0), fill: always(number(0))},
	{key: "max_iterations", check: atLeast(1), fill: always(number(3))},
	{key: "llm_call_count", check: atLeast(0), fill: always(number(0))},
	{key: "max_llm_calls", check: atLeast(1), fill: always(number(10))},
	{key: "agent_hop_count", check: atLeast(0), fill: always(number(0))},
	{key: "max_agent_hops", check: atLeast(1), fill: always(number(21))},
	{key: "terminal_reason", check: is[string], omitted: true},
	{key: "terminated", check: is[bool], fill: always(false)},
	{key: "termination_reason", check: is[string], omitted: true},
	{key: "clarification_pending", check: is[bool], fill: always(false), omitted: true},
	{key: "clarification_question", check: is[string], omitted: true},
	{key: "clarification_response", check: is[string], omitted: true},
	{key: "confirmation_pending", check: is[bool], fill: always(false), omitted: true},
	{key: "confirmation_id", check: is[string], omitted: true},
	{key: "confirmation_message", check: is[string], omitted: true},
	{key: "confirmation_response", check: is[bool], omitted: true},
	{key: "completed_stages", check: every(is[map[string]any]), fill: always([]any{})},
	{key: "current_stage_number", check: atLeast(1), fill: always(number(1))},
	{key: "max_stages", check: atLeast(1), fill: always(number(5))},
	{key: "all_goals", check: every(is[string]), fill: always([]any{})},
	{key: "goal_completion_status", check: textMap, fill: always(map[string]any{})},
	{key: "remaining_goals", check: every(is[string]), fill: unsatisfied},
	{key: "prior_plans", check: every(is[map[string]any]), fill: always([]any{})},
	{key: "critic_feedback", check: every(is[string]), fill: always([]any{})},
	{key: "processing_history", check: every(is[map[string]any]), fill: always([]any{})},
	{key: "errors", check: every(is[map[string]any]), fill: always([]any{})},
	{key: "completed_at", check: isTime, omitted: true},
	{key: "metadata", check: is[map[string]any], fill: always(map[string]any{})},
	{key: "interrupt_pending", check: is[bool], fill: always(false), dialect: true},
	{key: "interrupt", check: is[map[string]any], omitted: true, dialect: true},
	{key: "created_at", check: isTime, fill: now, dialect: true},
	{key: "parallel_mode", check: is[bool], fill: always(false), dialect: true},
	{key: "tool_call_count", check: atLeast(0), fill: always(number(0)), dialect: true},
	{key: "tokens_in", check: atLeast(0), fill: always(number(0)), dialect: true},
	{key: "tokens_out", check: atLeast(0), fill: always(number(0)), dialect: true},
}

// flagOnly are the flat keys whose nested counterpart is the interrupt itself.
func flagOnly(key string) bool {
	return len(key) > 9 && (key[:8] == "clarific" || key[:8] == "confirma")
}

func unsatisfied(d document) any {
	status, remaining := d.object("goal_completion_status"), []any{}
	for _, goal := range d.list("all_goals") {
		if s := status[goal.(string)]; s != "satisfied" && s != "complete" {
			remaining = append(remaining, goal)
		}
	}
	return remaining
}

// open validates, sorts out the shape and completes the envelope: S0.
func (m model) open(in map[string]any) (document, *fault) {
	d := document{root: clone(in).(map[string]any), model: m}
	if _, d.nested = d.root["identity"].(map[string]any); d.nested {
		if f := d.checkGroups(); f != nil {
			return d, f
		}
	} else if d.root["identity"] != nil || !hasCoreKey(d.root) {
		return d, &fault{}
	}
	d.raises = d.nested || d.has("interrupt_pending")
	if d.root["error"] == true && is[string](d.root["code"]) {
		delete(d.root, "error")
		delete(d.root, "code")
		delete(d.root, "message")
	}
	if !d.nested && d.root["critic_feedback"] == nil && d.root["loop_feedback"] != nil {
		d.newFeedback = true
		if !every(is[string])(d.root["loop_feedback"]) {
			return d, &fault{"loop_feedback"}
		}
		d.set("critic_feedback", d.root["loop_feedback"])
	}
	for _, row := range rows {
		if f := d.complete(row); f != nil {
			return d, f
		}
	}
	if f := d.checkOutputs(); f != nil {
		return d, f
	}
	d.completeStatus()
	return d, nil
}

func hasCoreKey(root map[string]any) bool {
	return slices.ContainsFunc([]string{"envelope_id", "request_id", "raw_input", "outputs", "current_stage"},
		func(key string) bool { _, ok := root[key]; return ok })
}

func (d document) checkGroups() *fault {
	if d.text("envelope_id") == "" {
		return &fault{"identity.envelope_id"}
	}
	for name := range groups {
		required := name == "pipeline" || name == "bounds"
		if v := d.root[name]; !is[map[string]any](v) && (v != nil || required) {
			return &fault{name}
		}
	}
	return nil
}

func (d document) complete(row member) *fault {
	if d.nested && flagOnly(row.key) {
		return nil
	}
	v := d.get(row.key)
	if v != nil && !row.check(v) {
		return &fault{d.path(row.key)}
	}
	if v != nil && !(v == "" && (row.blank || d.nested && row.omitted)) {
		return nil
	}
	switch {
	case d.nested && row.omitted:
		d.unset(row.key) // never null, never ""
	case !d.nested && row.dialect && !d.has(row.key):
		// Absent is what they are.
	case row.fill == nil:
		d.set(row.key, nil)
	default:
		d.set(row.key, row.fill(d))
	}
	return nil
}

func (d document) checkOutputs() *fault {
	outputs := d.object("outputs")
	for key, v := range outputs {
		if v == nil {
			delete(outputs, key)
		} else if !is[map[string]any](v) {
			return &fault{"outputs." + key}
		}
	}
	if v := d.object("metadata")["prior_outputs"]; v != nil && !is[map[string]any](v) {
		return &fault{d.path("metadata") + ".prior_outputs"}
	}
	return nil
}

func (d document) completeStatus() {
	status := d.object("goal_completion_status")
	remaining := d.list("remaining_goals")
	for _, goal := range d.list("all_goals") {
		if _, known := status[goal.(string)]; known {
			continue
		}
		status[goal.(string)] = "satisfied"
		if slices.Contains(remaining, goal) {
			status[goal.(string)] = "pending"
		}
	}
}

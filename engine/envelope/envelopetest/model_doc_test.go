package envelopetest_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// model is the second opinion on the step: envelope §3.2 and §5.1 over generic maps. Its answer is
// compared by meaning.
type model struct {
	now    string   // the clock, as the server writes times
	id     string   // the 16 digits every generated id gets
	stages []string // what stands in for an empty stage_order (D12)
}

// fault is the refusal of an ill-typed envelope: the path of the member.
type fault struct{ field string }

// document is an envelope in either shape; members are named by their flat key.
type document struct {
	root   map[string]any
	nested bool
	model  model
	// raises reports that a raised question is also written as an interrupt: the shape is nested,
	// or interrupt_pending came in.
	raises bool
	// newFeedback reports that critic_feedback came in under its newer name only; both are kept up
	// to date then.
	newFeedback bool
}

var groups = map[string][]string{
	"identity": {"envelope_id", "request_id", "user_id", "session_id"},
	"pipeline": {"current_stage", "stage_order", "iteration", "max_iterations", "active_stages", "completed_stage_set",
		"failed_stages", "parallel_mode"},
	"bounds": {"llm_call_count", "max_llm_calls", "tool_call_count", "agent_hop_count", "max_agent_hops", "tokens_in",
		"tokens_out", "terminated", "terminal_reason", "termination_reason"},
	"interrupts": {"interrupt_pending", "interrupt"},
	"execution": {"completed_stages", "current_stage_number", "max_stages", "all_goals", "remaining_goals",
		"goal_completion_status", "prior_plans", "critic_feedback"},
	"audit": {"processing_history", "errors", "created_at", "completed_at", "metadata"},
}

// group is the nested group of a flat key, "" for members that stay at the top.
func group(key string) string {
	for name, members := range groups {
		if slices.Contains(members, key) {
			return name
		}
	}
	return ""
}

// path is the full name of a member in the document's shape, as errors spell it.
func (d document) path(key string) string {
	g := group(key)
	if !d.nested || g == "" {
		return key
	}
	return g + "." + d.spelling(key)
}

func (d document) spelling(key string) string {
	if key != "critic_feedback" {
		return key
	}
	if d.nested {
		return "loop_feedback"
	}
	return key
}

// home is the map that holds a member, and the member's name in it.
func (d document) home(key string) (map[string]any, string) {
	g := group(key)
	if !d.nested || g == "" {
		return d.root, d.spelling(key)
	}
	m, ok := d.root[g].(map[string]any)
	if !ok {
		m = map[string]any{}
		d.root[g] = m
	}
	return m, d.spelling(key)
}

func (d document) has(key string) bool {
	m, name := d.home(key)
	_, ok := m[name]
	return ok
}

func (d document) get(key string) any {
	m, name := d.home(key)
	return m[name]
}

func (d document) set(key string, v any) {
	m, name := d.home(key)
	m[name] = v
}

func (d document) unset(key string) {
	m, name := d.home(key)
	delete(m, name)
}

func (d document) text(key string) string { s, _ := d.get(key).(string); return s }
func (d document) flag(key string) bool   { b, _ := d.get(key).(bool); return b }
func (d document) list(key string) []any  { l, _ := d.get(key).([]any); return l }

func (d document) object(key string) map[string]any {
	if m, ok := d.get(key).(map[string]any); ok {
		return m
	}
	m := map[string]any{}
	d.set(key, m)
	return m
}

func (d document) number(key string) int64 {
	n, _ := integer(d.get(key))
	return n
}

// bump adds one, saturating where the wire ends (D41).
func (d document) bump(key string) {
	d.set(key, number(min(d.number(key)+1, 1<<31-1)))
}

func (d document) push(key string, v ...any) { d.set(key, append(slices.Clone(d.list(key)), v...)) }

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// integer is the value of a JSON number that is integral, however it is written.
func integer(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if _, exponent, found := strings.Cut(strings.ToLower(n.String()), "e"); found && len(exponent) > 4 {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// texts are the strings of a list; other items are skipped (envelope §3.8).
func texts(v any) (list []string, ok bool) {
	l, ok := v.([]any)
	for _, item := range l {
		if s, is := item.(string); is {
			list = append(list, s)
		}
	}
	return list, ok
}

func anys(list []string) []any {
	out := make([]any, 0, len(list))
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, member := range v {
			m[k] = clone(member)
		}
		return m
	case []any:
		l := make([]any, 0, len(v))
		for _, item := range v {
			l = append(l, clone(item))
		}
		return l
	}
	return v
}

package fuzz

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// envKey is a row of the table of envelope §3.1.
type envKey struct {
	name, group string // group "": at the top of the nested shape; "-": not in it
	nested      string // its name there, where that is another
	fits        func(v any) bool
	null        bool // null is a value of it
	flat        bool // boundary B adds it to the flat shape
	omit        bool // the nested shape leaves it out rather than show it empty
	def         any
}

type generated struct{ prefix string }
type present struct{}

// envKeys are the members that the engine knows, with their defaults.
var envKeys = []envKey{
	{name: "envelope_id", group: "identity", fits: isID, def: generated{"env_"}},
	{name: "request_id", group: "identity", fits: isID, def: generated{"req_"}},
	{name: "user_id", group: "identity", fits: isID, def: "anonymous"},
	{name: "session_id", group: "identity", fits: isID, def: generated{"sess_"}},
	{name: "raw_input", fits: isText, def: ""},
	{name: "received_at", fits: isTime, def: present{}},
	{name: "outputs", fits: isOutputs, flat: true, def: object{}},
	{name: "current_stage", group: "pipeline", fits: isText, flat: true, def: "start"},
	{name: "stage_order", group: "pipeline", fits: listOf(isText), flat: true, def: []any{}},
	{name: "iteration", group: "pipeline", fits: isI32, flat: true, def: int64(0)},
	{name: "max_iterations", group: "pipeline", fits: isI32, flat: true, def: int64(3)},
	{name: "active_stages", group: "pipeline", fits: isStageSet, omit: true, def: []any{}},
	{name: "completed_stage_set", group: "pipeline", fits: isStageSet, omit: true, def: []any{}},
	{name: "failed_stages", group: "pipeline", fits: mapOf(isText), omit: true, def: object{}},
	{name: "parallel_mode", group: "pipeline", fits: isFlag, def: false},
	{name: "llm_call_count", group: "bounds", fits: isI32, flat: true, def: int64(0)},
	{name: "max_llm_calls", group: "bounds", fits: isI32, flat: true, def: int64(10)},
	{name: "tool_call_count", group: "bounds", fits: isI32, def: int64(0)},
	{name: "agent_hop_count", group: "bounds", fits: isI32, flat: true, def: int64(0)},
	{name: "max_agent_hops", group: "bounds", fits: isI32, flat: true, def: int64(21)},
	{name: "tokens_in", group: "bounds", fits: isI64, def: int64(0)},
	{name: "tokens_out", group: "bounds", fits: isI64, def: int64(0)},
	{name: "terminated", group: "bounds", fits: isFlag, flat: true, def: false},
	{name: "terminal_reason", group: "bounds", fits: isText, null: true, flat: true, omit: true},
	{name: "termination_reason", group: "bounds", fits: isText, null: true, flat: true, omit: true},
	{name: "interrupt_pending", group: "interrupts", fits: isFlag, flat: true, def: false},
	{name: "interrupt", group: "interrupts", fits: isObject, null: true, omit: true},
	{name: "completed_stages", group: "execution", fits: listOf(isObject), def: []any{}},
	{name: "current_stage_number", group: "execution", fits: isI32, def: int64(1)},
	{name: "max_stages", group: "execution", fits: isI32, def: int64(5)},
	{name: "all_goals", group: "execution", fits: listOf(isText), def: []any{}},
	{name: "remaining_goals", group: "execution", fits: listOf(isText), def: []any{}},
	{name: "goal_completion_status", group: "execution", fits: mapOf(isText), def: object{}},
	{name: "prior_plans", group: "execution", fits: listOf(isObject), def: []any{}},
	{name: "critic_feedback", group: "execution", nested: "loop_feedback", fits: listOf(isText), def: []any{}},
	{name: "processing_history", group: "audit", fits: listOf(isObject), def: []any{}},
	{name: "errors", group: "audit", fits: listOf(isObject), def: []any{}},
	{name: "created_at", group: "audit", fits: isTime, def: present{}},
	{name: "completed_at", group: "audit", fits: isTime, null: true, omit: true},
	{name: "metadata", group: "audit", fits: isObject, flat: true, def: object{}},
	{name: "clarification_pending", group: "-", fits: isFlag, def: false},
	{name: "clarification_question", group: "-", fits: isText, null: true},
	{name: "clarification_response", group: "-", fits: isText, null: true},
	{name: "confirmation_pending", group: "-", fits: isFlag, def: false},
	{name: "confirmation_id", group: "-", fits: isText, null: true},
	{name: "confirmation_message", group: "-", fits: isText, null: true},
	{name: "confirmation_response", group: "-", fits: isFlag, null: true},
}

var (
	envGroups  = []string{"identity", "pipeline", "bounds", "interrupts", "execution", "audit"}
	olderNames = map[string]string{"parallel_mode": "dag_mode", "critic_feedback": "loop_feedback"}
	coreKeys   = []string{"envelope_id", "request_id", "raw_input", "outputs", "current_stage"}
)

func keyNamed(name string) *envKey {
	return &envKeys[slices.IndexFunc(envKeys, func(k envKey) bool { return k.name == name })]
}

// envelope is one in the model: the map that came, with what changed written over it.
type envelope struct {
	nested bool
	doc    object
	nulled map[string]bool // stood there as null, which is no value of theirs
}

func (o *object) set(key string, v any) {
	for i := range *o {
		if (*o)[i].key == key {
			(*o)[i].val = v
			return
		}
	}
	*o = append(*o, member{key, v})
}

func (o *object) del(key string) {
	*o = slices.DeleteFunc(slices.Clone(*o), func(m member) bool { return m.key == key })
}

// lastOnly drops the earlier ones of repeated keys.
func lastOnly(o object) (out object) {
	for _, m := range o {
		out.set(m.key, m.val)
	}
	return out
}

// at returns the name under which a key stands in the flat shape.
func (e *envelope) at(k *envKey) string {
	if old := olderNames[k.name]; old != "" && !e.doc.has(k.name) && e.doc.has(old) {
		return old
	}
	return k.name
}

func (o object) has(key string) bool {
	_, ok := o.get(key)
	return ok
}

func (k *envKey) inner() string {
	if k.nested != "" {
		return k.nested
	}
	return k.name
}

func (e *envelope) lookup(name string) (v any, ok bool) {
	k := keyNamed(name)
	if !e.nested || k.group == "" {
		return e.doc.get(e.at(k))
	}
	g, _ := e.doc.get(k.group)
	group, _ := g.(object)
	return group.get(k.inner())
}

func (e *envelope) get(name string) any {
	v, _ := e.lookup(name)
	return v
}

func (e *envelope) change(name string, f func(o *object, name string)) {
	k := keyNamed(name)
	if !e.nested || k.group == "" {
		f(&e.doc, e.at(k))
		return
	}
	g, _ := e.doc.get(k.group)
	group, _ := g.(object)
	group = slices.Clone(group)
	f(&group, k.inner())
	e.doc.set(k.group, group)
}

func (e *envelope) set(name string, v any) {
	e.change(name, func(o *object, name string) { o.set(name, v) })
}

func (e *envelope) remove(name string) {
	e.change(name, func(o *object, name string) { o.del(name) })
}

// count is a counter, its default where it is missing.
func (e *envelope) count(name string) int64 {
	if n, ok := e.get(name).(int64); ok {
		return n
	}
	return keyNamed(name).def.(int64)
}

func (e *envelope) flag(name string) bool { return e.get(name) == true }

func (e *envelope) text(name string) string {
	switch v := e.get(name).(type) {
	case string:
		return v
	case *made:
		return v.now
	}
	return ""
}

func (e *envelope) objectAt(name string) object {
	o, _ := e.get(name).(object)
	return slices.Clone(o)
}

// shown is a copy for a reply: what happens later does not show in it.
func (e *envelope) shown() any { return lastOf{copied(e.doc)} }

func copied(v any) any {
	switch v := v.(type) {
	case object:
		o := make(object, len(v))
		for i, m := range v {
			o[i] = member{m.key, copied(m.val)}
		}
		return o
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = copied(v[i])
		}
		return items
	}
	return v
}

// stamp is the time as the server writes it (envelope §3.6).
func (m *model) stamp() string {
	return time.UnixMilli(m.wall).UTC().Format("2006-01-02T15:04:05.000000Z")
}

func (m *model) defaultOf(k *envKey) any {
	switch d := k.def.(type) {
	case generated:
		return newMade(d.prefix)
	case present:
		return m.stamp()
	}
	return copied(k.def)
}

func newMade(prefix string) *made {
	return &made{form: regexp.MustCompile("^" + prefix + "[0-9a-f]{16}$"), size: len(prefix) + 16}
}

// complete adds what the shape has and is missing, and leaves out what it does not show (envelope
// §3.1).
func (m *model) complete(e *envelope) {
	for i := range envKeys {
		k := &envKeys[i]
		v, ok := e.lookup(k.name)
		switch {
		case !e.nested:
			if !ok && (k.flat || e.nulled[k.name]) {
				e.set(k.name, m.defaultOf(k))
			}
		case k.group == "-":
		case k.omit:
			if ok && (nothing(v) && k.name != "interrupt" || v == nil || k.name == "terminal_reason" && !e.flag("terminated") && asksUser(e)) {
				e.remove(k.name)
			}
		case !ok:
			e.set(k.name, m.defaultOf(k))
		}
	}
	e.nulled = nil
	for _, g := range envGroups {
		if e.nested && !e.doc.has(g) {
			e.doc.set(g, object{})
		}
	}
}

func nothing(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case object:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// reasons are the two spellings of envelope §3.4.
var reasonNames = map[string]string{
	"completed_successfully": "COMPLETED", "clarification_required": "CLARIFICATION_REQUIRED", "confirmation_required": "CONFIRMATION_REQUIRED",
	"denied_by_policy": "POLICY_VIOLATION", "tool_failed_recoverably": "TOOL_FAILED_RECOVERABLY", "tool_failed_fatally": "TOOL_FAILED_FATALLY",
	"max_iterations_exceeded": "MAX_ITERATIONS_EXCEEDED", "max_llm_calls_exceeded": "MAX_LLM_CALLS_EXCEEDED",
	"max_agent_hops_exceeded": "MAX_AGENT_HOPS_EXCEEDED", "max_critic_fires_exceeded": "MAX_CRITIC_FIRES_EXCEEDED",
	"user_cancelled": "USER_CANCELLED", "llm_failed_fatally": "LLM_FAILED_FATALLY",
}

// reasonOf reads a reason in either spelling and any case; other text is itself.
func reasonOf(s string) string {
	folded, _ := oneOf(nil, s)
	for exchange, wire := range reasonNames {
		if folded == wire || folded == strings.ToUpper(exchange) {
			return wire
		}
	}
	return s
}

func (e *envelope) reason() string { return reasonOf(e.text("terminal_reason")) }

// asksUser reports whether the reason is one of a wait.
func asksUser(e *envelope) bool {
	return e.reason() == "CLARIFICATION_REQUIRED" || e.reason() == "CONFIRMATION_REQUIRED"
}

// terminate is terminate(reason, text) of envelope §5.2.
func (m *model) terminate(e *envelope, reason, text string) {
	e.set("terminated", true)
	if e.reason() != reason {
		e.set("terminal_reason", reason)
	}
	e.set("termination_reason", text)
	if e.get("completed_at") == nil {
		e.set("completed_at", m.stamp())
	}
	m.complete(e)
}

// exhausted is the bound that is met (envelope §4.6), "" for none.
func (e *envelope) exhausted() string {
	switch {
	case e.count("llm_call_count") >= e.count("max_llm_calls"):
		return "MAX_LLM_CALLS_EXCEEDED"
	case e.count("iteration") >= e.count("max_iterations"):
		return "MAX_ITERATIONS_EXCEEDED"
	case e.count("agent_hop_count") >= e.count("max_agent_hops"):
		return "MAX_AGENT_HOPS_EXCEEDED"
	}
	return ""
}

package orchtest

import (
	"regexp"
	"strings"
)

// envelope is the model of an envelope: the map as it came, in its own shape, with the engine's
// changes written over it (envelope §3.1).
type envelope struct {
	nested bool
	m      obj
}

// groups states in which group of the nested shape a key lives; keys that are not listed stay at
// the top.
var groups = func() map[string]string {
	at := map[string]string{}
	for group, keys := range map[string]string{
		"identity":   "envelope_id request_id user_id session_id",
		"pipeline":   "current_stage stage_order iteration max_iterations active_stages completed_stage_set failed_stages parallel_mode",
		"bounds":     "llm_call_count max_llm_calls tool_call_count agent_hop_count max_agent_hops tokens_in tokens_out terminated terminal_reason termination_reason",
		"interrupts": "interrupt_pending interrupt",
		"execution":  "completed_stages current_stage_number max_stages all_goals remaining_goals goal_completion_status prior_plans loop_feedback",
		"audit":      "processing_history errors created_at completed_at metadata",
	} {
		for _, key := range strings.Fields(keys) {
			at[key] = group
		}
	}
	return at
}()

// isNested reports an envelope's shape.
func isNested(m obj) bool {
	_, ok := m["identity"].(obj)
	return ok
}

// place returns the map that has, or would have, the key.
func (e envelope) place(key string) obj {
	group := groups[key]
	if !e.nested || group == "" {
		return e.m
	}
	g, ok := e.m[group].(obj)
	if !ok {
		g = obj{}
		e.m[group] = g
	}
	return g
}

func (e envelope) get(key string) any { return e.place(key)[key] }

func (e envelope) set(key string, v any) { e.place(key)[key] = v }

func (e envelope) count(key string) int64 {
	switch n := e.get(key).(type) {
	case int64:
		return n
	case int:
		return int64(n)
	}
	return 0
}

func (e envelope) text(key string) string {
	s, _ := e.get(key).(string)
	return s
}

func (e envelope) is(key string) bool { return e.get(key) == true }

// submap returns the map under key, made if it is not there.
func (e envelope) submap(key string) obj {
	m, ok := e.get(key).(obj)
	if !ok {
		m = obj{}
		e.set(key, m)
	}
	return m
}

// The members that B adds when they are missing (envelope §3.1), with the defaults of §3.2.
var (
	flatMembers = obj{
		"current_stage": "start", "stage_order": arr{}, "iteration": 0, "max_iterations": 3, "llm_call_count": 0, "max_llm_calls": 10,
		"agent_hop_count": 0, "max_agent_hops": 21, "terminated": false, "terminal_reason": nil, "termination_reason": nil,
		"interrupt_pending": false, "outputs": obj{}, "metadata": obj{},
	}
	nestedMembers = obj{
		"request_id": generated("req_"), "user_id": "anonymous", "session_id": generated("sess_"), "raw_input": "",
		"outputs": obj{}, "current_stage": "start", "stage_order": arr{}, "iteration": 0, "max_iterations": 3, "parallel_mode": false,
		"llm_call_count": 0, "max_llm_calls": 10, "tool_call_count": 0, "agent_hop_count": 0, "max_agent_hops": 21,
		"tokens_in": 0, "tokens_out": 0, "terminated": false, "interrupt_pending": false,
		"completed_stages": arr{}, "current_stage_number": 1, "max_stages": 5, "all_goals": arr{}, "remaining_goals": arr{},
		"goal_completion_status": obj{}, "prior_plans": arr{}, "loop_feedback": arr{},
		"processing_history": arr{}, "errors": arr{}, "metadata": obj{},
	}
)

// generated accepts an id the server made (envelope §3.7).
func generated(prefix string) holds {
	pattern := regexp.MustCompile("^" + prefix + "[0-9a-f]{16}$")
	return holds{"a generated id " + prefix + "…", func(v any) bool {
		s, ok := v.(string)
		return ok && pattern.MatchString(s)
	}}
}

// received is the envelope as the server holds it once it came in at the time now.
func received(m obj, now string) envelope {
	e := envelope{nested: isNested(m), m: clone(m).(obj)}
	members := flatMembers
	if e.nested {
		members = nestedMembers
		for _, key := range []string{"received_at", "created_at"} {
			if e.get(key) == nil {
				e.set(key, now)
			}
		}
	}
	for key, v := range members {
		if _, there := e.place(key)[key]; !there {
			e.set(key, clone(v))
		}
	}
	return e
}

// mark puts the stage into the set of completed stages.
func (e envelope) mark(stage string) {
	switch have := e.get("completed_stage_set").(type) {
	case nil:
		e.set("completed_stage_set", nameSet{names: map[string]bool{stage: true}, list: e.nested})
	case nameSet:
		have.names[stage] = true
	case obj:
		if have[stage] == true {
			return
		}
		set := nameSet{names: map[string]bool{stage: true}, list: e.nested, loose: e.nested}
		for name, in := range have {
			set.names[name] = set.names[name] || in == true
		}
		e.set("completed_stage_set", set)
	case arr:
		set := nameSet{names: map[string]bool{stage: true}, list: e.nested, loose: !e.nested}
		for _, name := range have {
			if name == stage {
				return
			}
			set.names[name.(string)] = true
		}
		e.set("completed_stage_set", set)
	}
}

// clearFailure takes the stage out of failed_stages. Whether a map that becomes empty stays is
// open.
func (e envelope) clearFailure(stage string) {
	have, ok := e.get("failed_stages").(obj)
	if _, there := have[stage]; !ok || !there {
		return
	}
	delete(have, stage)
	if len(have) == 0 {
		e.set("failed_stages", emptied{})
	}
}

// fail records the stage's error.
func (e envelope) fail(stage, text string) {
	e.submap("failed_stages")[stage] = text
}

package fuzz

import (
	"slices"
	"time"
)

// storedEnvelope is one of the envelope store.
type storedEnvelope struct {
	e       *envelope
	touched int64 // ms
}

// answered is a reply whose body is an envelope.
func (k *call) answered(e *envelope) object {
	k.out = append(k.out, k.model.bounded(k.id, expected{response, object{{"id", k.id}, {"ok", true}, {"body", e.shown()}}}))
	return nil
}

// createEnvelope is envelope §4.5.
func createEnvelope(k *call) object {
	e := &envelope{nested: true}
	identity, order := object{{"envelope_id", ""}}, []any{}
	raw := k.text("raw_input")
	for _, name := range []string{"request_id", "user_id", "session_id"} {
		if s := k.optionalID(name); s != "" {
			identity = append(identity, member{name, s})
		}
	}
	if v := k.field("stage_order"); v != nil {
		if order, _ = v.([]any); !listOf(func(v any) bool { return isText(v) && v != "" })(v) {
			k.invalid("stage_order must be an array of strings")
		}
	}
	metadata := k.object("metadata")
	if k.bad != nil {
		return nil
	}
	e.doc = object{{"identity", identity}, {"raw_input", raw}, {"pipeline", object{{"stage_order", order}}},
		{"audit", object{{"metadata", append(object{}, metadata...)}}}}
	if len(order) > 0 {
		e.set("current_stage", order[0])
	}
	return k.store(e)
}

// cloneEnvelope is envelope §4.9.
func cloneEnvelope(k *call) object {
	e := k.envelope(k.document("envelope"))
	if k.bad != nil {
		return nil
	}
	return k.store(e)
}

// store keeps an envelope under a new identifier (envelope §5.3).
func (k *call) store(e *envelope) object {
	m := k.model
	e.set("envelope_id", newMade("env_"))
	m.complete(e)
	switch full := len(m.stored) >= m.set.maxEnvelopes; {
	case m.narrow():
		k.refuse("RESOURCE_EXHAUSTED", "Envelope too large")
		return nil
	case full && (len(m.stored) != 1 || !m.stored[0].e.flag("terminated") && m.ms-m.stored[0].touched < 3600000):
		k.refuse("RESOURCE_EXHAUSTED", "Envelope store is full")
		k.bad.with("retryable", true)
		return nil
	case full:
		m.stored = nil
	}
	m.stored = append(m.stored, &storedEnvelope{e, m.ms})
	return k.answered(e)
}

func (m *model) envelopeOf(id string) *storedEnvelope {
	at := slices.IndexFunc(m.stored, func(s *storedEnvelope) bool { return id != "" && s.e.text("envelope_id") == id })
	if at < 0 {
		return nil
	}
	return m.stored[at]
}

// checkBounds is envelope §4.6.
func checkBounds(k *call) object {
	var v any = k.body
	inner, _ := k.body.get("envelope")
	_, isText := inner.(string)
	if (isText || isObject(inner)) && !slices.ContainsFunc(k.body, func(m member) bool { return knownAtTop(m.key) }) {
		v = inner
	}
	e := k.envelope(v)
	if k.bad != nil {
		return nil
	}
	left := func(limit, n string) int64 { return max(e.count(limit)-e.count(n), 0) }
	over := e.exhausted()
	return object{{"can_continue", over == ""}, {"terminal_reason", over}, {"llm_calls_remaining", left("max_llm_calls", "llm_call_count")},
		{"agent_hops_remaining", left("max_agent_hops", "agent_hop_count")}, {"iterations_remaining", left("max_iterations", "iteration")}}
}

// knownAtTop reports whether an envelope of either shape may have the key at its top.
func knownAtTop(key string) bool {
	for i := range envKeys {
		if envKeys[i].name == key || olderNames[envKeys[i].name] == key {
			return true
		}
	}
	return slices.Contains(envGroups, key)
}

// updateEnvelope is envelope §4.7.
func updateEnvelope(k *call) object {
	m := k.model
	e := k.envelope(k.document("envelope"))
	if k.bad != nil {
		return nil
	}
	id := e.text("envelope_id")
	s := m.envelopeOf(id)
	if s == nil {
		k.refuse("NOT_FOUND", "Envelope %s not found", id)
		return nil
	}
	answer, there := e.lookup("interrupt")
	m.complete(e)
	s.e, s.touched = e, m.ms
	for _, session := range m.sessions {
		if session.waits() && session.e.text("envelope_id") == id && !e.flag("interrupt_pending") {
			session.touched = m.ms
			m.resolve(session.e, answer, there)
		}
	}
	return k.answered(e)
}

// resolve takes over the answer to an interrupt (envelope D39).
func (m *model) resolve(e *envelope, answer any, there bool) {
	e.set("interrupt_pending", false)
	if _, had := e.lookup("interrupt"); had || there {
		e.set("interrupt", copied(answer))
	}
	m.complete(e)
}

// executePipeline is envelope §4.8.
func executePipeline(k *call) object {
	env, config := k.document("envelope"), k.document("pipeline_config")
	if s := k.begin(nil, config, env, false); s != nil {
		return k.model.next(s)
	}
	return nil
}

// processEnded is what the end of a process means to its session, and to the envelope of its name
// (envelope §5.2).
func (m *model) processEnded(pid string) {
	const text = "Process terminated"
	if s := m.session(pid); s != nil && !s.ended() {
		s.e.set("interrupt_pending", false)
		m.terminate(s.e, "USER_CANCELLED", text)
	}
	if s := m.envelopeOf(pid); s != nil && !s.e.flag("terminated") {
		s.e.set("interrupt_pending", false)
		m.terminate(s.e, "USER_CANCELLED", text)
		s.touched = m.ms
	}
}

// interruptRetention is the last column of envelope §3.5, in milliseconds.
var interruptRetention = map[string]int64{"CLARIFICATION": 86400000, "CONFIRMATION": 3600000, "AGENT_REVIEW": 3600000,
	"CRITIC_REVIEW": 3600000, "CHECKPOINT": 86400000, "RESOURCE_EXHAUSTED": 3600000, "TIMEOUT": 3600000, "SYSTEM_ERROR": 3600000}

// sweepEnvelopes is the retention of envelope §5.3.
func (m *model) sweepEnvelopes() {
	m.stored = slices.DeleteFunc(m.stored, func(s *storedEnvelope) bool { return m.ms-s.touched >= m.set.envelopeRetention })
	m.sessions = slices.DeleteFunc(m.sessions, func(s *pipelineSession) bool {
		idle := m.ms - s.touched
		if !s.waits() {
			return idle >= m.set.sessionRetention
		}
		interrupt := s.e.objectAt("interrupt")
		kind, _ := interrupt.get("kind")
		name, _ := kind.(string)
		folded, _ := oneOf(nil, name)
		return idle >= max(m.set.sessionRetention, interruptRetention[folded]) && !m.expiresLater(interrupt)
	})
}

// expiresLater reports whether an interrupt's expires_at is still to come.
func (m *model) expiresLater(interrupt object) bool {
	v, _ := interrupt.get("expires_at")
	s, _ := v.(string)
	t, ok := readTime(s)
	return ok && t.After(time.UnixMilli(m.wall))
}

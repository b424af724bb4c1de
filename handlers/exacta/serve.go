package exacta

import (
	"time"

	"trunkline/engine/exacta"
	"trunkline/engine/exacta/wire"
)

// serve takes the message at hand, which is an envelope (exacta §3.6).
func (s *session) serve(out []byte) []byte {
	m := &s.in
	switch m.Type {
	case wire.Ack:
		s.ack()
		return out
	case wire.Subscribe:
		s.subscribe()
		return out
	}
	if s.carrier == Viewer {
		return s.refuse(out, &readOnly)
	}
	var asker exacta.Asker = s
	control := m.Command == wire.Pause || m.Command == wire.Resume || m.Command == wire.Cancel
	if !control && s.full() {
		asker = nil
	}
	stored, outcome := s.srv.replays.Look(m.Key, &m.sum, asker, s.id)
	if outcome == exacta.Joined && asker == nil {
		return s.refuse(out, &s.srv.busy)
	}
	if outcome != exacta.Unknown {
		return s.repeat(out, stored, outcome)
	}
	return s.admit(out, asker == nil)
}

// repeat answers a request whose id was used before (exacta §4.0.4).
func (s *session) repeat(out, stored []byte, o exacta.Outcome) []byte {
	switch o {
	case exacta.Stored:
		s.srv.counts.repeats.Add(1)
		return append(out, stored...)
	case exacta.Joined:
		s.srv.counts.repeats.Add(1)
		s.join()
		return out
	}
	return s.refuse(out, &wire.Refusal{Code: "IPC-006"})
}

// admit makes the checks 14 to 17 and hands a request on, unless too many are unanswered.
func (s *session) admit(out []byte, full bool) []byte {
	m := &s.in
	if m.parse(); m.payload.field != "" {
		return s.refuse(out, &wire.Refusal{Code: "IPC-009", Value: []byte(m.payload.field), Detail: m.payload.field, Field: m.payload.why})
	}
	if m.Command == wire.ApplyDiffSet && !s.srv.cfg.Debug.on(s.carrier) {
		return s.refuse(out, &debugOff)
	}
	var p *project
	if m.Command != wire.OpenProject {
		if p = s.srv.project(m.project); p == nil && !s.srv.reopens(m.project) {
			return s.refuse(out, &wire.Refusal{Code: "ST-003", Detail: notOpenDetail})
		}
	}
	if full {
		return s.refuse(out, &s.srv.busy)
	}
	return s.begin(out, p)
}

// readOnly refuses all commands of a carrier that has none (exacta §3.6, step 15).
var readOnly = wire.Refusal{Code: "CFG-002", Value: []byte("commands"), Detail: "commands: off on this carrier, which admits subscribe and ack"}

// debugOff refuses a command that is not enabled on a carrier (exacta §3.6, step 15).
var debugOff = wire.Refusal{Code: "CFG-002", Value: []byte("debug_commands"), Detail: "debug_commands: off on this carrier"}

// begin hands a request on to its project.
func (s *session) begin(out []byte, p *project) []byte {
	m := &s.in
	r := &exacta.Request{ID: append([]byte(nil), m.RequestID...), Key: m.Key, Command: m.Command, Args: m.args, Timeout: limit(m.Command, &m.args), Origin: new(exacta.Origin), Asker: s}
	if m.Timeout != 0 {
		r.Timeout = m.Timeout
	}
	if stored, outcome := s.srv.replays.Begin(m.Key, &m.sum, s, s.id, r.Origin); outcome != exacta.Unknown { // another connection was faster
		return s.repeat(out, stored, outcome)
	}
	s.count(1)
	within := time.Duration(r.Timeout) * time.Millisecond
	if m.Command == wire.OpenProject {
		r.Timer = time.AfterFunc(within, func() {}) // it is short, and finishes
		s.mu.Lock()
		s.opening = true
		s.mu.Unlock()
		s.srv.running.Add(1)
		go s.srv.open(r, s.settled)
		return out
	}
	if p != nil {
		s.enterAll()
		s.feed(p.journal, p.journal.Last()+1)
	}
	id := m.project
	r.Timer = time.AfterFunc(within, func() { _ = s.srv.post(id, p, event{late: r}) }) // without a project it was answered
	if err := s.srv.post(id, p, event{request: r}); err != nil {
		s.srv.turnAway(r, err)
	}
	return out
}

// join waits for the answer of a request that runs.
func (s *session) join() {
	s.count(1)
	if p := s.srv.project(s.in.payload.id("project_id")); p != nil {
		s.enterAll()
		s.feed(p.journal, p.journal.Last()+1)
	}
}

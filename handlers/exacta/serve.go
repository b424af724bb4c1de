package exacta

import (
	"bytes"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// serve takes the message at hand, which is an envelope (exacta §3.6).
func (s *session) serve(out []byte) []byte {
	m := &s.in
	switch m.Type {
	case codec.Ack:
		s.ack()
		return out
	case codec.Subscribe:
		s.subscribe()
		return out
	}
	if s.carrier == Viewer {
		return s.refuse(out, &readOnly)
	}
	var asker projects.Asker = s
	control := m.Command == codec.Pause || m.Command == codec.Resume || m.Command == codec.Cancel
	if s.full(control) {
		asker = nil
	}
	start := len(out)
	out, outcome, seen := s.srv.replays.Look(out, m.Key, &m.sum, asker, s.id)
	if outcome == projects.Joined && asker == nil {
		return s.refuse(out, &s.srv.busy)
	}
	if outcome != projects.Unknown {
		return s.repeat(out, start, outcome)
	}
	return s.admit(out, asker == nil, seen)
}

// repeat ends the answer to a request whose id was used before (exacta §4.0.4). A stored one is in
// out from start on.
func (s *session) repeat(out []byte, start int, o projects.Outcome) []byte {
	switch o {
	case projects.Conflict:
		return s.refuse(out, &codec.Refusal{Code: "IPC-006"})
	case projects.Stored:
		s.srv.counts.repeats.Add(1)
		if s.behind() {
			return s.catchUp(out, start)
		}
	case projects.Joined:
		s.srv.counts.repeats.Add(1)
		s.join()
	}
	return out
}

// behind reports whether something that is to be sent came before the message at hand.
func (s *session) behind() bool {
	for j, c := range s.feeds {
		if c.Next <= j.Last() {
			return true
		}
	}
	return s.held.Load() > 0
}

// catchUp puts the answer that out has from start on behind what came before it (exacta §2.4).
func (s *session) catchUp(out []byte, start int) []byte {
	line := bytes.Clone(out[start:])
	out, _ = s.Pump(out[:start], chunkBytes, connection.Instant{})
	if !s.behind() {
		return append(out, line...)
	}
	o := outgoing{Answer: projects.Answer{Line: line}} // it waits with the others for the peer
	if p := s.srv.project(s.in.payload.id("project_id")); p != nil && s.feeds[p.journal] != nil {
		o.Journal, o.After = p.journal, p.journal.Last()
	}
	s.send(o)
	return out
}

// admit makes the checks 14 to 17 and hands a request on, unless too many are unanswered. seen is
// what the ids of requests were when its own was new.
func (s *session) admit(out []byte, full bool, seen projects.Seen) []byte {
	m := &s.in
	if m.parse(); m.payload.field != "" {
		return s.refuse(out, &codec.Refusal{Code: "IPC-009", Value: []byte(m.payload.field), Detail: m.payload.field, Field: m.payload.why})
	}
	if m.Command == codec.ApplyDiffSet && !s.srv.cfg.Debug.on(s.carrier) {
		return s.refuse(out, &debugOff)
	}
	var p *project
	if m.Command != codec.OpenProject {
		if p = s.srv.project(m.project); p == nil && !s.srv.reopens(m.project) {
			return s.refuse(out, &codec.Refusal{Code: "ST-003", Detail: notOpenDetail})
		}
	}
	if full {
		return s.refuse(out, &s.srv.busy)
	}
	start := len(out)
	if out, done := s.atOnce(out, p); done {
		out, outcome := s.srv.replays.Keep(out, start, m.Key, &m.sum, s, s.id, seen)
		return s.repeat(out, start, outcome)
	}
	return s.begin(out, p)
}

// readOnly refuses all commands of a carrier that has none (exacta §3.6, step 15).
var readOnly = codec.Refusal{Code: "CFG-002", Value: []byte("commands"), Detail: "commands: off on this carrier, which admits subscribe and ack"}

// atOnce answers a request that the state of its project refuses, if neither the queue of the
// project nor the connection has something before it: in the queue it would get the same answer.
func (s *session) atOnce(out []byte, p *project) (_ []byte, done bool) {
	if p == nil || !p.begins() {
		return out, false
	}
	defer p.turn.Unlock()
	if c := s.feeds[p.journal]; c != nil && c.Next <= p.journal.Last() || s.held.Load() > 0 {
		return out, false
	}
	out, done = p.core.Refused(out, s.in.RequestID, s.in.Command, s.in.args.Handle, s.clock)
	if done {
		s.srv.counts.refuse(s.in.Command)
		s.answered.Add(int(s.in.Command), s.came, 1, 1)
	}
	return out, done
}

// debugOff refuses a command that is not enabled on a carrier (exacta §3.6, step 15).
var debugOff = codec.Refusal{Code: "CFG-002", Value: []byte("debug_commands"), Detail: "debug_commands: off on this carrier"}

// begin hands a request on to its project.
func (s *session) begin(out []byte, p *project) []byte {
	m := &s.in
	r := projects.NewRequest(&m.Message, &m.args, s)
	if r.Timeout = m.Timeout; r.Timeout == 0 {
		build := defaultBuild
		if p != nil {
			build = p.disk.ws.Config().BuildTimeout
		}
		r.Timeout = limit(m.Command, &m.args, build)
	}
	r.Deadline = time.Now().Add(time.Duration(r.Timeout) * time.Millisecond)
	start := len(out)
	out, outcome := s.srv.replays.Begin(out, m.Key, &m.sum, s, s.id, r.Origin)
	if outcome != projects.Unknown { // another connection was faster
		return s.repeat(out, start, outcome)
	}
	s.count(1)
	if m.Command == codec.OpenProject {
		s.opening.Store(true)
		s.srv.running.Add(1)
		go s.srv.open(r, s.settled)
		return out
	}
	if p != nil {
		s.enterAll()
		s.feed(p.journal, p.journal.Last()+1)
	}
	if err := s.srv.post(m.project, p, event{request: r}); err != nil {
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

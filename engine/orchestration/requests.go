package orchestration

import (
	"math"

	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
)

// Next appends what to do now (envelope §4.11). Without a report in between it appends the same
// again. It allocates nothing unless the session waits, or is ended by this very call.
func (o *Engine) Next(c *Call, pid, out []byte) ([]byte, wire.Code) {
	s, code := o.find(c, pid, true)
	if code != wire.OK {
		return out, code
	}
	defer s.mu.Unlock()
	return o.next(c, s, out), wire.OK
}

// next appends the instruction of a session, which is locked; one whose bounds are met ends.
func (o *Engine) next(c *Call, s *session, out []byte) []byte {
	message := alreadyEnd
	if s.state == running && s.over != envelope.NoReason {
		message = boundsExceeded + s.over.Wire()
		o.end(c, s, s.over, message)
	}
	i := s.instruct(c, []byte(message))
	return i.append(out)
}

// State appends the SessionState of a process (envelope §4.13). It does not count as activity.
func (o *Engine) State(c *Call, pid, out []byte) ([]byte, wire.Code) {
	s, code := o.find(c, pid, false)
	if code != wire.OK {
		return out, code
	}
	defer s.mu.Unlock()
	return s.appendState(out), wire.OK
}

// Cancel marks the session of a process that is being terminated: whatever comes next for it finds
// it ended. It is brief, for callers that hold a lock under which the process ends; ProcessEnded
// does the work.
func (o *Engine) Cancel(pid []byte) {
	if o.sessions.Len() > 0 {
		o.CancelBefore(pid, math.MaxUint64)
	}
}

// CancelBefore is Cancel while a journal is replayed: index is that of the end of the process. A
// session that has a later change was ended by that change already, or began after the process had
// ended.
func (o *Engine) CancelBefore(pid []byte, index uint64) {
	if s, ok := o.sessions.Get(pid); ok && s.last.Load() < index {
		s.cancelled.Store(true)
	}
}

// ProcessEnded does what Cancel left: it ends the session that was marked, and the stored envelope
// of the process's name (envelope §5.2). A session that began since then goes on.
func (o *Engine) ProcessEnded(c *Call, pid []byte) {
	if o.sessions.Len() > 0 {
		if s, code := o.find(c, pid, false); code == wire.OK {
			o.settle(c, s)
			s.mu.Unlock()
		}
	}
	if o.envelopes.Len() > 0 {
		o.endStored(c, pid)
	}
}

// ProcessRemoved drops the session of a process that is gone (envelope §5.2).
func (o *Engine) ProcessRemoved(pid []byte) {
	if o.sessions.Len() == 0 {
		return
	}
	if s, ok := o.sessions.Remove(pid); ok {
		o.forget(s)
	}
}

// CurrentStage returns the stage of a process's session, "" if it has none (envelope §5.2). It does
// not allocate.
func (o *Engine) CurrentStage(pid []byte) string {
	if o.sessions.Len() == 0 {
		return ""
	}
	s, ok := o.sessions.Get(pid)
	if !ok {
		return ""
	}
	return s.current().Name
}

// Active returns how many sessions are held, ended ones included until they are dropped.
func (o *Engine) Active() int64 { return int64(o.sessions.Len()) }

// Stats are the figures of an Engine, for metrics.
type Stats struct {
	Sessions, SessionBytes, Envelopes, EnvelopeBytes int64
}

// Stats returns how much the tables hold.
func (o *Engine) Stats() Stats {
	return Stats{int64(o.sessions.Len()), o.sessions.Bytes(), int64(o.envelopes.Len()), o.envelopes.Bytes()}
}

// Sweep drops what outlived its retention (envelope §5.3) and returns how much that was.
func (o *Engine) Sweep(now connection.Instant) (sessions, envelopes int) {
	c := &Call{Now: now}
	return o.sweepSessions(c), o.sweepEnvelopes(now)
}

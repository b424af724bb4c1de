package orchestration

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"trunkline/engine/envelope"
	"trunkline/engine/table"
)

// errNotApplicable means that a change does not fit the state it is applied to, or the limits of
// this engine.
var errNotApplicable = errors.New("cannot apply change")

func notApplicable(ch *Change, why string) error {
	id := ch.PID
	if id == nil {
		id = ch.ID
	}
	return fmt.Errorf("%w: %s of %q: %s", errNotApplicable, ch.Kind, id, why)
}

// Recovering begins and ends a recovery, which is all calls of LoadRecord and Apply. Meanwhile the
// limits of the tables do not hold: what is put back was let in when it was decided, and what had
// to make room for it has a record of its own. A snapshot is not of one moment, so that the replay
// behind it may meet an entry and its successor together. Afterwards a table may hold more than its
// limits, if those are lower now: it takes new entries as old ones go.
func (o *Engine) Recovering(on bool) {
	if on {
		o.sessions.SetLimits(math.MaxInt, math.MaxInt64)
		o.envelopes.SetLimits(math.MaxInt, math.MaxInt64)
		return
	}
	o.sessions.SetLimits(o.cfg.MaxSessions, o.cfg.MaxSessionBytes)
	o.envelopes.SetLimits(o.cfg.MaxEnvelopes, o.cfg.MaxEnvelopeBytes)
}

// Apply replays one journalled change, which has index; nothing is recorded. Changes come in the
// order in which they were recorded, from one goroutine, before any request uses the engine. A
// change of a session that another one replaced has no effect, nor has one that a snapshot already
// holds. c is scratch.
func (o *Engine) Apply(c *Call, ch *Change, index uint64) error {
	c.Now, c.replaying = ch.At, true
	defer func() { c.replaying = false }()
	switch ch.Kind {
	case ChangeEnvelope:
		return o.applyEnvelope(c, ch, index)
	case ChangeEnvelopeDrop:
		if v, ok := o.envelopes.Remove(ch.ID); ok {
			v.life.Store(dead)
		}
		return nil
	case ChangeSession:
		_, err := o.applySession(c, ch, index)
		return err
	case ChangeAnswer:
		o.applyAnswer(c, ch, index)
		return nil
	}
	s, ok := o.sessions.Get(ch.PID)
	if !ok || s.seq != ch.Seq {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch.Kind == ChangeSessionDrop {
		s.life.Store(dead)
		o.sessions.Remove(ch.PID)
		o.forget(s)
		return nil
	}
	if s.last.Load() >= index {
		return nil
	}
	s.last.Store(index)
	o.sessions.Touch(s.pid, ch.At.Mono)
	o.settle(c, s)
	if ch.Kind == ChangeReport {
		return o.applyReport(c, s, ch)
	}
	o.finish(c, s, ch.Reason, string(ch.Text))
	return nil
}

func (o *Engine) applyEnvelope(c *Call, ch *Change, index uint64) error {
	if v, ok := o.envelopes.Get(ch.ID); ok && v.last.Load() >= index {
		return nil
	}
	if p := c.env.Reopen(envelope.MsgPack, ch.Envelope); p != nil {
		return notApplicable(ch, p.Message())
	}
	v := &stored{encoded: bytes.Clone(ch.Envelope)}
	v.life.Store(alive)
	v.last.Store(index)
	class := classOf(c.env.Bool(envelope.Terminated))
	if _, outcome := o.envelopes.Put(ch.ID, v, storedSize(ch.ID, v.encoded), class, ch.At.Mono, table.Policy{}); outcome == table.Full {
		return notApplicable(ch, storeFull)
	}
	return nil
}

// applySession returns the session it made, nil if a later one is there.
func (o *Engine) applySession(c *Call, ch *Change, index uint64) (*session, error) {
	if s, ok := o.sessions.Get(ch.PID); ok && s.last.Load() >= index {
		return nil, nil
	}
	p, refusal := ParsePipeline(ch.Pipeline)
	if refusal != "" {
		return nil, notApplicable(ch, refusal)
	}
	if ch.To < 0 || ch.To >= len(p.stages) {
		return nil, notApplicable(ch, "no such stage")
	}
	if problem := c.env.Reopen(envelope.MsgPack, ch.Envelope); problem != nil {
		return nil, notApplicable(ch, problem.Message())
	}
	s := newSession(p, ch.PID, ch.Seq, nil)
	if o.journals() {
		s.source = bytes.Clone(ch.Pipeline)
	}
	s.stage.Store(int32(ch.To))
	s.adopt(&c.env, ch.Envelope)
	s.life.Store(alive)
	s.last.Store(index)
	old, outcome := o.sessions.Put(s.pid, s, s.size(cap(s.env)), s.class(), ch.At.Mono, table.Policy{})
	if outcome == table.Full {
		return nil, notApplicable(ch, tableFull)
	}
	if old != nil {
		old.life.Store(dead)
		o.forget(old)
	}
	if s.state == waiting {
		o.waiting.add(s)
	}
	o.seq.Store(max(o.seq.Load(), s.seq))
	return s, nil
}

func (o *Engine) applyAnswer(c *Call, ch *Change, index uint64) {
	a := &answer{kind: envelope.Absent, raw: bytes.Clone(ch.Interrupt)}
	if a.raw != nil {
		if a.kind = envelope.Null; len(a.raw) > 1 || a.raw[0] != 0xc0 {
			a.kind = envelope.Map
		}
	}
	var list []*session
	for _, ref := range ch.Waiting {
		if s, ok := o.sessions.Get(ref.PID); ok && s.seq == ref.Seq && s.last.Load() < index {
			s.last.Store(index)
			list = append(list, s)
		}
	}
	for _, s := range list {
		o.grow(c, s, a.room())
	}
	o.resolve(c, list, a)
}

// applyReport takes a report that was decided before: where it led, and whether that was the end,
// stands in the change.
func (o *Engine) applyReport(c *Call, s *session, ch *Change) error {
	if ch.To < 0 || ch.To >= len(s.p.stages) || ch.Edge >= len(s.edges) {
		return notApplicable(ch, "no such stage or edge")
	}
	if c.env.Reopen(envelope.MsgPack, s.env) != nil {
		return notApplicable(ch, "the session's envelope cannot be read")
	}
	c.take(s, &ch.Report)
	st := step{to: ch.To, edge: ch.Edge, reason: ch.Reason}
	c.failure = append(c.failure[:0], ch.Text...)
	c.follow(s, &st)
	o.encode(c)
	o.account(c, s, len(c.buf))
	o.moved(c, s, &st)
	return nil
}

package orchestration

import (
	"slices"
	"sync"

	"trunkline/codec/wire"
	"trunkline/engine/envelope"
)

// waitIndex finds the sessions that wait for an interrupt by their envelope's identifier. It holds no more than there are
// sessions, and is locked last of all.
type waitIndex struct {
	mu   sync.Mutex
	byID map[string][]*session
}

func (w *waitIndex) add(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[string][]*session)
	}
	w.byID[string(s.envelopeID)] = append(w.byID[string(s.envelopeID)], s)
}

func (w *waitIndex) remove(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, ok := w.byID[string(s.envelopeID)]
	if !ok {
		return
	}
	if list = slices.DeleteFunc(list, func(other *session) bool { return other == s }); len(list) > 0 {
		w.byID[string(s.envelopeID)] = list
	} else {
		delete(w.byID, string(s.envelopeID))
	}
}

// find returns the sessions that wait with an envelope of that identifier.
func (w *waitIndex) find(id []byte) []*session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.byID[string(id)])
}

// answerFits reports whether the sessions that wait with the envelope id can take an answer of n bytes into their replies.
func (o *Engine) answerFits(id []byte, n int) bool {
	for _, s := range o.waiting.find(id) {
		s.mu.Lock()
		size := len(s.env) + n + maxMemberHead
		fits := s.stateSize(size) <= o.cfg.MaxReply && instructionSize(size, wire.MaxIdentifier) <= o.cfg.MaxReply
		s.mu.Unlock()
		if !fits {
			return false
		}
	}
	return true
}

// maxMemberHead bounds what a new member interrupt takes beside its value.
const maxMemberHead = 32

// resolve has the sessions that wait with the envelope id go on: c.env is an update of that envelope whose interrupt is no longer
// pending. Nothing else is taken from it (envelope §4.7, D39).
func (o *Engine) resolve(c *Call, id []byte) {
	list := o.waiting.find(id)
	if len(list) == 0 {
		return
	}
	answer := c.env.Value(envelope.Interrupt)
	c.failure = append(c.failure[:0], answer.Raw...)
	answer.Raw = c.failure
	for _, s := range list {
		o.goOn(c, s, answer)
	}
}

func (o *Engine) goOn(c *Call, s *session, answer envelope.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.endCancelled(c, s)
	if s.gone.Load() || s.state != waiting || c.env.Decode(envelope.MsgPack, s.env) != nil {
		return
	}
	e := &c.env
	e.SetBool(envelope.InterruptPending, false)
	switch answer.Kind {
	case envelope.Map:
		e.SetRaw(envelope.Interrupt, envelope.Map, answer.Raw)
	case envelope.Null:
		e.SetNull(envelope.Interrupt)
	default:
		e.Remove(envelope.Interrupt)
	}
	o.encode(c)
	if s.stateSize(len(c.buf)) > o.cfg.MaxReply || !o.account(c, s, len(c.buf)) {
		// The answer itself does not fit: the session goes on with the interrupt it had.
		if e.Decode(envelope.MsgPack, s.env) != nil {
			return
		}
		e.SetBool(envelope.InterruptPending, false)
		o.encode(c)
		o.account(c, s, len(c.buf))
	}
	o.commit(s, c)
	o.sessions.Touch(s.pid, c.Now.Mono)
}

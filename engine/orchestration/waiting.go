package orchestration

import (
	"bytes"
	"sync"

	"trunkline/codec/wire"
	"trunkline/engine/envelope"
)

// waitIndex finds the sessions that wait for an interrupt by their envelope's identifier. It holds
// no more than there are sessions, and is locked last of all.
type waitIndex struct {
	mu   sync.Mutex
	byID map[string]map[*session]struct{}
}

func (w *waitIndex) add(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[string]map[*session]struct{})
	}
	set := w.byID[string(s.envelopeID)]
	if set == nil {
		set = make(map[*session]struct{})
		w.byID[string(s.envelopeID)] = set
	}
	set[s] = struct{}{}
}

func (w *waitIndex) remove(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set := w.byID[string(s.envelopeID)]
	if delete(set, s); len(set) == 0 {
		delete(w.byID, string(s.envelopeID))
	}
}

func (w *waitIndex) find(id []byte) (list []*session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.byID[string(id)] {
		list = append(list, s)
	}
	return list
}

// answer is what an update of an envelope makes of the interrupt that sessions wait for. It is
// shared by them and never changed.
type answer struct {
	kind envelope.Kind
	raw  []byte
}

// answerFits reports whether each of the sessions can take an answer of n bytes into its replies.
func (o *Engine) answerFits(list []*session, n int) bool {
	for _, s := range list {
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

// reserve has the table count what the interrupt in c.env will add to each of the sessions when
// they take it; it reports false, and counts nothing, if there is no room for all of them. No
// answer may be lost once the update was acknowledged.
func (o *Engine) reserve(c *Call, list []*session) (a *answer, ok bool) {
	if len(list) == 0 {
		return nil, true
	}
	v := c.env.Value(envelope.Interrupt)
	a = &answer{v.Kind, bytes.Clone(v.Raw)}
	for i, s := range list {
		if !o.grow(c, s, a.room()) {
			o.release(c, list[:i], a)
			return nil, false
		}
	}
	return a, true
}

// room bounds how much more a session counts for with the answer in it.
func (a *answer) room() int { return len(a.raw) + maxMemberHead }

// release takes back what reserve had counted.
func (o *Engine) release(c *Call, list []*session, a *answer) {
	for _, s := range list {
		o.grow(c, s, -a.room())
	}
}

// maxAnswered bounds the bytes of the identifiers in one record, so that it stays a record however
// many sessions wait.
const maxAnswered = 4 << 20

// resolve has the sessions, which wait, go on with an answer that reserve made room for. Nothing
// else is taken from an update (envelope §4.7, D39). Each takes the answer into its envelope when
// it is asked for next: there may be as many of them as there are sessions.
func (o *Engine) resolve(c *Call, list []*session, a *answer) {
	for n := 0; len(list) > 0; list, n = list[n:], 0 {
		ch := &c.change
		*ch = Change{Kind: ChangeAnswer, Interrupt: a.raw, Waiting: ch.Waiting[:0]}
		for size := 0; n < len(list) && size < maxAnswered; n++ {
			ch.Waiting = append(ch.Waiting, SessionRef{list[n].pid, list[n].seq})
			size += len(list[n].pid)
		}
		index := o.recordChange(c, ch)
		for _, s := range list[:n] {
			// Touched before it counts as running: a sweep must not find it idle in between.
			o.sessions.Touch(s.pid, c.Now.Mono)
			s.answer.Store(a)
			s.advance(index) // after the answer: a snapshot that has the index has the answer
			s.idle.Store(0)
			s.expires.Store(0)
			o.waiting.remove(s)
		}
	}
}

// settle brings the session, which is locked, up to what happened to it since: its interrupt was
// answered, or its process was terminated.
func (o *Engine) settle(c *Call, s *session) {
	if a := s.answer.Load(); a != nil {
		s.answer.Store(nil)
		if s.state == waiting {
			o.goOn(c, s, a)
		} else {
			o.account(c, s, len(s.env)) // it ended in between, and the answer counts no more
		}
	}
	if s.cancelled.Load() && s.state != terminated {
		o.end(c, s, envelope.UserCancelled, processTerminated)
	}
}

// goOn makes a waiting session run. Its room was reserved.
func (o *Engine) goOn(c *Call, s *session, a *answer) {
	e := &c.env
	if e.Reopen(envelope.MsgPack, s.env) != nil {
		return
	}
	e.SetBool(envelope.InterruptPending, false)
	switch a.kind {
	case envelope.Map:
		e.SetRaw(envelope.Interrupt, envelope.Map, a.raw)
	case envelope.Null:
		e.SetNull(envelope.Interrupt)
	default:
		e.Remove(envelope.Interrupt)
	}
	o.encode(c)
	s.env = make([]byte, 0, len(c.buf)) // exactly: no more was reserved
	o.account(c, s, len(c.buf))
	o.commit(s, c)
}

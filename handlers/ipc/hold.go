package ipc

import "trunkline/engine/journal"

// hold keeps what was appended to out behind start until the journal is durable up to an index: what a reply reports, or an event
// shows, must survive a crash. Replies keep their order, so whatever comes behind held ones is held too.
func (s *session) hold(out []byte, start int, upTo journal.Index) []byte {
	svc := s.svc
	log := svc.store.Log()
	if log == nil || len(out) == start || len(s.held) == 0 && upTo <= log.Durable() {
		return out
	}
	s.held = append(s.held, out[start:]...)
	s.until = max(s.until, upTo)
	s.port.Await(&svc.writer.mark, s.until)
	if !log.FlushNext() { // else the round shares the next group without being ended for it
		s.port.AtRoundEnd(svc)
	}
	return out[:start]
}

// unhold appends what was held, if it may leave by now.
func (s *session) unhold(out []byte) []byte {
	if len(s.held) == 0 {
		return out
	}
	if mark := &s.svc.writer.mark; mark.At() < s.until {
		s.port.Await(mark, s.until) // the owner may be another one now
		return out
	}
	out = append(out, s.held...)
	if s.held = s.held[:0]; cap(s.held) > keepLent {
		s.held = nil
	}
	return out
}

// appended is the index that a reader of the present state has to wait for.
func (s *session) appended() journal.Index { return s.svc.store.Appended() }

// heldUp reports whether so much is held that nothing more should be made.
func (s *session) heldUp() bool { return len(s.held) > s.svc.cfg.UnsentBytes }

package ipc

import "trunkline/engine/journal"

// deferReplies takes back what was appended to out behind start until the journal is durable up to
// an index: what a reply reports, or an event shows, must survive a crash. Replies keep their
// order, so those behind deferred ones are deferred too.
func (s *session) deferReplies(out []byte, start int, upTo journal.Index) []byte {
	svc := s.svc
	log := svc.store.Log()
	if log == nil || len(out) == start || len(s.deferred) == 0 && upTo <= log.Durable() {
		return out
	}
	s.deferred = append(s.deferred, out[start:]...)
	s.until = max(s.until, upTo)
	s.port.Await(&svc.progress.mark, s.until)
	if !log.FlushNext() { // else the round shares the next group without being ended for it
		s.port.AtRoundEnd(svc)
	}
	return out[:start]
}

// appendDeferred appends the deferred replies, if the journal is durable up to their index.
func (s *session) appendDeferred(out []byte) []byte {
	if len(s.deferred) == 0 {
		return out
	}
	if mark := &s.svc.progress.mark; mark.At() < s.until {
		s.port.Await(mark, s.until) // the owner may be another one now
		return out
	}
	out = append(out, s.deferred...)
	if s.deferred = s.deferred[:0]; cap(s.deferred) > keepLent {
		s.deferred = nil
	}
	return out
}

// appended is the index that a reader of the present state has to wait for.
func (s *session) appended() journal.Index { return s.svc.store.Appended() }

// deferralFull reports whether so much is deferred that nothing more should be made.
func (s *session) deferralFull() bool { return len(s.deferred) > s.svc.cfg.UnsentBytes }

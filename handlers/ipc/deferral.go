package ipc

import "trunkline/engine/journal"

// deferReplies holds back what was appended to out behind start until the journal is durable up to
// an index.
func (s *session) deferReplies(out []byte, start int, upTo journal.Index) []byte {
	return s.deferred.Hold(s.port, &s.svc.progress.gate, out, start, upTo)
}

// appendDeferred appends the deferred replies, if the journal is durable up to their index.
func (s *session) appendDeferred(out []byte) []byte {
	out = s.deferred.Append(s.port, &s.svc.progress.gate, out)
	s.left()
	return out
}

// appended is the index that a reader of the present state has to wait for.
func (s *session) appended() journal.Index { return s.svc.store.Appended() }

// deferralFull reports whether so much is deferred that nothing more should be made.
func (s *session) deferralFull() bool { return s.deferred.Len() > s.svc.cfg.UnsentBytes }

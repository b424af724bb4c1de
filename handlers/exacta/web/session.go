package web

import "trunkline/engine/link"

// session is that of lines, over a WebSocket.
type session struct {
	link.Session
	over bool // the peer has ended
}

// EOF implements link.Session.
func (s *session) EOF(now link.Instant) {
	s.over = true
	s.Session.EOF(now)
}

// Report implements link.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	if r, ok := s.Session.(link.Reporter); ok {
		return r.Report()
	}
	return 0, 0
}

// Load implements link.Session. A WebSocket whose peer has ended takes no more answers: what was
// asked for goes on without it (exacta §2.6).
func (s *session) Load() link.Load {
	l := s.Session.Load()
	l.Done = l.Done || s.over
	return l
}

package exacta

import (
	"trunkline/codec/ndjson"
	"trunkline/engine/connection"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/secret"
)

// Limits of what a peer sends (exacta §2.1).
const (
	turnBytes    = 1 << 20
	maxBadLines  = 32 // in a row, over sockets
	discardTimes = 8  // how many times the longest message a line over a socket may be
)

// Feed implements connection.Session.
func (s *session) Feed(in, out []byte, now connection.Instant) (used int, outAfter []byte, v connection.Verdict) {
	if s.phase == connection.Draining {
		return len(in), out, connection.More
	}
	s.clock, s.came = s.srv.cfg.Clock.At(now.Wall), now.Mono
	defer s.left()
	sc := s.srv.scratches.Get().(*scratch)
	defer s.srv.scratches.Put(sc)
	for start := len(out); ; {
		switch {
		case s.lost || s.bad >= maxBadLines && s.limited():
			return used, out, connection.Close
		case s.opening.Load(): // what follows may be for its project
			s.enterAll()
			return used, out, connection.Blocked
		case used >= turnBytes || len(out)-start > connection.DefaultUnsentBytes:
			return used, out, connection.Yield
		}
		var n int
		n, out, v = s.line(in[used:], out, sc)
		if used += n; v != connection.Yield {
			return used, out, v
		}
	}
}

// line takes one line, or what is due before it. With the verdict Yield there may be another one.
func (s *session) line(in, out []byte, sc *scratch) (used int, _ []byte, v connection.Verdict) {
	switch s.expects {
	case firstLine:
		return s.greet(in, out)
	case restOfLine:
		return s.skip(in, out)
	case endOfLine:
		return s.returned(in, out)
	}
	line, used, st, scanned := ndjson.Split(in, s.scanned, s.longest())
	s.scanned = scanned
	switch {
	case st == ndjson.More:
		return 0, out, connection.More
	case st == ndjson.TooLong:
		s.expects, s.discarded = restOfLine, used
		s.in = incoming{refusal: codec.Refusal{Code: "IPC-001", Detail: "message_too_large"}}
		out = s.take(out)
	case blank(line):
	case len(line) > bigLine && !s.srv.input.Fit(&s.charge, len(line)):
		s.in = incoming{refusal: noRoom}
		out = s.take(out)
	case len(line) > bigLine:
		s.sendAway(line)
		return used - 1, out, connection.Blocked // the end of the line is taken when it is back
	default:
		s.in.read(line, sc)
		out = s.take(out)
	}
	return used, out, connection.Yield
}

// longest is how many bytes a line may have. A longer message ends its WebSocket, which hands on
// one byte too many before it knows (exacta §2.2).
func (s *session) longest() int {
	if s.carrier == WebSocket {
		return s.srv.cfg.MaxMessageBytes + 1
	}
	return s.srv.cfg.MaxMessageBytes
}

// blank reports whether a line is ignored.
func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// skip drops more of a line that is too long.
func (s *session) skip(in, out []byte) (used int, _ []byte, v connection.Verdict) {
	used, done := ndjson.Skip(in)
	if s.discarded += used; done {
		s.discarded, s.expects = s.discarded-1, wholeLine
	}
	switch {
	case s.limited() && s.discarded > discardTimes*s.srv.cfg.MaxMessageBytes:
		return used, out, connection.Close
	case !done:
		return used, out, connection.More
	}
	return used, out, connection.Yield
}

// limited reports whether the connection is closed where its peer sends too much that is no
// message.
func (s *session) limited() bool { return s.carrier == TCP || s.carrier == Unix }

// enterAll makes the cursors for projects that were opened.
func (s *session) enterAll() {
	if s.held.Load() == 0 {
		return
	}
	s.mu.Lock()
	entered := s.entered
	s.entered = nil
	s.held.Add(-int64(len(entered)))
	s.mu.Unlock()
	for _, at := range entered {
		s.feed(at.journal, at.next)
	}
}

// take answers the message at hand, or hands it on, and lets go of it.
func (s *session) take(out []byte) []byte {
	switch r := &s.in.refusal; r.Code {
	case "IPC-001":
		s.bad++
		out = s.refuse(out, r)
	case "IPC-002": // another version may be readable, and is no envelope of this one
		out = s.refuse(out, r)
	case "":
		s.bad = 0
		out = s.serve(out)
	default:
		s.bad = 0
		out = s.refuse(out, r)
	}
	s.in = incoming{}
	return out
}

// refuse answers the message at hand. It does not allocate, but to hide a credential.
func (s *session) refuse(out []byte, r *codec.Refusal) []byte {
	if len(r.Value) > 0 && secret.Leaks(r.Value) {
		r.Value = []byte(secret.Redacted)
	}
	s.srv.counts.answer(s.in.Command, r.Code)
	s.answered.Add(int(s.in.Command), s.came, 1, 1)
	return codec.AppendRefusal(out, s.in.RequestID, s.srv.scope.Next(codec.Correlation), s.clock, r)
}

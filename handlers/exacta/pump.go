package exacta

import (
	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// Pump implements connection.Session: answers behind the events that came before them, then the
// events that came since (exacta §2.4).
func (s *session) Pump(out []byte, room int, _ connection.Instant) (outAfter []byte, more bool) {
	start := len(out)
	for !s.lost {
		s.enterAll()
		last := s.lasts() // before the outbox: what comes behind an answer is not among them
		o, ok := s.peek()
		s.enterAll() // what an answer is about was entered before it
		left := room - (len(out) - start)
		if !ok {
			return s.events(out, left, last)
		}
		if left <= 0 {
			return out, true
		}
		var copied projects.Copied
		if o.Journal != nil {
			next := o.After + 1
			if o.Opens { // of a repeated one: its events are the only own ones there
				next = o.Journal.Status().Oldest
			}
			c := s.feed(o.Journal, next)
			if out, copied = o.Journal.Copy(out, left, c, o.After); copied != projects.CopiedAll {
				return out, s.stuck(copied)
			}
			s.follow(c, o)
		}
		out = append(out, o.Line...)
		s.pop(o)
	}
	return out, false
}

// stuck reports whether copying goes on at the next Pump.
func (s *session) stuck(c projects.Copied) (more bool) {
	s.lost = s.lost || c == projects.CopiedLost
	return c == projects.CopiedFull
}

// limitOf is the last event of a journal that may be copied.
type limitOf struct {
	journal *projects.Journal
	status  projects.Status
}

// lasts returns how far all journals are now.
func (s *session) lasts() []limitOf {
	s.limits = s.limits[:0]
	for j := range s.feeds {
		s.limits = append(s.limits, limitOf{j, j.Status()})
	}
	return s.limits
}

// events copies events of all projects.
func (s *session) events(out []byte, room int, last []limitOf) (_ []byte, more bool) {
	start := len(out)
	for _, l := range last {
		c := s.feeds[l.journal]
		var copied projects.Copied
		out, copied = l.journal.Copy(out, room-(len(out)-start), c, l.status.Last)
		more = s.stuck(copied) || more
		if l.status.Ended && c.Next > l.status.Last {
			l.journal.Unwatch(s.port)
			delete(s.feeds, l.journal)
		}
	}
	return out, more
}

// peek returns what is to be sent next.
func (s *session) peek() (*outgoing, bool) {
	if s.held.Load() == 0 {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.outbox) {
		return nil, false
	}
	o := s.outbox[s.next]
	return &o, true
}

// pop removes it.
func (s *session) pop(o *outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox[s.next] = outgoing{}
	s.held.Add(-1)
	s.queued -= len(o.Line)
	if o.own {
		s.unanswered--
	}
	switch s.next++; {
	case s.next < len(s.outbox) && s.next < answerMemory:
	case s.next < len(s.outbox)-s.next: // moved when it is at most half, so each is moved about once
	default:
		n := copy(s.outbox, s.outbox[s.next:])
		clear(s.outbox[n:])
		s.next, s.outbox = 0, s.outbox[:n]
		if n == 0 && cap(s.outbox) > answerMemory {
			s.outbox = nil
		}
	}
}

// follow changes a subscription behind an answer (exacta §2.4, §3.5).
func (s *session) follow(c *projects.Cursor, o *outgoing) {
	switch {
	case o.cursor != nil:
		next, own := c.Next, max(c.Own, c.Next) // own events before it were sent
		*c = o.cursor.Cursor
		if c.Conn, c.Own = s.id, own; !o.cursor.move {
			c.Next = next
		}
		if s.phase != connection.Open {
			c.Window = 0
		}
	case o.Opens && !c.All:
		c.All, c.From, c.Correlation = true, o.After+1, codec.ID{}
	}
}

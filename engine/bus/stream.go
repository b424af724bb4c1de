package bus

import "sync"

// Stream is the bounded queue of one live stream (kernel-ipc §5.4). Its opener pops it; all methods
// are safe for concurrent use, but messages keep their order only for a single popper.
type Stream struct {
	mu        sync.Mutex
	live      bool // takes messages
	signalled bool // Wake was called and Pop has not returned nil since; true whenever something waits
	ring      ring
	bytes     int64  // body bytes in ring
	dropped   uint64 // events lost behind the last entry of ring
	port      Port   // nil once closed, so that a stream still listed in a topic does not keep its connection

	bus      *Bus
	overhead int
	kind     Kind
	types    []string  // sorted, without repeats; read by the registry's add and remove alone
	interest *interest // nil without patterns; read by Detach alone
	named    int64     // what types and patterns count of Config.NameBytes

	asked map[*Query]struct{} // unanswered queries given to this stream; guarded by queryTable.mu
}

// verdict is a stream's answer to an offered message.
type verdict uint8

const (
	taken verdict = iota
	closed
	tooLarge
	full
)

// open makes the stream take messages, for all its types at once.
func (s *Stream) open() {
	s.mu.Lock()
	s.live = true
	s.mu.Unlock()
	if s.kind == Subscription {
		s.bus.counters.subscribers.Add(1)
	}
}

// offer gives one reference of m to the stream if the verdict is taken. The caller wakes wake, if
// not nil, once it holds no lock. may is the verdict of the server-wide total.
func (s *Stream) offer(m *Message, may admission) (v verdict, wake Port) {
	s.mu.Lock()
	v = s.admit(len(m.Body), may)
	switch {
	case v == taken:
		s.ring.push(entry{m: m, lost: s.dropped}, &s.bus.slots)
		s.bytes += int64(len(m.Body))
		s.dropped = 0
	case v != closed && s.kind == Subscription:
		s.dropped++
	default:
		s.mu.Unlock()
		return v, nil
	}
	if !s.signalled {
		s.signalled = true
		wake = s.port
	}
	s.mu.Unlock()
	return v, wake
}

// admit decides on a body of n bytes. The caller holds s.mu.
func (s *Stream) admit(n int, may admission) verdict {
	cfg := &s.bus.cfg
	switch {
	case !s.live:
		return closed
	case n+s.overhead > cfg.MaxBody:
		return tooLarge
	case may == forNone, may == forIdle && s.signalled, s.ring.len() >= cfg.StreamBufferEvents, s.bytes+int64(n) > cfg.StreamBufferBytes:
		return full
	}
	return taken
}

// Pop returns the next message, or nil when nothing waits; nil re-arms Wake. Where events are
// missing it returns a gap marker. The caller releases the message. It does not allocate once warm.
func (s *Stream) Pop() *Message {
	for {
		m, lost := s.next()
		if lost == 0 {
			return m
		}
		if marker := s.gapMarker(lost); marker != nil {
			return marker
		}
	}
}

// next takes one thing off the queue: a number of lost events, a message, or neither.
func (s *Stream) next() (m *Message, lost uint64) {
	s.mu.Lock()
	switch head := s.ring.head(); {
	case head == nil && s.dropped == 0:
		s.signalled = false
	case head == nil:
		lost, s.dropped = s.dropped, 0
	case head.lost > 0:
		lost, head.lost = head.lost, 0
	default:
		m = s.ring.pop(&s.bus.slots)
		s.bytes -= int64(len(m.Body))
	}
	s.mu.Unlock()
	return m, lost
}

// Pending reports whether there is something to pop. It does not allocate.
func (s *Stream) Pending() bool {
	s.mu.Lock()
	pending := s.ring.len() > 0 || s.dropped > 0
	s.mu.Unlock()
	return pending
}

// belongsTo reports whether the stream is p's own; a closed one has no owner.
func (s *Stream) belongsTo(p Port) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.port == p
}

// Detach takes the stream out of the registry: it takes no message from now on, its types are free,
// and its unanswered queries are Cancelled before Detach returns. What is buffered can still be
// popped ("ending", kernel-ipc §5.4). Repeating it does nothing.
func (s *Stream) Detach() {
	s.mu.Lock()
	was := s.live
	s.live, s.port = false, nil
	s.mu.Unlock()
	if !was {
		return
	}
	s.bus.registry.remove(s)
	if s.interest != nil {
		s.bus.removeInterest(s.interest)
	}
	s.types, s.interest = nil, nil
	s.bus.counters.named.Add(-s.named)
	switch s.kind {
	case Subscription:
		s.bus.counters.subscribers.Add(-1)
	case QueryHandler:
		cancelAll(s.bus.queries.abandon(s))
	}
}

// Discard is Detach and drops what is buffered (eviction, connection gone).
func (s *Stream) Discard() {
	s.Detach()
	s.mu.Lock()
	var rest ring
	rest, s.ring = s.ring, ring{}
	s.bytes, s.dropped = 0, 0
	s.mu.Unlock()
	for rest.len() > 0 {
		rest.pop(&s.bus.slots).Release()
	}
}

// gapMarker returns the message that stands for lost events (kernel-ipc §4.18, D37), with one
// reference for the caller. It returns nil when the marker would exceed the frame bound: a peer
// drops the connection on such a frame (kernel-ipc §2.1).
func (s *Stream) gapMarker(lost uint64) *Message {
	m := s.bus.NewMessage(0)
	m.Body = s.bus.cfg.GapBody(m.Body, lost)
	if len(m.Body)+s.overhead > s.bus.cfg.MaxBody {
		m.Release()
		return nil
	}
	return m
}

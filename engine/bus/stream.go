package bus

import (
	"math/bits"
	"sync"
)

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
	case may == forNone,
		may == forIdle && s.signalled,
		s.ring.len() >= cfg.StreamBufferEvents,
		s.bytes+int64(n) > cfg.StreamBufferBytes:
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

const (
	// firstSlots is the size of a ring's first array: 256 bytes, which a used stream keeps.
	firstSlots = 16
	// slotClasses is the number of pooled array sizes: 16, 32, … up to 2^20. Larger ones are not
	// pooled.
	slotClasses   = 17
	firstSlotBits = 4
)

// entry is one waiting message and the number of events lost just before it.
type entry struct {
	m    *Message
	lost uint64
}

// ring is a queue of entries that grows by doubling. Its owner bounds and locks it.
type ring struct {
	slots *slots // nil while nothing has been pushed or after a large ring was drained
	first int
	n     int
}

// slots is an array of 2^n entries. It is a struct so that pooling it does not allocate.
type slots struct{ entries []entry }

func (r *ring) len() int { return r.n }

// head returns the oldest entry, nil when empty; valid until the next push or pop.
func (r *ring) head() *entry {
	if r.n == 0 {
		return nil
	}
	return &r.slots.entries[r.first]
}

func (r *ring) push(e entry, pools *slotPools) {
	if r.slots == nil || r.n == len(r.slots.entries) {
		r.grow(pools)
	}
	r.slots.entries[(r.first+r.n)&(len(r.slots.entries)-1)] = e
	r.n++
}

func (r *ring) grow(pools *slotPools) {
	if r.slots == nil {
		r.slots = pools.get(firstSlots)
		return
	}
	old := r.slots
	r.slots = pools.get(2 * len(old.entries))
	k := copy(r.slots.entries, old.entries[r.first:])
	copy(r.slots.entries[k:], old.entries[:r.first])
	r.first = 0
	pools.put(old)
}

// pop takes the oldest message off a ring that is not empty. A drained ring gives its array back
// unless it is the smallest: an idle stream must not hold the memory of its largest burst.
func (r *ring) pop(pools *slotPools) *Message {
	m := r.slots.entries[r.first].m
	r.slots.entries[r.first] = entry{}
	r.first = (r.first + 1) & (len(r.slots.entries) - 1)
	r.n--
	if r.n == 0 && len(r.slots.entries) > firstSlots {
		pools.put(r.slots)
		r.slots, r.first = nil, 0
	}
	return m
}

// slotPools shares the arrays of all rings of a bus: bursts on a warm bus do not allocate.
type slotPools [slotClasses]sync.Pool

// get returns an array of n empty entries; n is a power of two.
func (p *slotPools) get(n int) *slots {
	if class := slotClass(n); class >= 0 {
		if s, ok := p[class].Get().(*slots); ok {
			return s
		}
	}
	return &slots{entries: make([]entry, n)}
}

func (p *slotPools) put(s *slots) {
	class := slotClass(len(s.entries))
	if class < 0 {
		return
	}
	// A pooled array must not keep messages alive, nor show them to its next owner.
	clear(s.entries)
	p[class].Put(s)
}

// slotClass returns the pool of arrays of n entries, a power of two; -1 when they are not pooled.
func slotClass(n int) int {
	class := bits.TrailingZeros(uint(n)) - firstSlotBits
	if class >= slotClasses {
		return -1
	}
	return class
}

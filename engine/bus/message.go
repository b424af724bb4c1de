package bus

import (
	"sync/atomic"

	"trunkline/engine/internal/poison"
)

// bodySizes are the capacities of pooled buffers, in bytes. A small event must not hold a large
// buffer for as long as a slow stream holds the event; buffers larger than the largest class are
// not kept at all, so that one burst of frame-sized bodies does not stay.
var bodySizes = [...]int{128, 512, 2 << 10, 8 << 10, 64 << 10}

// perMessage is what a held message takes beside its body: itself, and its place in a queue.
const perMessage = 96

// Message is one encoded body, shared by every stream that took it. It is reference counted:
// NewMessage and Pop give one reference to the caller, Publish and Send consume one.
type Message struct {
	// Body is the encoded body. Its builder appends to it until Publish or Send; then it is
	// constant. It is valid until the holder's Release.
	Body []byte

	bus  *Bus
	size int64 // bytes of memory charged to Bus.counters.buffered, 0 until a stream may hold the message
	refs atomic.Int32
}

// NewMessage returns a message with one reference and an empty Body to append about size bytes to.
// It does not allocate once warm, for sizes up to the largest class.
func (b *Bus) NewMessage(size int) *Message {
	class := 0
	for class < len(bodySizes)-1 && bodySizes[class] < size {
		class++
	}
	m, ok := b.messages[class].Get().(*Message)
	if !ok {
		m = &Message{Body: make([]byte, 0, max(bodySizes[class], size)), bus: b}
	}
	m.refs.Store(1)
	return m
}

// recycle puts m into the pool of the largest class that its buffer fills.
func (b *Bus) recycle(m *Message) {
	m.Body = m.Body[:0]
	if cap(m.Body) > bodySizes[len(bodySizes)-1] {
		return
	}
	for class := len(bodySizes) - 1; class >= 0; class-- {
		if cap(m.Body) >= bodySizes[class] {
			b.messages[class].Put(m)
			return
		}
	}
}

// Release gives up one reference. After the last one the body's bytes are reused.
func (m *Message) Release() { m.unref(1) }

func (m *Message) unref(n int) {
	switch left := m.refs.Add(int32(-n)); {
	case left > 0:
		return
	case left < 0:
		panic("BUG: bus.Message released more often than referenced")
	}
	b := m.bus
	if m.size != 0 {
		b.counters.buffered.Add(-m.size)
		m.size = 0
	}
	poison.Fill(m.Body[:cap(m.Body)])
	b.recycle(m)
}

// admission is which streams may hold a message, for the sake of the server-wide total.
type admission uint8

const (
	forNone   admission = iota // the message would exceed the bound
	forIdle                    // only those that have popped all they took
	forAnyone                  // it leaves the reserve untouched
)

// reserved is the part of the bound that streams with a backlog leave to those without: slow
// readers must not cost the others their events.
const reserved = 16

// charge books the memory that the message holds on the server-wide total, once for all streams and
// until the last reference is gone, and reports who may hold it. It books nothing where the total
// would exceed its bound, so that it never does, however many publish at a time.
func (m *Message) charge() admission {
	size, total, most := int64(cap(m.Body))+perMessage, &m.bus.counters.buffered, m.bus.cfg.StreamBufferTotalBytes
	for {
		have := total.Load()
		switch {
		case size > most-have:
			return forNone
		case !total.CompareAndSwap(have, have+size):
			continue
		}
		if m.size = size; have+size > most-most/reserved {
			return forIdle
		}
		return forAnyone
	}
}

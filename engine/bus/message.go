package bus

import "sync/atomic"

const (
	// maxPooledBody bounds the buffers that go back to the pool, in bytes: one burst of frame-sized bodies must not be kept.
	maxPooledBody = 64 << 10
	// firstBody is the capacity of a new message's buffer, in bytes: an ordinary event fits without growing.
	firstBody = 512
)

// Message is one encoded body, shared by every stream that took it. It is reference counted: NewMessage and Pop give one
// reference to the caller, Publish and Send consume one.
type Message struct {
	// Body is the encoded body. Its builder appends to it; from Publish or Send on nobody writes to it. It is valid until
	// the holder's Release.
	Body []byte

	bus  *Bus
	size int64 // bytes charged to Bus.counters.buffered, 0 until a stream may hold the message
	refs atomic.Int32
}

// NewMessage returns a message with one reference and an empty Body to append to. It does not allocate once warm.
func (b *Bus) NewMessage() *Message {
	m, ok := b.messages.Get().(*Message)
	if !ok {
		m = &Message{Body: make([]byte, 0, firstBody), bus: b}
	}
	m.refs.Store(1)
	return m
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
	poison(m.Body[:cap(m.Body)])
	if cap(m.Body) > maxPooledBody {
		m.Body = nil
	}
	m.Body = m.Body[:0]
	b.messages.Put(m)
}

// charge books the body on the server-wide total, once for all streams and until the last reference is gone. It reports
// whether the total is now beyond its bound. Booking before the streams decide makes concurrent publishers see each other.
func (m *Message) charge() (tight bool) {
	m.size = int64(len(m.Body))
	return m.bus.counters.buffered.Add(m.size) > m.bus.cfg.TotalBytes
}

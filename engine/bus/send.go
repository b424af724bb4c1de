package bus

import (
	"math/bits"
	"sync/atomic"

	"trunkline/engine/internal/poison"
)

// Outcome is the result of sending a command or a query.
type Outcome uint8

// The outcomes of Send and Query (kernel-ipc §4.16, §4.17).
const (
	Sent           Outcome = iota
	NoHandler              // no stream handles the type
	BufferFull             // the handler's queue is full
	TooLarge               // the body does not fit into a frame of the handler's stream
	TooManyQueries         // Config.QueryCapacity queries are pending
)

var outcomeOf = [...]Outcome{taken: Sent, closed: NoHandler, tooLarge: TooLarge, full: BufferFull}

// Publish gives m to every live subscription that lists exactly typ or has a pattern that matches
// it, and returns how many took it; the others record a gap (kernel-ipc §4.15, §4.18). It consumes
// the caller's reference and counts one published event in every case. m may be nil when Wants was
// false: then it only counts. It returns after the last stream has decided and does not allocate
// once warm.
func (b *Bus) Publish(typ []byte, m *Message) (delivered int) {
	b.counters.events.Add(1)
	if m == nil {
		return 0
	}
	streams, patterns := b.registry.subscriptions(typ), b.patterns.Load()
	if len(streams) == 0 && patterns == nil {
		m.Release()
		return 0
	}
	out := fanOut{m: m, may: m.charge()}
	// One addition for all streams; those that take nothing give theirs back at the end.
	m.refs.Add(int32(len(streams)))
	for _, s := range streams {
		out.offer(s)
	}
	if patterns != nil {
		out.match(typ, patterns)
	}
	if out.dropped > 0 {
		b.counters.dropped.Add(int64(out.dropped))
	}
	m.unref(out.offered - out.delivered + 1)
	return out.delivered
}

// fanOut is the way of one event to its subscriptions.
type fanOut struct {
	m                           *Message
	may                         admission
	offered, delivered, dropped int
}

// offer gives the event, with a reference that was taken for it, to a stream.
func (o *fanOut) offer(s *Stream) {
	o.offered++
	v, wake := s.offer(o.m, o.may)
	switch v {
	case taken:
		o.delivered++
	case tooLarge, full:
		o.dropped++
	}
	if wake != nil {
		wake.Wake()
	}
}

// match offers the event to the subscriptions that get it by a pattern: to each once, and not to
// those that list its type.
func (o *fanOut) match(typ []byte, patterns *patternSet) {
	var served *interest
	for _, k := range patterns.blocks {
		hit := k.match(typ)
		for i, word := range hit {
			for ; word != 0; word &= word - 1 {
				in := k.owners[i*64+bits.TrailingZeros64(word)]
				if in == served {
					continue
				}
				if served = in; !in.lists(typ) {
					o.m.refs.Add(1)
					o.offer(in.stream)
				}
			}
		}
	}
}

// Send gives m to the command handler of typ (kernel-ipc §4.16): Sent means that its queue took it,
// at most once. It consumes the caller's reference in every case and does not allocate once warm.
func (b *Bus) Send(typ []byte, m *Message) Outcome {
	h := b.registry.handler(CommandHandler, typ)
	if h == nil {
		m.Release()
		return NoHandler
	}
	may := m.charge()
	m.refs.Add(1)
	v, wake := h.offer(m, may)
	if v != taken {
		m.unref(2)
		return outcomeOf[v]
	}
	b.counters.commands.Add(1)
	m.Release()
	if wake != nil {
		wake.Wake()
	}
	return Sent
}

// Emit publishes an event of another protocol in the same process: payload, which is copied, goes
// into a body that Config.EventBody makes. It may be called from any goroutine, also after Close,
// and never blocks: a subscription that cannot take the event remembers a gap (kernel-ipc §4.18).
// It does not allocate once warm. Wants reports beforehand whether an event has a subscriber.
func (b *Bus) Emit(eventType, source string, payload []byte) {
	m := b.NewMessage(len(eventType) + len(payload) + len(source) + eventRoom)
	m.Body = b.cfg.EventBody(m.Body, eventType, source, payload)
	var typ [64]byte
	b.Publish(append(typ[:0], eventType...), m)
}

// eventRoom is what a body has beside its type, payload and source, in bytes.
const eventRoom = 80

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

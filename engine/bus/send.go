package bus

import "math/bits"

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

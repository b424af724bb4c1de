package bus

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

// Publish gives m to every live subscription that lists exactly typ and returns how many took it;
// the others record a gap (kernel-ipc §4.15, §4.18). It consumes the caller's reference and counts
// one published event in every case. m may be nil when Wants was false: then it only counts. It
// returns after the last stream has decided and does not allocate once warm.
func (b *Bus) Publish(typ []byte, m *Message) (delivered int) {
	b.counters.events.Add(1)
	if m == nil {
		return 0
	}
	streams := b.registry.subscriptions(typ)
	if len(streams) == 0 {
		m.Release()
		return 0
	}
	may := m.charge()
	// One addition for all streams; those that take nothing give theirs back at the end.
	m.refs.Add(int32(len(streams)))
	dropped := 0
	for _, s := range streams {
		v, wake := s.offer(m, may)
		switch v {
		case taken:
			delivered++
		case tooLarge, full:
			dropped++
		}
		if wake != nil {
			wake.Wake()
		}
	}
	if dropped > 0 {
		b.counters.dropped.Add(int64(dropped))
	}
	m.unref(len(streams) - delivered + 1)
	return delivered
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

package bus

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

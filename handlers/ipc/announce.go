package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/engine/link"
)

// Wants reports whether a live subscription lists eventType, so that another protocol in the same process builds no event for nobody.
// It does not allocate; where nobody subscribes to anything it is one atomic load.
func (s *Service) Wants(eventType string) bool { return s.bus.Wants(eventType) }

// Announce publishes an event of another protocol in the same process, as Publish does (kernel-ipc §4.15). payload is JSON text, which is
// copied, not checked. It may be called from any goroutine, also after Close, and never blocks: a subscription that cannot take the event
// remembers a gap (kernel-ipc §4.18). It does not allocate once warm.
func (s *Service) Announce(eventType, source string, payload []byte) {
	m := s.bus.NewMessage(len(eventType) + len(payload) + len(source) + chunkRoom)
	m.Body = mpack.AppendEvent(m.Body, eventType, payload, s.now(link.Now()).Wall, source)
	var typ [64]byte
	s.bus.Publish(append(typ[:0], eventType...), m)
}

package ipc

import (
	"strconv"

	"trunkline/codec/mpack"
	"trunkline/engine/bus"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
)

// The bus's own event types, which clients cannot publish (kernel-ipc §4.15).
const (
	gapEvent        = "commbus.gap"
	subscribedEvent = "commbus.subscribed"
	busSource       = "commbus"
	kernelSource    = "kernel"
)

// lifecycle passes the kernel's events to the bus (kernel-ipc §4.22).
type lifecycle struct{ bus *bus.Bus }

// Wanted implements kernel.Events.
func (l lifecycle) Wanted(kind kernel.EventKind) bool { return l.bus.Wants(kind.String()) }

// Emit implements kernel.Events.
func (l lifecycle) Emit(kind kernel.EventKind, payload []byte, now link.Instant) {
	m := l.bus.NewMessage(len(payload) + chunkRoom)
	m.Body = mpack.AppendEvent(m.Body, kind.String(), payload, now.Wall, kernelSource)
	var typ [32]byte
	l.bus.Publish(append(typ[:0], kind.String()...), m)
}

// appendGap is the body of the chunk that stands where events are missing (kernel-ipc §4.18).
func (s *Service) appendGap(dst []byte, dropped uint64) []byte {
	var buf [40]byte
	payload := strconv.AppendUint(append(buf[:0], `{"dropped":`...), dropped, 10)
	return mpack.AppendEvent(dst, gapEvent, append(payload, '}'), s.now(link.Now()).Wall, busSource)
}

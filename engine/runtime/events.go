package runtime

import (
	"strconv"

	"trunkline/codec/mpack"
	"trunkline/engine/bus"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/connection"
	"trunkline/engine/kernel"
)

// The bus's own event types, which clients cannot publish, and the sources of events of the
// process (kernel-ipc §4.15).
const (
	GapEvent        = "commbus.gap"
	SubscribedEvent = "commbus.subscribed"
	BusSource       = "commbus"
	kernelSource    = "kernel"
)

// EventBytes is the size of the body of an event without its strings, in bytes.
const EventBytes = 80

// busConfig completes the limits of the bus.
func (r *Runtime) busConfig() bus.Config {
	c := r.Config.BusConfig
	c.MaxBody, c.QueryCapacity = r.Config.MaxFrameBytes, 1+r.Config.KernelQueueCapacity
	if owns := r.Config.owns(placement.Query); owns != nil {
		c.OwnsQuery = func(id string) bool { return owns([]byte(id)) }
	}
	c.GapBody = r.appendGap
	c.EventBody = func(dst []byte, eventType, source string, payload []byte) []byte {
		return mpack.AppendEvent(dst, eventType, payload, r.Now(connection.Now()).Wall, source)
	}
	return c
}

// lifecycle passes the kernel's events to the bus (kernel-ipc §4.22).
type lifecycle struct{ bus *bus.Bus }

// Wanted implements kernel.Events.
func (l lifecycle) Wanted(kind kernel.EventKind) bool { return l.bus.Wants(kind.String()) }

// Emit implements kernel.Events.
func (l lifecycle) Emit(kind kernel.EventKind, payload []byte, now connection.Instant) {
	m := l.bus.NewMessage(len(payload) + EventBytes)
	m.Body = mpack.AppendEvent(m.Body, kind.String(), payload, now.Wall, kernelSource)
	var typ [32]byte
	l.bus.Publish(append(typ[:0], kind.String()...), m)
}

// appendGap is the body of the chunk that stands where events are missing (kernel-ipc §4.18).
func (r *Runtime) appendGap(dst []byte, dropped uint64) []byte {
	var buf [40]byte
	payload := strconv.AppendUint(append(buf[:0], `{"dropped":`...), dropped, 10)
	return mpack.AppendEvent(dst, GapEvent, append(payload, '}'), r.Now(connection.Now()).Wall, BusSource)
}

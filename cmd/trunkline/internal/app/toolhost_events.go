package app

import (
	"trunkline/engine/bus"
	"trunkline/handlers/toolhost"
)

// toolSource is the source of the events of tools on the message bus.
const toolSource = "toolhost"

// toolEvents carries what happens to tools to a bus (toolhost §4.12). Without one there are no
// events. The bus bounds what waits for a subscriber, and drops for those who are behind
// (kernel-ipc §4.18): nothing waits here.
type toolEvents struct{ bus *bus.Bus }

// emitter returns nil where there is no bus. Breakers and workers call what it returns under locks
// of theirs.
func (e toolEvents) emitter() func(toolhost.Event) {
	if e.bus == nil {
		return nil
	}
	return func(ev toolhost.Event) {
		if e.bus.Wants(ev.Name) {
			e.bus.Emit(ev.Name, toolSource, ev.Payload)
		}
	}
}

// apply has a server emit its events. Events without a subscriber are not built.
func (e toolEvents) apply(c *toolhost.Config) {
	if e.bus != nil {
		c.Events, c.EventsWanted = e.emitter(), e.bus.Wants
	}
}

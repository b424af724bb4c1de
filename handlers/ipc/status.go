package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// getProcessCounts is kernel-ipc §4.11.
func getProcessCounts(t *turn) wire.Code {
	c := t.svc.kernel.Counts(t.now)
	t.out = mpack.AppendProcessCounts(t.out, stateNames, c.ByState[:], c.Total, c.QueueDepth)
	return wire.OK
}

// getSystemStatus is kernel-ipc §4.14.
func getSystemStatus(t *turn) wire.Code {
	c, b := t.svc.kernel.Counts(t.now), t.svc.bus.Stats()
	t.out = mpack.AppendStatus(t.out, stateNames, c.ByState[:], c.Total, &mpack.Status{
		ActiveSessions: t.svc.orch.Active(), EventsPublished: b.EventsPublished, CommandsSent: b.CommandsSent,
		QueriesExecuted: b.QueriesExecuted, ActiveSubscribers: b.ActiveSubscribers,
	})
	return wire.OK
}

package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/link"
)

// getProcessCounts is kernel-ipc §4.11.
func getProcessCounts(t *turn) wire.Code {
	c := t.svc.kernel.Counts(t.now)
	t.out = mpack.AppendProcessCounts(t.out, stateNames, c.ByState[:], c.Total, c.QueueDepth)
	return wire.OK
}

// getSystemStatus is kernel-ipc §4.14.
func getSystemStatus(t *turn) wire.Code {
	digest, ok := t.flag(&t.fields[0], "digest", false)
	switch {
	case !ok:
		return wire.InvalidArgument
	case digest:
		return t.statusWithDigest()
	}
	t.out = t.svc.appendStatus(t.out, t.now)
	return wire.OK
}

// appendStatus appends the counters as a map of four members. It does not allocate.
func (s *Service) appendStatus(dst []byte, now link.Instant) []byte {
	c, b := s.kernel.Counts(now), s.bus.Stats()
	return mpack.AppendStatus(dst, stateNames, c.ByState[:], c.Total, &mpack.Status{
		ActiveSessions: s.orch.Active(), EventsPublished: b.EventsPublished, CommandsSent: b.CommandsSent,
		QueriesExecuted: b.QueriesExecuted, ActiveSubscribers: b.ActiveSubscribers,
	})
}

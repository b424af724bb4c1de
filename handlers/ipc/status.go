package ipc

import (
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/handlers/ipc/message"
)

// getProcessCounts is kernel-ipc §4.11.
func getProcessCounts(t *turn) wire.Code {
	c := t.svc.kernel.Counts(t.now)
	reply := message.Counts{CountsByState: byState(&c), Total: c.Total, QueueDepth: c.QueueDepth}
	t.out, _ = reply.MarshalMsg(t.out)
	return wire.OK
}

func byState(c *kernel.Counts) message.StateCounts {
	n := &c.ByState
	return message.StateCounts{
		New: n[kernel.StateNew], Ready: n[kernel.Ready], Running: n[kernel.Running], Waiting: n[kernel.Waiting],
		Blocked: n[kernel.Blocked], Terminated: n[kernel.Terminated], Zombie: n[kernel.Zombie],
	}
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
	reply := t.svc.status(t.now)
	t.out, _ = reply.MarshalMsg(t.out)
	return wire.OK
}

// counts reads the counters of the kernel and of the bus. The kernel counts the events that have no
// subscriber, which are nearly all, in place of the bus: it has a lock already.
func (s *Service) counts(now link.Instant) (kernel.Counts, bus.Stats) {
	c, b := s.kernel.Counts(now), s.bus.Stats()
	b.EventsPublished += c.Unheard
	return c, b
}

// status returns the counters. It does not allocate.
func (s *Service) status(now link.Instant) message.Status {
	c, b := s.counts(now)
	return message.Status{
		Processes:     message.ProcessStatus{Total: c.Total, ByState: byState(&c)},
		Orchestration: message.OrchestrationStatus{ActiveSessions: s.orch.Active()},
		Commbus: message.BusStatus{EventsPublished: b.EventsPublished, CommandsSent: b.CommandsSent,
			QueriesExecuted: b.QueriesExecuted, ActiveSubscribers: b.ActiveSubscribers},
	}
}

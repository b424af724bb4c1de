package ipc

import (
	"bytes"
	"fmt"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/connection"
	"trunkline/engine/kernel"
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
func (s *Service) counts(now connection.Instant) (kernel.Counts, bus.Stats) {
	c, b := s.kernel.Counts(now), s.bus.Stats()
	b.EventsPublished += c.Unheard
	return c, b
}

// status returns the counters. It does not allocate.
func (s *Service) status(now connection.Instant) message.Status {
	c, b := s.counts(now)
	return message.Status{
		Processes:     message.ProcessStatus{Total: c.Total, ByState: byState(&c)},
		Orchestration: message.OrchestrationStatus{ActiveSessions: s.orch.Active()},
		Commbus: message.BusStatus{EventsPublished: b.EventsPublished, CommandsSent: b.CommandsSent,
			QueriesExecuted: b.QueriesExecuted, ActiveSubscribers: b.ActiveSubscribers},
	}
}

// statusWithDigest answers GetSystemStatus beside the loop, for envelopes may be large. It counts
// among the listings.
func (t *turn) statusWithDigest() wire.Code {
	svc, s, id := t.svc, t.s, bytes.Clone(t.id)
	return t.beside(id, func() []byte {
		sums := svc.rt.Digests(s.gone.Load)
		reply := svc.status(svc.now(connection.Now()))
		reply.Digest = &message.Digest{Kernel: hexSums(sums.Kernel), Orchestration: hexSums(sums.Orchestration),
			Index: int64(sums.Index), Through: int64(sums.Through)}
		out, _ := reply.MarshalMsg(mpack.AppendResponseHead(frame.Begin(nil, frame.Response), id))
		return sealFrame(out, 0, id, svc.maxFrame)
	})
}

// hexSums returns strings of 16 digits: not every client has integers of 64 bits.
func hexSums(sums []uint64) []string {
	list := make([]string, len(sums))
	for i, n := range sums {
		list[i] = fmt.Sprintf("%016x", n)
	}
	return list
}

const (
	// maxPingPayload bounds the value that Ping returns, in bytes of its smallest encoding: room
	// for a clock reading or an identifier.
	maxPingPayload = 1024
	// widest is the size of the largest encoding of a value that fits one byte.
	widest = 9
	// maxInFlight is how many unanswered requests of a connection a server has to read (kernel-ipc
	// §2.5).
	maxInFlight = 64
	// protocol is the version of the protocol.
	protocol = 1
)

func newPong(s *Service) message.Pong {
	return message.Pong{
		Server: "trunkline", Version: s.cfg.Version, Protocol: protocol, Extensions: extensions,
		Limits: message.PingLimits{
			MaxFrameBytes: int64(
				s.maxFrame,
			), MaxInFlight: maxInFlight, ReadTimeoutSecs: int64(s.cfg.ReadTimeout / time.Second),
		},
	}
}

// ping is kernel.Ping (kernel-ipc §11). It returns the payload in the profile of server messages.
func ping(t *turn) wire.Code {
	var payload []byte
	members := mpack.OpenMap(t.req.Body)
	for _, key, raw, ok := members.Next(); ok; _, key, raw, ok = members.Next() {
		if string(key) == "payload" {
			payload = raw
		}
	}
	if len(payload) <= widest*maxPingPayload {
		t.msg = mpack.AppendValue(t.msg[:0], payload)
	}
	if len(payload) > widest*maxPingPayload || len(t.msg) > maxPingPayload {
		t.bad("payload", " exceeds 1024 bytes")
		return wire.InvalidArgument
	}
	pong := t.svc.pong
	pong.Pong = t.msg
	t.out, _ = pong.MarshalMsg(t.out)
	return wire.OK
}

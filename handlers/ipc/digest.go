package ipc

import (
	"bytes"
	"fmt"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/journal"
	"trunkline/engine/link"
	"trunkline/engine/orchestration"
	"trunkline/handlers/ipc/message"
)

// Digests condense the state of a service, so that it can be compared: with that after a restart,
// or with a copy.
type Digests struct {
	// Kernel is kernel.ShardDigests, Orchestration that of the other engine.
	Kernel, Orchestration []uint64
	// Index is how far the journal had been appended to when the walk began, Through when it had
	// ended; 0 without a journal. If they are the same, nothing changed in between.
	Index, Through journal.Index
}

// Digests walks over everything while requests go on. stop, which may be nil, ends it early, with
// empty lists.
func (s *Service) Digests(stop func() bool) (d Digests) {
	d.Index = s.store.Appended()
	d.Kernel = s.kernel.ShardDigests(stop)
	if d.Kernel != nil {
		defer s.store.Leave(s.store.Enter()) // a session whose process has ended ends when it is looked at
		call := orchestration.Call{Now: s.now(link.Now())}
		d.Orchestration = s.orch.ShardDigests(&call, stop)
	}
	d.Through = s.store.Appended()
	return d
}

// statusWithDigest answers GetSystemStatus beside the loop, for envelopes may be large. It counts
// among the listings.
func (t *turn) statusWithDigest() wire.Code {
	svc, s, id := t.svc, t.s, bytes.Clone(t.id)
	return t.beside(id, func() []byte {
		sums := svc.Digests(s.gone.Load)
		reply := svc.status(svc.now(link.Now()))
		reply.Digest = &message.Digest{Kernel: hexSums(sums.Kernel), Orchestration: hexSums(sums.Orchestration),
			Index: int64(sums.Index), Through: int64(sums.Through)}
		out, _ := reply.MarshalMsg(mpack.AppendResponseHead(frame.Begin(nil, frame.Response), id))
		return sealFrame(out, 0, id, svc.cfg.MaxFrameBytes)
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

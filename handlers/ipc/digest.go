package ipc

import (
	"bytes"
	"fmt"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/link"
	"trunkline/handlers/ipc/message"
)

// statusWithDigest answers GetSystemStatus beside the loop, for envelopes may be large. It counts
// among the listings.
func (t *turn) statusWithDigest() wire.Code {
	svc, s, id := t.svc, t.s, bytes.Clone(t.id)
	return t.beside(id, func() []byte {
		sums := svc.rt.Digests(s.gone.Load)
		reply := svc.status(svc.now(link.Now()))
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

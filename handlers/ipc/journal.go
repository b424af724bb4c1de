package ipc

import (
	"sync"
	"sync/atomic"

	"trunkline/engine/idem"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/engine/orchestration"
)

// Whose change a record holds: its first byte.
const (
	kernelRecord        byte = 'k'
	orchestrationRecord byte = 'o'
	keyRecord           byte = 'i'
)

// writer puts changes into the journal and has replies wait until what they tell cannot be lost any more.
type writer struct {
	log     *journal.Log // nil: nothing is written, nothing waits
	full    func() bool  // nil: never
	broken  func() bool  // nil: never
	buffers sync.Pool    // of *[]byte, for encoding under the locks that decided

	orchestrated atomic.Uint64 // index of the last record of orchestration

	mark link.Watermark // up to where the log is durable; sessions wait for it
}

// append writes one record. Caller holds the lock that decided it.
func (w *writer) append(tag byte, encode func(dst []byte) []byte) journal.Index {
	if w.log == nil {
		return 0 // the journal is being replayed
	}
	buf, _ := w.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = encode(append((*buf)[:0], tag))
	index := w.log.Enqueue(*buf)
	if cap(*buf) <= keepText {
		w.buffers.Put(buf)
	}
	return index
}

// begin has the changes of a request go into one block, until end: a crash keeps all of them or none.
func (w *writer) begin() {
	if w.log != nil {
		w.log.Begin()
	}
}

func (w *writer) end() {
	if w.log != nil {
		w.log.End()
	}
}

func (w *writer) kernelChange(c *kernel.Change) journal.Index {
	return w.append(kernelRecord, func(dst []byte) []byte { return kernel.AppendChange(dst, c) })
}

func (w *writer) orchestrationChange(c *orchestration.Change) journal.Index {
	index := w.append(orchestrationRecord, func(dst []byte) []byte { return orchestration.AppendChange(dst, c) })
	for last := w.orchestrated.Load(); last < index && !w.orchestrated.CompareAndSwap(last, index); {
		last = w.orchestrated.Load()
	}
	return index
}

func (w *writer) keyChange(c *idem.Change) journal.Index {
	return w.append(keyRecord, func(dst []byte) []byte { return idem.AppendChange(dst, c) })
}

// RoundEnded implements link.RoundHook: the changes of one round of a loop share a group.
func (w *writer) RoundEnded() { w.log.Flush() }

// Durable tells that everything the journal holds up to an index is safe: it is the journal's OnDurable.
func (s *Service) Durable(upTo journal.Index) { s.writer.mark.Reach(upTo) }

// Digest returns a number that two services share that hold the same processes, envelopes and sessions.
func (s *Service) Digest() uint64 {
	call := orchestration.Call{Now: s.now(link.Now())}
	sum := s.kernel.Digest() + s.orch.Digest(&call)
	if s.keys != nil {
		sum += s.keys.Digest()
	}
	return sum
}

package ipc

import (
	"sync/atomic"

	"trunkline/engine/bus"
	"trunkline/engine/idem"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/engine/orchestration"
	"trunkline/engine/store"
)

// progress is how far the journal is: replies wait until what they show cannot be lost any more.
type progress struct {
	orchestrated atomic.Uint64 // index of the last record of orchestration
	gate         link.Gate     // where sessions wait
}

func (s *Service) kernelChange(c *kernel.Change) journal.Index {
	return s.store.Append(kernel.Tag, func(dst []byte) []byte { return kernel.AppendChange(dst, c) })
}

func (s *Service) orchestrationChange(c *orchestration.Change) journal.Index {
	index := s.store.Append(orchestration.Tag, func(dst []byte) []byte { return orchestration.AppendChange(dst, c) })
	w := &s.progress
	for last := w.orchestrated.Load(); last < index && !w.orchestrated.CompareAndSwap(last, index); {
		last = w.orchestrated.Load()
	}
	return index
}

// keyChange returns the journal of an idempotency table.
func (s *Service) keyChange(tag byte) func(*idem.Change) journal.Index {
	return func(c *idem.Change) journal.Index {
		return s.store.Append(tag, func(dst []byte) []byte { return idem.AppendChange(dst, c) })
	}
}

// Durable lets the replies leave that wait for an index up to upTo: it is the journal's OnDurable.
func (s *Service) Durable(upTo journal.Index) { s.progress.gate.Mark.Reach(upTo) }

// Gate returns where the sessions of all protocols of the process wait for the journal.
func (s *Service) Gate() *link.Gate { return &s.progress.gate }

// Bus returns the bus, on which other protocols in the same process emit events.
func (s *Service) Bus() *bus.Bus { return s.bus }

// Store returns the store that the service's state is in, for its owner and for other protocols in
// the same process: there is one journal for all.
func (s *Service) Store() *store.Store { return s.store }

// Keys returns the idempotency table whose changes are in the service's store, for another protocol
// in the same process. nil unless Config.Journaled.
func (s *Service) Keys() *idem.Table { return s.keys }

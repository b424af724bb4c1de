package ipc

import (
	"context"

	"trunkline/engine/idem"
	"trunkline/engine/journal"
)

// Keys returns the idempotency table whose changes stand in the service's journal, for another protocol in the same process: there
// is one journal for all (durability §6.1). nil unless Config.Journaled.
func (s *Service) Keys() *idem.Table { return s.keys }

// Safe returns the index up to which what the journal holds cannot be lost any more.
func (s *Service) Safe() journal.Index {
	if log := s.writer.log; log != nil {
		return log.Durable()
	}
	return ^journal.Index(0)
}

// Saturated reports whether nothing that changes anything may be begun: too much waits for the disk, or it is full.
func (s *Service) Saturated() bool {
	w := &s.writer
	return w.log != nil && (w.log.Overloaded() || w.full != nil && w.full())
}

// Barrier returns when everything that was journaled before the call is safe, or with the error of ctx, or because the journal has
// stopped. It must not be called on an event loop.
func (s *Service) Barrier(ctx context.Context) error {
	if log := s.writer.log; log != nil {
		return log.Barrier(ctx)
	}
	return nil
}

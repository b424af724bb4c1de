package app

import (
	"errors"
	"log/slog"

	"trunkline/engine/cluster/control"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/journal/replicated"
)

var (
	_ diskStore         = (*control.Store)(nil)
	_ journal.Shared    = watchedShared{}
	_ journal.Pipelined = watchedShared{}
)

// sharedOpener returns what opens the journal of a lease.
func sharedOpener(l *control.Lease) func(embedded.Config) (diskStore, error) {
	return func(ec embedded.Config) (diskStore, error) {
		s, err := l.OpenStore(ec)
		if err != nil {
			return nil, interrupted(err)
		}
		return s, nil
	}
}

// interrupted returns errInterrupted for the end of a lease.
func interrupted(err error) error {
	if errors.Is(err, control.ErrInterrupted) {
		return errInterrupted
	}
	return err
}

// watchedShared is what a journal.Log opens of it: the methods of watched, and those that it hides.
type watchedShared struct {
	*watched
	journal.Pipelined // of shared
	shared            *control.Store
}

// Follow implements journal.Shared.
func (w watchedShared) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return interrupted(w.shared.Follow(from, func(first journal.Index, block []byte) error {
		if err := w.err(); err != nil {
			return err
		}
		w.read.Add(uint64(len(block)))
		return f(first, block)
	}))
}

// watchedArchive is the archive of a journal, whose reading is seen, counted and can be ended.
type watchedArchive struct {
	replicated.Archive
	watched *watched
	log     *slog.Logger
}

// Get reads chunks of a set, as a start does whose rows are behind a snapshot.
func (a watchedArchive) Get(set string, n uint32, f func(chunk []byte) error) error {
	a.log.Info("reading rows of agent threads from the archive", "set", set, "chunks", n)
	return a.Archive.Get(set, n, func(chunk []byte) error {
		if err := a.watched.err(); err != nil {
			return err
		}
		a.watched.read.Add(uint64(len(chunk)))
		return f(chunk)
	})
}

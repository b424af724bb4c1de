package app

import (
	"errors"
	"sync/atomic"

	"trunkline/engine/journal"
)

// errInterrupted ends a recovery that the caller does not wait for any more.
var errInterrupted = errors.New("recovery was interrupted")

// watched is a store whose reading is counted and can be ended. Once it is stopped nothing is
// written either, so that what a claim has to know of the log is known in whole or not used.
type watched struct {
	diskStore
	stopped *atomic.Bool
	read    atomic.Uint64 // bytes of blocks and chunks
}

func (w *watched) err() error {
	if w.stopped.Load() {
		return errInterrupted
	}
	return nil
}

// Blocks implements journal.Blocks.
func (w *watched) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return w.diskStore.Blocks(from, func(first journal.Index, block []byte) error {
		if err := w.err(); err != nil {
			return err
		}
		w.read.Add(uint64(len(block)))
		return f(first, block)
	})
}

// ReadSnapshot implements journal.Snapshots.
func (w *watched) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	return w.diskStore.ReadSnapshot(g, func(chunk []byte) error {
		if err := w.err(); err != nil {
			return err
		}
		w.read.Add(uint64(len(chunk)))
		return f(chunk)
	})
}

// WriteBlock implements journal.Blocks.
func (w *watched) WriteBlock(first journal.Index, block []byte) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.diskStore.WriteBlock(first, block)
}

// CutBlocks implements journal.Blocks.
func (w *watched) CutBlocks(from journal.Index) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.diskStore.CutBlocks(from)
}

// DropSnapshot implements journal.Snapshots.
func (w *watched) DropSnapshot(g uint64) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.diskStore.DropSnapshot(g)
}

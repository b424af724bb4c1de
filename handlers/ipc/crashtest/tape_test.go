package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"trunkline/engine/journal"
)

// block is one that a journal gave to its store.
type block struct {
	first journal.Index
	bytes []byte
}

// tape keeps all blocks that go into stores, over several lives, before they are there.
type tape struct {
	mu     sync.Mutex
	blocks []block
}

// over returns a store that records what is written to it.
func (t *tape) over(s journal.Store) journal.Store { return &recorded{Store: s, tape: t} }

type recorded struct {
	journal.Store
	tape *tape
}

// WriteBlock implements journal.Blocks. What was recorded at this index and after it was lost in a
// crash.
func (r *recorded) WriteBlock(first journal.Index, b []byte) error {
	kept := r.tape.upTo(first - 1)
	r.tape.mu.Lock()
	r.tape.blocks = append(kept, block{first, bytes.Clone(b)})
	r.tape.mu.Unlock()
	return r.Store.WriteBlock(first, b)
}

// upTo returns the recorded blocks whose first index is not above one.
func (t *tape) upTo(last journal.Index) []block {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := slices.BinarySearchFunc(t.blocks, last+1, func(b block, i journal.Index) int { return int(b.first) - int(i) })
	return t.blocks[:n:n]
}

// holds compares what a store has with what was recorded: a contiguous part, and nothing else. It
// returns the first index of the last block.
func (t *tape) holds(s journal.Store) (last journal.Index, err error) {
	all := t.upTo(1 << 62)
	at := -1
	err = s.Blocks(0, func(first journal.Index, b []byte) error {
		if at < 0 {
			at = slices.IndexFunc(all, func(b block) bool { return b.first == first })
		} else {
			at++
		}
		if at < 0 || at >= len(all) || all[at].first != first {
			return fmt.Errorf("a block at %d, which is none of those written, or leaves out one", first)
		}
		if !bytes.Equal(all[at].bytes, b) {
			return fmt.Errorf("the block at %d is not the one that was written", first)
		}
		last = first
		return nil
	})
	return last, err
}

// reel is a store of recorded blocks. What is written to it is acknowledged and forgotten.
type reel struct{ blocks []block }

// WriteBlock implements journal.Blocks.
func (*reel) WriteBlock(journal.Index, []byte) error { return nil }

// Blocks implements journal.Blocks.
func (r *reel) Blocks(from journal.Index, f func(journal.Index, []byte) error) error {
	at := 0
	for at+1 < len(r.blocks) && r.blocks[at+1].first <= from {
		at++
	}
	for _, b := range r.blocks[at:] {
		if err := f(b.first, b.bytes); err != nil {
			return err
		}
	}
	return nil
}

// DropBlocks implements journal.Blocks.
func (*reel) DropBlocks(journal.Index) error { return nil }

// CutBlocks implements journal.Blocks.
func (*reel) CutBlocks(journal.Index) error { return nil }

// BeginSnapshot implements journal.Snapshots.
func (*reel) BeginSnapshot(uint64) (journal.SnapshotWriter, error) {
	return nil, errors.New("a reel takes no snapshots")
}

// ListSnapshots implements journal.Snapshots.
func (*reel) ListSnapshots() ([]journal.Snapshot, error) { return nil, nil }

// ReadSnapshot implements journal.Snapshots.
func (*reel) ReadSnapshot(uint64, func([]byte) error) error {
	return errors.New("a reel has no snapshots")
}

// DropSnapshot implements journal.Snapshots.
func (*reel) DropSnapshot(uint64) error { return nil }

// Sync implements journal.Store.
func (*reel) Sync() error { return nil }

// Close implements journal.Store.
func (*reel) Close() error { return nil }

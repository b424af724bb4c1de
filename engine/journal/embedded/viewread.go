package embedded

import (
	"fmt"

	"trunkline/engine/journal"
)

// Blocks implements journal.Blocks.
func (v *View) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return v.s.Blocks(from, f)
}

// ListSnapshots implements journal.Snapshots.
func (v *View) ListSnapshots() ([]journal.Snapshot, error) { return v.s.ListSnapshots() }

// ReadSnapshot implements journal.Snapshots.
func (v *View) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	return v.s.ReadSnapshot(g, f)
}

func (v *View) refuse() error {
	return fmt.Errorf("cannot change journal %s: %w", v.dir, errReadOnly)
}

// WriteBlock implements journal.Blocks; it refuses.
func (v *View) WriteBlock(journal.Index, []byte) error { return v.refuse() }

// DropBlocks implements journal.Blocks; it refuses.
func (v *View) DropBlocks(journal.Index) error { return v.refuse() }

// CutBlocks implements journal.Blocks; it refuses.
func (v *View) CutBlocks(journal.Index) error { return v.refuse() }

// BeginSnapshot implements journal.Snapshots; it refuses.
func (v *View) BeginSnapshot(uint64) (journal.SnapshotWriter, error) { return nil, v.refuse() }

// DropSnapshot implements journal.Snapshots; it refuses.
func (v *View) DropSnapshot(uint64) error { return v.refuse() }

// Sync implements journal.Store; it refuses.
func (v *View) Sync() error { return v.refuse() }

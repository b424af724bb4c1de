package embedded

import (
	"fmt"

	"trunkline/engine/journal"
)

// Blocks implements journal.Blocks.
func (v *View) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	return v.s.Blocks(from, f)
}

// ListGenerations implements journal.Generations.
func (v *View) ListGenerations() ([]journal.Generation, error) { return v.s.ListGenerations() }

// ReadGeneration implements journal.Generations.
func (v *View) ReadGeneration(g uint64, f func(chunk []byte) error) error {
	return v.s.ReadGeneration(g, f)
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

// BeginGeneration implements journal.Generations; it refuses.
func (v *View) BeginGeneration(uint64) (journal.GenerationWriter, error) { return nil, v.refuse() }

// DropGeneration implements journal.Generations; it refuses.
func (v *View) DropGeneration(uint64) error { return v.refuse() }

// Sync implements journal.Store; it refuses.
func (v *View) Sync() error { return v.refuse() }

package memstore

import (
	"fmt"
	"maps"
	"slices"

	"trunkline/engine/journal"
)

// writer writes one snapshot.
type writer struct {
	store  *Store
	number uint64
	gen    *snapshot
}

// BeginSnapshot implements journal.Snapshots.
func (s *Store) BeginSnapshot(g uint64) (journal.SnapshotWriter, error) {
	d, err := s.write(false)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if old := d.gens[g]; old != nil && old.committed {
		return nil, fmt.Errorf("cannot begin generation %d: it is complete", g)
	}
	d.gens[g] = &snapshot{}
	return &writer{store: s, number: g, gen: d.gens[g]}, nil
}

// Write implements journal.SnapshotWriter.
func (w *writer) Write(chunk []byte) error {
	if len(chunk) == 0 || len(chunk) > journal.MaxChunkBytes {
		return fmt.Errorf("cannot write chunk of %d bytes", len(chunk))
	}
	d, err := w.store.write(false)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	w.gen.chunks = append(w.gen.chunks, slices.Clone(chunk))
	return nil
}

// Commit implements journal.SnapshotWriter.
func (w *writer) Commit(meta []byte) error {
	d, err := w.store.write(true)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if d.gens[w.number] != w.gen || w.gen.committed {
		return fmt.Errorf("cannot commit generation %d: it was dropped or is complete", w.number)
	}
	w.gen.meta, w.gen.committed = slices.Clone(meta), true
	d.sync()
	return nil
}

// Abort implements journal.SnapshotWriter.
func (w *writer) Abort() error {
	d, err := w.store.enter()
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if d.gens[w.number] == w.gen && !w.gen.committed {
		delete(d.gens, w.number)
	}
	return nil
}

// ListSnapshots implements journal.Snapshots.
func (s *Store) ListSnapshots() ([]journal.Snapshot, error) {
	d, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	var out []journal.Snapshot
	for _, g := range slices.Sorted(maps.Keys(d.gens)) {
		if gen := d.gens[g]; gen.committed {
			out = append(out, journal.Snapshot{Number: g, Meta: slices.Clone(gen.meta)})
		}
	}
	return out, nil
}

// ReadSnapshot implements journal.Snapshots. f is called without a lock.
func (s *Store) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	d, err := s.enter()
	if err != nil {
		return err
	}
	gen := d.gens[g]
	d.mu.Unlock()
	if gen == nil || !gen.committed {
		return fmt.Errorf("cannot read generation %d: there is none", g)
	}
	for _, chunk := range gen.chunks {
		if err := lend(chunk, f); err != nil {
			return err
		}
	}
	return nil
}

// DropSnapshot implements journal.Snapshots. It is not durable before the next sync.
func (s *Store) DropSnapshot(g uint64) error {
	d, err := s.write(false)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if gen := d.gens[g]; gen != nil && gen.committed {
		d.lost[g] = gen
	}
	delete(d.gens, g)
	return nil
}

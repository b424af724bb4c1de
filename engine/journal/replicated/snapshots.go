package replicated

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc64"
	"slices"
	"strings"

	"trunkline/engine/journal"
)

// writer writes a snapshot to the shared set, and a copy of it to the local store.
type writer struct {
	s      *Store
	e      entry
	local  journal.SnapshotWriter // nil once it has failed
	failed error
	ended  bool
}

// BeginSnapshot implements journal.Snapshots.
func (s *Store) BeginSnapshot(g uint64) (journal.SnapshotWriter, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	if _, ok := s.snapshot(g); ok {
		return nil, fmt.Errorf("cannot begin snapshot generation %d: it is complete", g)
	}
	s.sweep()
	w := &writer{s: s, e: entry{number: g, set: fmt.Sprintf("%d-%s", g, rand.Text())}}
	w.local = s.beginLocal(g)
	return w, nil
}

// sweep drops the sets that no snapshot uses, of an owner that did not come to its end.
func (s *Store) sweep() {
	s.dropSets(func(set string) bool {
		s.seen.Lock()
		defer s.seen.Unlock()
		return !strings.HasPrefix(set, archivePrefix) && !slices.ContainsFunc(s.seen.snaps, func(e entry) bool { return e.set == set })
	})
}

// dropSets drops the sets that are not used. A barrier behind the look at the sets proves that they
// are of this owner or of one before it, who cannot commit them any more: the sets of an owner
// after this one must stay.
func (s *Store) dropSets(unused func(set string) bool) {
	if s.fence.Load() == 0 {
		return
	}
	sets, err := s.cfg.Chunks.Sets(s.ctx)
	sets = slices.DeleteFunc(sets, func(set string) bool { return !unused(set) })
	if err == nil && len(sets) > 0 {
		err = s.Barrier(s.ctx)
	}
	if err != nil {
		s.log.Warn("journal keeps chunks that nothing uses", "err", err)
		return
	}
	for _, set := range sets {
		s.drop(set)
	}
}

// beginLocal begins a local copy, nil where that fails: a node without it reads the shared set.
func (s *Store) beginLocal(g uint64) journal.SnapshotWriter {
	err := s.cfg.Local.DropSnapshot(g)
	var w journal.SnapshotWriter
	if err == nil {
		w, err = s.cfg.Local.BeginSnapshot(g)
	}
	if err != nil {
		s.log.Warn("journal keeps no local copy of a snapshot", "generation", g, "err", err)
		return nil
	}
	return w
}

// Write implements journal.SnapshotWriter.
func (w *writer) Write(chunk []byte) error {
	if w.failed != nil {
		return w.failed
	}
	if len(chunk) == 0 || len(chunk) > journal.MaxChunkBytes {
		return fmt.Errorf("cannot write chunk of %d bytes", len(chunk))
	}
	if err := w.s.err(); err != nil {
		return err
	}
	if w.failed = w.s.cfg.Chunks.Put(w.s.ctx, w.e.set, w.e.chunks, chunk); w.failed != nil {
		return w.failed
	}
	w.e.sum = sumOf(w.e.sum, chunk)
	w.e.chunks++
	w.copy(func(l journal.SnapshotWriter) error { return l.Write(chunk) })
	return nil
}

// copy does something to the local copy, and gives it up where that fails.
func (w *writer) copy(f func(l journal.SnapshotWriter) error) {
	if w.local == nil {
		return
	}
	if err := f(w.local); err != nil {
		w.s.log.Warn("journal keeps no local copy of a snapshot", "generation", w.e.number, "err", err)
		_ = w.local.Abort() // the store has reported what is wrong with it
		w.local = nil
	}
}

// Commit implements journal.SnapshotWriter. The set is read again first: the log before an older
// snapshot is purged on the word of this one.
func (w *writer) Commit(meta []byte) error {
	if len(meta) > journal.MaxMetaBytes {
		return fmt.Errorf("cannot commit snapshot generation %d: %d bytes of meta", w.e.number, len(meta))
	}
	if w.failed != nil || w.ended {
		return fmt.Errorf("%w: %w", journal.ErrNotCommitted, errors.Join(w.failed, errors.New("it is written or given up")))
	}
	w.e.meta = slices.Clone(meta)
	if err := w.s.verify(w.s.ctx, &w.e, func([]byte) error { return nil }); err != nil {
		return fmt.Errorf("%w: %w", journal.ErrNotCommitted, err)
	}
	err := w.s.change(0, false, func(r *roster, _ uint64) error {
		if len(r.snaps) == maxSnapshots || r.find(w.e.number) != nil {
			return fmt.Errorf("%w: there are %d snapshots, or it is one of them", journal.ErrNotCommitted, len(r.snaps))
		}
		r.snaps = append(r.snaps, w.e)
		r.last = max(r.last, w.e.number)
		slices.SortFunc(r.snaps, func(a, b entry) int { return order(a.number, b.number) })
		return nil
	})
	if err != nil {
		return err
	}
	w.ended = true
	w.copy(func(l journal.SnapshotWriter) error { return l.Commit(meta) })
	return nil
}

// Abort implements journal.SnapshotWriter. The set stays where it cannot be dropped: the next owner
// drops it.
func (w *writer) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	if w.local != nil {
		if err := w.local.Abort(); err != nil {
			w.s.log.Warn("journal keeps a part of a local copy", "generation", w.e.number, "err", err)
		}
	}
	if w.s.err() == nil {
		w.s.drop(w.e.set)
	}
	return nil
}

func (s *Store) drop(set string) {
	if err := s.cfg.Chunks.Drop(s.ctx, set); err != nil {
		s.log.Warn("journal keeps chunks that no snapshot uses", "set", set, "err", err)
	}
}

// sumOf goes on with the hash of a snapshot.
func sumOf(sum uint64, chunk []byte) uint64 {
	return crc64.Update(sum, crc64.MakeTable(crc64.ECMA), chunk)
}

// verify calls f with the chunks of a shared set, and compares them with what was written.
func (s *Store) verify(ctx context.Context, e *entry, f func(chunk []byte) error) error {
	sum, n := uint64(0), uint32(0)
	var failed error
	err := s.cfg.Chunks.Get(ctx, e.set, e.chunks, func(chunk []byte) error {
		sum = sumOf(sum, chunk)
		n++
		failed = f(chunk)
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("cannot read snapshot generation %d: %w", e.number, err)
	case sum != e.sum || n != e.chunks:
		return &journal.DamageError{Where: fmt.Sprintf("snapshot generation %d in the stream", e.number), Err: errors.New("its chunks are not what was written")}
	}
	return nil
}

// ListSnapshots implements journal.Snapshots.
func (s *Store) ListSnapshots() ([]journal.Snapshot, error) {
	if s.closed.Load() {
		return nil, journal.ErrClosed
	}
	s.seen.Lock()
	defer s.seen.Unlock()
	out := make([]journal.Snapshot, 0, len(s.seen.snaps))
	for _, e := range s.seen.snaps {
		out = append(out, journal.Snapshot{Number: e.number, Meta: slices.Clone(e.meta)})
	}
	return out, nil
}

// ReadSnapshot implements journal.Snapshots. It reads the local copy where there is one.
func (s *Store) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	if s.closed.Load() {
		return journal.ErrClosed
	}
	e, ok := s.snapshot(g)
	if !ok {
		return fmt.Errorf("cannot read snapshot generation %d: there is none", g)
	}
	if local, err := s.copied(&e); err != nil {
		return err
	} else if local && s.intact(&e) {
		return s.cfg.Local.ReadSnapshot(g, f)
	}
	return s.verify(s.ctx, &e, f)
}

// intact reports whether a local copy is what was written. It is read before it is used: the caller
// cannot take back what it has seen.
func (s *Store) intact(e *entry) bool {
	sum, n := uint64(0), uint32(0)
	err := s.cfg.Local.ReadSnapshot(e.number, func(chunk []byte) error {
		sum = sumOf(sum, chunk)
		n++
		return nil
	})
	switch {
	case err == nil && sum == e.sum && n == e.chunks:
		return true
	case err != nil && !errors.As(err, new(*journal.DamageError)):
		return false // it cannot be read now
	case err == nil:
		err = errors.New("its chunks are not what was written")
	}
	s.giveUpCopy(e.number, err)
	return false
}

// copied reports whether the local store has a whole copy of a snapshot.
func (s *Store) copied(e *entry) (bool, error) {
	list, err := s.cfg.Local.ListSnapshots()
	if err != nil {
		return false, fmt.Errorf("cannot list local snapshots: %w", err)
	}
	for _, l := range list {
		switch {
		case l.Number != e.number:
		case l.Err != nil:
			s.giveUpCopy(e.number, l.Err)
		case bytes.Equal(l.Meta, e.meta):
			return true, nil
		}
	}
	return false, nil
}

// giveUpCopy drops a local copy that is not what was written: the shared set is there.
func (s *Store) giveUpCopy(number uint64, why error) {
	s.log.Error("the copy of a snapshot on this node is damaged: the shared one is read", "generation", number, "err", why)
	if err := s.cfg.Local.DropSnapshot(number); err != nil {
		s.log.Warn("journal keeps a damaged copy of a snapshot", "generation", number, "err", err)
	}
}

// DropSnapshot implements journal.Snapshots.
func (s *Store) DropSnapshot(g uint64) error {
	if e, ok := s.snapshot(g); ok {
		err := s.change(0, false, func(r *roster, _ uint64) error {
			r.snaps = slices.DeleteFunc(r.snaps, func(e entry) bool { return e.number == g })
			return nil
		})
		if err != nil {
			return err
		}
		s.drop(e.set)
	}
	if err := s.cfg.Local.DropSnapshot(g); err != nil {
		s.log.Warn("journal keeps a local copy of a snapshot", "generation", g, "err", err)
	}
	return nil
}

// notBehind compares the copies of this node with the snapshots of the stream: a copy is made of
// one that counts, and numbers rise.
func (s *Store) notBehind() error {
	list, err := s.cfg.Local.ListSnapshots()
	if err != nil {
		return fmt.Errorf("cannot list local snapshots: %w", err)
	}
	s.seen.Lock()
	defer s.seen.Unlock()
	if n := len(list); n > 0 && list[n-1].Number > s.seen.last {
		return fmt.Errorf("cannot open journal: %w: it has a copy of snapshot generation %d, and the newest that the stream knows is %d", ErrBehind, list[n-1].Number, s.seen.last)
	}
	return nil
}

// CopySnapshot has the local store keep the newest snapshot, and drops the copies of those that do
// not count any more. It is for a standby, as often as it likes: a copy that is there costs
// nothing. One that was purged meanwhile is an error.
func (s *Store) CopySnapshot(ctx context.Context) error {
	s.seen.Lock()
	snaps := slices.Clone(s.seen.snaps)
	s.seen.Unlock()
	list, err := s.cfg.Local.ListSnapshots()
	if err != nil || len(snaps) == 0 {
		return err
	}
	for _, l := range list {
		if !slices.ContainsFunc(snaps, func(e entry) bool { return e.number == l.Number && bytes.Equal(e.meta, l.Meta) }) {
			if err := s.cfg.Local.DropSnapshot(l.Number); err != nil {
				return err
			}
		}
	}
	e := snaps[len(snaps)-1]
	if has, err := s.copied(&e); err != nil || has {
		return err
	}
	w, err := s.cfg.Local.BeginSnapshot(e.number)
	if err != nil {
		return err
	}
	if err := s.verify(ctx, &e, w.Write); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit(e.meta)
}

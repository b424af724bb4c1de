package embedded

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
)

// earlyMetas are the metas of snapshots of earlier versions: all in one place, so that damage of it
// hid all of them. The first change puts each one behind the chunks of its snapshot.
type earlyMetas struct {
	there bool // something is in that place
	metas map[uint64][]byte
	err   error // the damage because of which none can be read
}

// readEarlyMetas reads them. Where one cannot be read none is taken: the deletion of others may be
// in the damaged part.
func (s *Store) readEarlyMetas() (err error) {
	s.early = earlyMetas{}
	if s.early.there, err = s.holdsEarlyMetas(); err != nil || !s.early.there {
		return err
	}
	metas, err := s.earlyMetas()
	if damage := (*journal.DamageError)(nil); errors.As(err, &damage) {
		s.early.err = err
		return nil
	}
	s.early.metas = metas
	return err
}

// holdsEarlyMetas reports whether a file, or the log that is not sorted, has anything there.
func (s *Store) holdsEarlyMetas() (bool, error) {
	tables, err := s.tables()
	if err != nil {
		return false, err
	}
	for i := range tables {
		if s.ofKind(kindMeta, tables[i].Smallest.UserKey) {
			return true, nil
		}
	}
	metas, err := s.earlyMetas()
	return len(metas) > 0, err
}

func (s *Store) earlyMetas() (metas map[uint64][]byte, err error) {
	defer s.sober(new(bool), &err)
	lower, upper := keyRange(kindMeta, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	metas = map[uint64][]byte{}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		value, err = it.ValueAndErr()
		metas[keyNumber(it.Key())] = append([]byte(nil), value...)
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	return metas, nil
}

// toMend returns what the first change takes out of the database: damaged snapshots, and the metas
// of earlier versions. The directory is still open for reading only. A file that also holds other
// keys would be read for it: where that is damaged, so is the journal.
func (s *Store) toMend() (out []pebble.KeyRange, err error) {
	list, err := s.ListSnapshots()
	if err != nil {
		return nil, err
	}
	add := func(r pebble.KeyRange, damage error) {
		out = append(out, r)
		if damage != nil && err == nil && !s.apart(r) {
			err = damage
		}
	}
	for _, g := range list {
		if g.Err != nil {
			add(s.whole(g.Number), g.Err)
		}
	}
	if s.early.there {
		lower, upper := keyRange(kindMeta, s.cfg.Partition)
		add(pebble.KeyRange{Start: lower, End: upper}, s.early.err)
	}
	return out, err
}

// apart reports whether each sorted file with keys in a range has no other keys.
func (s *Store) apart(r pebble.KeyRange) bool {
	return !slices.ContainsFunc(s.seen, func(t pebble.SSTableInfo) bool {
		from, to := t.Smallest.UserKey, t.Largest.UserKey
		return bytes.Compare(from, r.End) < 0 && bytes.Compare(to, r.Start) >= 0 && (bytes.Compare(from, r.Start) < 0 || bytes.Compare(to, r.End) > 0)
	})
}

// mend takes ranges out of the database, in an opening of its own in which nothing is merged.
// Damage there is not read: each range covers the files that it meets. Files that are known to be
// exchanged are removed first: pebble reads each file for its statistics, and panics at keys
// outside its bounds.
func (s *Store) mend(out []pebble.KeyRange) (err error) {
	for _, path := range s.bad {
		if err := s.cfg.FS.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	o := s.options()
	o.DisableAutomaticCompactions, o.DisableConsistencyCheck = true, true
	failed := o.EventListener.BackgroundError
	o.EventListener.BackgroundError = func(err error) {
		if !pebble.IsCorruptionError(err) && !errors.Is(err, os.ErrNotExist) { // of what is taken out
			failed(err)
		}
	}
	if s.db, err = s.openDB(o); err != nil {
		return err
	}
	err = s.moveEarlyMetas()
	for i := 0; i < len(out) && err == nil; i++ {
		if err = s.db.Excise(context.Background(), out[i]); err == nil {
			err = s.err()
		}
	}
	err = errors.Join(err, s.closeDB(s.db))
	s.db, s.lost, s.bad, s.early = nil, nil, nil, earlyMetas{}
	return typed(err)
}

// moveEarlyMetas puts the metas of earlier versions behind the chunks of their snapshots, on the
// disk.
func (s *Store) moveEarlyMetas() error {
	if len(s.early.metas) == 0 {
		return nil
	}
	b := s.db.NewBatch()
	defer b.Close()
	for g, value := range s.early.metas {
		if err := b.Set(appendChunkKey(nil, s.cfg.Partition, g, metaSeq), value, nil); err != nil {
			return err
		}
	}
	if err := s.commit(b, pebble.Sync); err != nil {
		return err
	}
	return s.flush()
}

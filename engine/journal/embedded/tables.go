package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// checkTables compares each sorted file with what the manifest tells of it. Pebble compares sizes only: it panics in the background,
// when it merges, on a file whose keys are not between its bounds. That is a file that was exchanged with another one of its size.
// Damage in what a file holds is for whoever reads it.
func (s *Store) checkTables(fsys vfs.FS) (err error) {
	defer s.sober(new(bool), &err)
	levels, err := s.db.SSTables()
	if err != nil {
		return s.readError("the list of sorted files", 0, err)
	}
	o := s.options()
	o.EnsureDefaults()
	readers := o.MakeReaderOptions()
	for _, level := range levels {
		for i := range level {
			if err := s.checkTable(fsys, &level[i], readers); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) checkTable(fsys vfs.FS, t *pebble.SSTableInfo, o sstable.ReaderOptions) error {
	path := fsys.PathJoin(s.cfg.Dir, fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum)))
	smallest, largest, err := tableBounds(fsys, path, o)
	switch {
	case pebble.IsCorruptionError(err):
		return nil
	case err != nil:
		return s.readError(path, 0, err)
	case t.Virtual || isBound(smallest, t.Smallest) && (!t.Largest.IsExclusiveSentinel() || isBound(largest, t.Largest)):
		return nil
	}
	return &journal.DamageError{Where: path,
		Err: fmt.Errorf("it is another file: its keys are from %s to %s, and the manifest has %s to %s", smallest, largest, t.Smallest, t.Largest)}
}

// isBound compares a key of a file with a bound in the manifest. A file that was taken over as a whole has 0 for the sequence number.
func isBound(key, bound pebble.InternalKey) bool {
	return string(key.UserKey) == string(bound.UserKey) && key.Kind() == bound.Kind() && (key.SeqNum() == bound.SeqNum() || key.SeqNum() == 0)
}

// tableBounds returns the first key of a sorted file, and the last end of its range deletions, if it has any. It reads little: one
// block of values, and the range deletions.
func tableBounds(fsys vfs.FS, path string, o sstable.ReaderOptions) (smallest, largest pebble.InternalKey, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return smallest, largest, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return smallest, largest, errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, o)
	if err != nil {
		return smallest, largest, errors.Join(err, readable.Close())
	}
	smallest, err = firstPoint(r)
	if err == nil {
		smallest, largest, err = rangeBounds(r, o, smallest)
	}
	return smallest, largest, errors.Join(err, r.Close())
}

// firstPoint returns the first key that is no range deletion, one without a user key where there is none.
func firstPoint(r *sstable.Reader) (k pebble.InternalKey, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return k, err
	}
	if kv := it.First(); kv != nil {
		k = kv.K.Clone()
	}
	return k, errors.Join(it.Error(), it.Close())
}

// rangeBounds widens a first key to the range deletions of the file, and returns where they end.
func rangeBounds(r *sstable.Reader, o sstable.ReaderOptions, smallest pebble.InternalKey) (_, largest pebble.InternalKey, err error) {
	it, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return smallest, largest, err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		if first := span.SmallestKey(); smallest.UserKey == nil || pebble.DefaultComparer.Compare(first.UserKey, smallest.UserKey) < 0 {
			smallest = first.Clone()
		}
		largest = span.LargestKey().Clone()
	}
	return smallest, largest, err
}

package rows

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// checkTables compares the bounds of each sorted file with the manifest. Pebble compares sizes
// only: when it merges, it panics on a file whose keys are not between its bounds, one exchanged
// with another of its size. Damage inside a file is found by its readers.
func (d *DB) checkTables() (err error) {
	defer d.sober(new(bool), &err)
	o := d.options()
	o.EnsureDefaults()
	readers := o.MakeReaderOptions()
	version := d.db.DebugCurrentVersion()
	for i := range version.Levels {
		for t := range version.Levels[i].All() {
			path := d.cfg.FS.PathJoin(d.cfg.Dir, fmt.Sprintf("%06d.sst", uint64(t.TableBacking.DiskFileNum)))
			info := t.TableInfo()
			smallest, largest, err := d.bounds(path, readers)
			if pebble.IsCorruptionError(err) {
				continue // its readers find it, and others need not suffer
			}
			if err != nil {
				return d.readError("open", err)
			}
			if !t.Virtual && (!isBound(smallest, info.Smallest) || !isBound(largest, info.Largest)) {
				return &journal.DamageError{Where: path,
					Err: fmt.Errorf("it is another file: its keys are from %s to %s, and the manifest has %s to %s", smallest, largest, info.Smallest, info.Largest)}
			}
		}
	}
	return nil
}

// isBound compares a key of a file with a bound in the manifest.
func isBound(key, bound pebble.InternalKey) bool {
	return string(key.UserKey) == string(bound.UserKey) && key.Trailer == bound.Trailer
}

// bounds returns the first and the last key of a sorted file. It reads two blocks.
func (d *DB) bounds(path string, o sstable.ReaderOptions) (smallest, largest pebble.InternalKey, err error) {
	r, err := pebbledir.OpenTable(d.cfg.FS, path, o)
	if err != nil {
		return smallest, largest, err
	}
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return smallest, largest, errors.Join(err, r.Close())
	}
	if kv := it.First(); kv != nil {
		smallest = kv.K.Clone()
	}
	err = it.Error() // Last forgets it
	if kv := it.Last(); kv != nil {
		largest = kv.K.Clone()
	}
	return smallest, largest, errors.Join(err, it.Error(), it.Close(), r.Close())
}

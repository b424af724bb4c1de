package rows

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// stampName is the file that identifies the directory. It is made before pebble's first file.
const stampName = "ROWS"

const (
	stampMagic  = "trunkline rows "
	stampLayout = 2
	// maxStampBytes bounds what is read of a stamp: a file that is longer is none.
	maxStampBytes = 256
)

func stampText(id [16]byte) string {
	return fmt.Sprintf("%s%d\nformat %d\nidentity %x\n", stampMagic, stampLayout, uint64(format), id)
}

// readStamp returns the identity in the stamp; made is false for a directory that is missing or
// empty.
func readStamp(fsys vfs.FS, dir string) (id [16]byte, made bool, err error) {
	path := fsys.PathJoin(dir, stampName)
	stamp, err := pebbledir.Read(fsys, path, maxStampBytes)
	text := string(stamp)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return id, false, checkEmpty(fsys, dir)
	case err != nil:
		return id, false, fmt.Errorf("cannot read rows %s: %w", path, err)
	}
	at := len(stampText(id)) - 2*len(id) - 1
	if len(text) > at {
		if b, err := hex.DecodeString(strings.TrimSuffix(text[at:], "\n")); err == nil && copy(id[:], b) == len(id) && text == stampText(id) {
			return id, true, nil
		}
	}
	if err := journal.CheckLayout(dir, stampMagic, text, stampLayout, uint64(format)); err != nil {
		return id, true, err
	}
	return id, true, &journal.DamageError{Where: path, Err: fmt.Errorf("not a stamp: %.80q", text)}
}

// checkEmpty refuses a directory with anything but LOCK and what a crash left of an earlier stamp.
func checkEmpty(fsys vfs.FS, dir string) error {
	name, err := pebbledir.Foreign(fsys, dir, stampName)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("cannot read rows %s: %w", dir, err)
	case name != "":
		return &journal.DamageError{Where: fsys.PathJoin(dir, stampName), Err: fmt.Errorf("it is missing, and the directory is not empty (%s)", name)}
	}
	return nil
}

func newIdentity() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// lockDir keeps every other opener out until the lock is closed.
func lockDir(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	lock, held, err := pebbledir.Lock(fsys, dir)
	switch {
	case held:
		return nil, fmt.Errorf("cannot open rows %s: %w", dir, errLocked)
	case err != nil:
		return nil, fmt.Errorf("cannot lock rows %s: %w", dir, typed(err))
	}
	return lock, nil
}

// checkTables compares the bounds of each SSTable with the manifest. Pebble compares sizes
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

// bounds returns the first and the last key of a SSTable. It reads two blocks.
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

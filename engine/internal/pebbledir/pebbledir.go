// Package pebbledir makes directories and small files so that a power loss keeps them.
package pebbledir

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Make makes dir and what is missing above it, and syncs each directory with a new entry: a store
// whose directory is lost in a power loss has lost everything.
func Make(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); err == nil {
		return nil
	}
	parent := fsys.PathDir(dir)
	if parent != dir {
		if err := Make(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return Sync(fsys, parent)
}

// Sync has the entries of dir on stable storage.
func Sync(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace puts a file in place at once and as a whole, over one with the same name.
func Replace(fsys vfs.FS, dir, name, text string) error {
	path := fsys.PathJoin(dir, name)
	f, err := fsys.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(text)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(path+".new", path)
	}
	if err == nil {
		err = Sync(fsys, dir)
	}
	return err
}

// Read returns the first bytes of a file, most at most.
func Read(fsys vfs.FS, path string, most int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(info.Size(), most))
	n, err := f.ReadAt(b, 0)
	if n == len(b) {
		err = nil
	}
	return b[:n], err
}

// OpenTable opens an SSTable, to compare its bounds with the manifest. Pebble compares sizes only:
// when it compacts, it panics on a file whose keys are not between its bounds, one exchanged with
// another of its size.
func OpenTable(fsys vfs.FS, path string, o sstable.ReaderOptions) (*sstable.Reader, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, o)
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}

// AwaitDeleted returns when the files of a database have nothing any more that it has replaced or
// removed before: a scan may hold a SSTable for a while.
func AwaitDeleted(db *pebble.DB) error {
	for range 1000 {
		if m := db.Metrics(); m.Table.ObsoleteCount+m.Table.ZombieCount == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("files that were replaced are still read")
}

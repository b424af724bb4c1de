package pebbledir

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

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

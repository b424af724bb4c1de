package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
)

var (
	errReadOnly = errors.New("the rows are open for reading only")
	errEnded    = errors.New("the rows have stopped")
)

// files is the file system under pebble. It refuses every change until the directory is opened for
// writing. After end, nothing on the disk changes any more, as if the process had ended: the
// outcome of what failed is not known, so no manifest may name it and no clean-up delete it. New
// files are made in memory then, so that no batch waits for them in pebble for ever.
type files struct {
	vfs.FS
	dir string
	// before is called before a SSTable is made; flush is set where it is of new rows.
	before func(flush bool) error
	// failed is called with an error of the manifest, of what belongs to it, or of the directory:
	// what they hold is not known any more. It calls end. Pebble does not get such an error: it
	// would fail every flush from then on, and batches would wait for one.
	failed func(error)

	thawed    atomic.Bool
	ended     atomic.Bool
	imaginary *vfs.MemFS
}

// flushCategory is what pebble calls the files of new rows.
const flushCategory vfs.DiskWriteCategory = "pebble-memtable-flush"

func newFiles(fsys vfs.FS, dir string) *files {
	return &files{FS: fsys, dir: dir, imaginary: vfs.NewMem()}
}

func (f *files) end() { f.ended.Store(true) }

// elsewhere reports whether a name is outside of the directory: that of a checkpoint, whose errors
// are its own.
func (f *files) elsewhere(name string) bool { return name != f.dir && f.PathDir(name) != f.dir }

// change makes a change on the disk, if one may be made. An error is final.
func (f *files) change(op, name string, do func() error) error {
	err := f.tidy(op, name, do)
	if err != nil && f.thawed.Load() && !f.elsewhere(name) {
		f.failed(err)
		return nil
	}
	return err
}

// tidy makes a change of which pebble may have the error.
func (f *files) tidy(op, name string, do func() error) error {
	switch {
	case f.ended.Load():
		return nil
	case !f.thawed.Load():
		return &os.PathError{Op: op, Path: name, Err: errReadOnly}
	}
	return do()
}

// Create implements vfs.FS.
func (f *files) Create(name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	if f.elsewhere(name) {
		return f.FS.Create(name, category)
	}
	if strings.HasSuffix(name, ".sst") {
		err = f.tidy("create", name, func() error {
			if err := f.before(category == flushCategory); err != nil {
				return err
			}
			file, err = f.FS.Create(name, category)
			return err
		})
	} else {
		err = f.change("create", name, func() error {
			if strings.HasPrefix(f.PathBase(name), "marker.manifest.") {
				// Pebble syncs both names at once, after this: a power loss before could keep the
				// marker without the manifest that it names.
				if err := pebbledir.Sync(f.FS, f.dir); err != nil {
					return err
				}
			}
			file, err = f.FS.Create(name, category)
			return err
		})
	}
	switch {
	case err != nil:
		return nil, err
	case file != nil:
		return &changedFile{File: file, fs: f, table: strings.HasSuffix(name, ".sst")}, nil
	}
	if err := f.imaginary.MkdirAll(f.PathDir(name), 0o700); err != nil {
		return nil, err
	}
	return f.imaginary.Create(name, category)
}

// Open implements vfs.FS.
func (f *files) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.ended.Load() {
		if file, err := f.imaginary.Open(name, opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// OpenReadWrite implements vfs.FS. Pebble does not use it.
func (f *files) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: errReadOnly}
}

// ReuseForWrite implements vfs.FS. Pebble reuses logs only.
func (f *files) ReuseForWrite(oldname, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &os.PathError{Op: "reuse", Path: oldname, Err: errReadOnly}
}

// OpenDir implements vfs.FS.
func (f *files) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil || name != f.dir {
		return file, err
	}
	return &dirFile{File: file, fs: f}, nil
}

// Link implements vfs.FS.
func (f *files) Link(oldname, newname string) error {
	return f.change("link", newname, func() error { return f.FS.Link(oldname, newname) })
}

// Remove implements vfs.FS.
func (f *files) Remove(name string) error {
	return f.tidy("remove", name, func() error { return f.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (f *files) RemoveAll(name string) error {
	return f.tidy("remove", name, func() error { return f.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (f *files) Rename(oldname, newname string) error {
	return f.change("rename", oldname, func() error { return f.FS.Rename(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (f *files) MkdirAll(dir string, mode os.FileMode) error {
	return f.change("make", dir, func() error { return f.FS.MkdirAll(dir, mode) })
}

// Unwrap implements vfs.FS.
func (f *files) Unwrap() vfs.FS { return f.FS }

// changedFile is a file that is written. After the end a SSTable fails, and pebble makes
// another one, in memory; what is written to others is dropped.
type changedFile struct {
	vfs.File
	fs    *files
	table bool
}

// Write implements vfs.File.
func (f *changedFile) Write(p []byte) (n int, err error) {
	err = f.change(func() error { n, err = f.File.Write(p); return err })
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Sync implements vfs.File.
func (f *changedFile) Sync() error { return f.change(f.File.Sync) }

// SyncData implements vfs.File.
func (f *changedFile) SyncData() error { return f.change(f.File.SyncData) }

func (f *changedFile) change(do func() error) error {
	switch {
	case !f.table:
		return f.fs.change("write", f.fs.dir, do)
	case f.fs.ended.Load():
		return errEnded
	}
	return do()
}

// dirFile is the directory.
type dirFile struct {
	vfs.File
	fs *files
}

// Sync implements vfs.File.
func (d *dirFile) Sync() error { return d.fs.change("sync", d.fs.dir, d.File.Sync) }

// Compact rewrites the SSTables that have rows from lower to before upper: afterwards no file has
// what was replaced or removed there before the call. It may take long, and ends with Close.
func (d *DB) Compact(ctx context.Context, lower, upper []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	err := d.own()
	if err == nil {
		err = d.flush()
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	if err = cmp.Or(err, d.err()); err == nil {
		err = d.db.Compact(ctx, lower, upper, false)
	}
	if err == nil {
		err = pebbledir.AwaitDeleted(d.db)
	}
	if err != nil {
		return fmt.Errorf("cannot compact rows %s: %w", d.cfg.Dir, typed(err))
	}
	return nil
}

// Checkpoint makes in dir, which must not exist, a copy of what is on the disk: all up to Through,
// and a prefix of what was committed since. Files are linked where the system can. A journal that
// is copied after it has the records of all that. An error is not final: it is of the copy.
func (d *DB) Checkpoint(dir string) error {
	if err := d.own(); err != nil {
		return err
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	err := d.err()
	if err == nil {
		err = d.db.Checkpoint(dir)
	}
	if err == nil {
		err = d.err()
	}
	if err == nil {
		err = pebbledir.Replace(d.cfg.FS, dir, stampName, stampText(d.id))
	}
	if err != nil {
		return fmt.Errorf("cannot copy rows %s to %s: %w", d.cfg.Dir, dir, typed(err))
	}
	return nil
}

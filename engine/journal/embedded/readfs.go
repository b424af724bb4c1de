package embedded

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errReadOnly is what everything gets that would change a directory which is only looked at.
var errReadOnly = errors.New("the journal is open for reading only")

// readFS is a file system that refuses every change, so that pebble cannot tidy up during an
// inspection. The lock is the exception: it keeps a server from starting meanwhile.
type readFS struct{ vfs.FS }

// Lock implements vfs.FS. On a read-only disk no process can have the directory open for writing,
// and no lock is needed.
func (r readFS) Lock(name string) (io.Closer, error) {
	c, err := r.FS.Lock(name)
	if errors.Is(err, syscall.EROFS) {
		return noLock{}, nil
	}
	return c, err
}

type noLock struct{}

// Close implements io.Closer.
func (noLock) Close() error { return nil }

func refused(what, name string) error {
	return &os.PathError{Op: what, Path: name, Err: errReadOnly}
}

// Create implements vfs.FS.
func (readFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused("create", name)
}

// OpenReadWrite implements vfs.FS.
func (readFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refused("open", name)
}

// ReuseForWrite implements vfs.FS.
func (readFS) ReuseForWrite(oldname, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused("reuse", oldname)
}

// Link implements vfs.FS.
func (readFS) Link(oldname, _ string) error { return refused("link", oldname) }

// Remove implements vfs.FS.
func (readFS) Remove(name string) error { return refused("remove", name) }

// RemoveAll implements vfs.FS.
func (readFS) RemoveAll(name string) error { return refused("remove", name) }

// Rename implements vfs.FS.
func (readFS) Rename(oldname, _ string) error { return refused("rename", oldname) }

// MkdirAll implements vfs.FS.
func (readFS) MkdirAll(dir string, _ os.FileMode) error { return refused("make", dir) }

// Unwrap implements vfs.FS.
func (r readFS) Unwrap() vfs.FS { return r.FS }

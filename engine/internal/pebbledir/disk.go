package pebbledir

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is the file system of the machine, on which what is made is for its owner only, whatever the
// umask is. A file system without modes keeps what it has.
var Disk vfs.FS = private{vfs.Default}

type private struct{ vfs.FS }

// Create implements vfs.FS.
func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // its links keep their content
		return nil, err
	}
	return p.OpenReadWrite(name, category)
}

// OpenReadWrite implements vfs.FS.
func (p private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := occupy(name); err != nil {
		return nil, err
	}
	return narrowed(p.FS.OpenReadWrite(name, category, opts...))
}

// ReuseForWrite implements vfs.FS.
func (p private) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return narrowed(p.FS.ReuseForWrite(oldname, newname, category))
}

// MkdirAll implements vfs.FS.
func (p private) MkdirAll(dir string, mode os.FileMode) error { return p.FS.MkdirAll(dir, mode&0o700) }

// Lock implements vfs.FS.
func (p private) Lock(name string) (io.Closer, error) {
	if err := occupy(name); err != nil {
		return nil, err
	}
	lock, err := p.FS.Lock(name)
	if err == nil {
		_ = os.Chmod(name, 0o600)
	}
	return lock, err
}

// Unwrap implements vfs.FS.
func (p private) Unwrap() vfs.FS { return p.FS }

// occupy makes a file unless it is there. pebble would make it by the umask: a mode that is set
// afterwards comes too late for who opens it before, and never where the process is killed.
func occupy(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// narrowed sets the mode of a file that an earlier version has made.
func narrowed(f vfs.File, err error) (vfs.File, error) {
	if c, ok := f.(interface{ Chmod(os.FileMode) error }); ok && err == nil {
		_ = c.Chmod(0o600)
	}
	return f, err
}

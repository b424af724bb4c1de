// Package memdisk is a disk in memory that loses its power while it is written to: pebble's own,
// made safe to be cloned at any moment. It serves the tests of the store and of what uses it.
//
//	Link, ReuseForWrite of vfs.MemFS   take its lock for reading twice
//	CrashClone                         takes it for writing, between the two: a deadlock
package memdisk

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a crashable vfs.MemFS. Any goroutine may use it, and clone it.
type Disk struct {
	*vfs.MemFS
	still sync.RWMutex // held by a clone, and for reading by what must not meet one
}

// New returns an empty disk.
func New() *Disk { return Of(vfs.NewCrashableMem()) }

// Of returns a disk with the content of fs, which has no other user any more.
func Of(fs *vfs.MemFS) *Disk { return &Disk{MemFS: fs} }

// Link implements vfs.FS.
func (d *Disk) Link(oldname, newname string) error {
	d.still.RLock()
	defer d.still.RUnlock()
	return d.MemFS.Link(oldname, newname)
}

// ReuseForWrite implements vfs.FS.
func (d *Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.still.RLock()
	defer d.still.RUnlock()
	return d.MemFS.ReuseForWrite(oldname, newname, category)
}

// CrashClone returns what the disk would hold had it lost its power now; see vfs.MemFS.
func (d *Disk) CrashClone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	d.still.Lock()
	defer d.still.Unlock()
	return d.MemFS.CrashClone(cfg)
}

var _ vfs.FS = (*Disk)(nil)

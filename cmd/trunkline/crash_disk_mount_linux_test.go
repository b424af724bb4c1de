package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// validFor is how long the kernel may keep names and sizes: it alone changes them.
	validFor = time.Minute
	// blockBytes and diskBlocks are the size of a disk as servers see it, which look whether there
	// is room. Nothing takes it from them.
	blockBytes = 4096
	diskBlocks = 4 << 30 / blockBytes
	maxName    = 255
	// unmountWait is how long a busy disk is asked to unmount: on a busy machine the kernel closes
	// the files of a killed process later than the process ends.
	unmountWait = 10 * time.Second
	// syncedFile is the handle of a file whose writes are durable when they return.
	plainFile, syncedFile = 0, 1
)

// errNoFUSE means that this system has no FUSE for this process.
var errNoFUSE = errors.New("it needs /dev/fuse, and the right to mount or the program fusermount3")

// mount mounts a disk at a directory, for processes of this user. unmount fails when a process
// still uses it after unmountWait. Its error is errNoFUSE where nothing can be mounted.
func (d *lossyDisk) mount(dir string) (unmount func() error, err error) {
	m := &mountedDisk{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		disk:          d,
		listings:      make(map[uint64][]fuse.DirEntry),
	}
	s, err := fuse.NewServer(m, dir, &fuse.MountOptions{
		DirectMount: true, FsName: "crashfs", Name: "crashfs", DisableXAttrs: true, DisableReadDirPlus: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot mount at %s: %w: %w", dir, errNoFUSE, err)
	}
	var serving sync.WaitGroup
	serving.Go(s.Serve)
	if err = s.WaitMount(); err != nil {
		return nil, errors.Join(err, s.Unmount())
	}
	return func() error {
		for began := time.Now(); ; {
			err := s.Unmount() // tries for 0.3 s
			if err == nil {
				break
			}
			if time.Since(began) > unmountWait {
				return fmt.Errorf("cannot unmount %s: %w", dir, err)
			}
		}
		serving.Wait()
		return nil
	}, nil
}

// mountedDisk answers the kernel.
type mountedDisk struct {
	fuse.RawFileSystem
	disk *lossyDisk

	mu       sync.Mutex
	listings map[uint64][]fuse.DirEntry // of open directories
	handles  uint64
}

// status calls f under the lock of the disk.
func (m *mountedDisk) status(f func(d *lossyDisk) error) fuse.Status {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return fuse.ToStatus(f(m.disk))
}

// attr fills in what the kernel asks of a node.
func (n *diskNode) attr(to *fuse.Attr) {
	to.Ino, to.Size, to.Blksize, to.Nlink = n.id, uint64(len(n.data)), blockBytes, uint32(n.links)
	to.Blocks = (to.Size + sectorBytes - 1) / sectorBytes
	to.Mode = n.mode&^syscall.S_IFMT | n.kind()
	to.Owner = *fuse.CurrentOwner()
	to.SetTimes(&n.changed, &n.changed, &n.changed)
}

func (n *diskNode) kind() uint32 {
	if n.isDir() {
		return syscall.S_IFDIR
	}
	return syscall.S_IFREG
}

// entry shows a node to the kernel, which then has a reference to it.
func (n *diskNode) entry(out *fuse.EntryOut) {
	n.lookups++
	out.NodeId, out.Generation = n.id, 1
	n.attr(&out.Attr)
	out.SetEntryTimeout(validFor)
	out.SetAttrTimeout(validFor)
}

// Lookup implements fuse.RawFileSystem.
func (m *mountedDisk) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		dir, err := d.dir(in.NodeId)
		if err != nil {
			return err
		}
		n := dir.names[name]
		if n == nil {
			return syscall.ENOENT
		}
		n.entry(out)
		return nil
	})
}

// Forget implements fuse.RawFileSystem.
func (m *mountedDisk) Forget(id, lookups uint64) {
	m.status(func(d *lossyDisk) error {
		n, err := d.node(id)
		if err == nil {
			n.lookups -= min(lookups, n.lookups)
			d.release(n)
		}
		return err
	})
}

// GetAttr implements fuse.RawFileSystem.
func (m *mountedDisk) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		n, err := d.node(in.NodeId)
		if err == nil {
			n.attr(&out.Attr)
			out.SetTimeout(validFor)
		}
		return err
	})
}

// SetAttr implements fuse.RawFileSystem: sizes and permissions. Times are those of the last change.
func (m *mountedDisk) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		n, err := d.node(in.NodeId)
		if err != nil {
			return err
		}
		if mode, ok := in.GetMode(); ok {
			n.mode = mode
		}
		if size, ok := in.GetSize(); ok {
			if n.isDir() {
				return syscall.EISDIR
			}
			if err := n.truncate(size); err != nil {
				return err
			}
		}
		n.attr(&out.Attr)
		out.SetTimeout(validFor)
		return nil
	})
}

// Mkdir implements fuse.RawFileSystem.
func (m *mountedDisk) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.status(func(d *lossyDisk) error { return d.enter(in.NodeId, name, in.Mode, true, out) })
}

// Create implements fuse.RawFileSystem.
func (m *mountedDisk) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	out.Fh = fileHandle(in.Flags)
	return m.status(func(d *lossyDisk) error { return d.enter(in.NodeId, name, in.Mode, false, &out.EntryOut) })
}

// enter makes a node and shows it.
func (d *lossyDisk) enter(id uint64, name string, mode uint32, isDir bool, out *fuse.EntryOut) error {
	dir, err := d.dir(id)
	if err != nil {
		return err
	}
	n, err := d.make(dir, name, mode, isDir)
	if err == nil {
		n.entry(out)
	}
	return err
}

// Link implements fuse.RawFileSystem.
func (m *mountedDisk) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		dir, err := d.dir(in.NodeId)
		if err != nil {
			return err
		}
		n, err := d.node(in.Oldnodeid)
		if err == nil {
			err = d.link(n, dir, name)
		}
		if err == nil {
			n.entry(out)
		}
		return err
	})
}

// Unlink implements fuse.RawFileSystem.
func (m *mountedDisk) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return m.remove(in.NodeId, name, false)
}

// Rmdir implements fuse.RawFileSystem.
func (m *mountedDisk) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return m.remove(in.NodeId, name, true)
}

func (m *mountedDisk) remove(id uint64, name string, isDir bool) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		dir, err := d.dir(id)
		if err == nil {
			err = d.remove(dir, name, isDir)
		}
		return err
	})
}

// Rename implements fuse.RawFileSystem.
func (m *mountedDisk) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		from, err := d.dir(in.NodeId)
		if err != nil {
			return err
		}
		to, err := d.dir(in.Newdir)
		switch {
		case err != nil:
			return err
		case in.Flags&^unix.RENAME_NOREPLACE != 0:
			return syscall.EINVAL
		}
		return d.rename(from, name, to, newName, in.Flags != 0)
	})
}

// fileHandle returns that of a file that is opened with some flags.
func fileHandle(flags uint32) uint64 {
	if flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		return syncedFile
	}
	return plainFile
}

// Open implements fuse.RawFileSystem.
func (m *mountedDisk) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.Fh = fileHandle(in.Flags)
	return m.status(func(d *lossyDisk) error {
		n, err := d.node(in.NodeId)
		if err == nil && in.Flags&syscall.O_TRUNC != 0 {
			err = n.truncate(0)
		}
		return err
	})
}

// Read implements fuse.RawFileSystem.
func (m *mountedDisk) Read(_ <-chan struct{}, in *fuse.ReadIn, to []byte) (fuse.ReadResult, fuse.Status) {
	got := 0
	status := m.status(func(d *lossyDisk) error {
		n, err := d.node(in.NodeId)
		if err == nil {
			got = n.read(to[:min(len(to), int(in.Size))], in.Offset)
		}
		return err
	})
	return fuse.ReadResultData(to[:got]), status
}

// Write implements fuse.RawFileSystem.
func (m *mountedDisk) Write(_ <-chan struct{}, in *fuse.WriteIn, b []byte) (uint32, fuse.Status) {
	return uint32(len(b)), m.status(func(d *lossyDisk) error {
		n, err := d.node(in.NodeId)
		if err == nil {
			err = n.write(b, in.Offset)
		}
		if err == nil && in.Fh == syncedFile {
			d.sync(n)
		}
		return err
	})
}

// Fallocate implements fuse.RawFileSystem: there is always room.
func (m *mountedDisk) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if in.Mode != unix.FALLOC_FL_KEEP_SIZE {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return fuse.OK
}

// Fsync implements fuse.RawFileSystem.
func (m *mountedDisk) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return m.status(func(d *lossyDisk) error {
		n, err := d.node(in.NodeId)
		if err == nil {
			d.sync(n)
		}
		return err
	})
}

// FsyncDir implements fuse.RawFileSystem.
func (m *mountedDisk) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return m.Fsync(cancel, in)
}

// Flush implements fuse.RawFileSystem: closing a file makes nothing durable.
func (m *mountedDisk) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// OpenDir implements fuse.RawFileSystem. A directory shows what it had when it was opened.
func (m *mountedDisk) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	var list []fuse.DirEntry
	status := m.status(func(d *lossyDisk) error {
		dir, err := d.dir(in.NodeId)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(dir.names)) {
			n := dir.names[name]
			list = append(list, fuse.DirEntry{Name: name, Mode: n.kind(), Ino: n.id})
		}
		return nil
	})
	if status.Ok() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.handles++
		m.listings[m.handles], out.Fh = list, m.handles
	}
	return status
}

// ReadDir implements fuse.RawFileSystem.
func (m *mountedDisk) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.listings[in.Fh]
	for _, e := range list[min(in.Offset, uint64(len(list))):] {
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

// ReleaseDir implements fuse.RawFileSystem.
func (m *mountedDisk) ReleaseDir(in *fuse.ReleaseIn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.listings, in.Fh)
}

// StatFs implements fuse.RawFileSystem.
func (m *mountedDisk) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = blockBytes, blockBytes, maxName
	out.Blocks, out.Bfree, out.Bavail = diskBlocks, diskBlocks, diskBlocks
	out.Files, out.Ffree = diskBlocks, diskBlocks
	return fuse.OK
}

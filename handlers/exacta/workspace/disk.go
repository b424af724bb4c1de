package workspace

import (
	"cmp"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// disk is the seam through which tests see each system call and can make it fail.
type disk struct {
	before func(op, name string) error
	lazy   bool // fsync does nothing

	replacing sync.Mutex // held while a file of the storage is replaced
}

func (k *disk) at(op, name string) error {
	if k.before == nil {
		return nil
	}
	return k.before(op, name)
}

// dir is an open directory. Names are single components, and none that is a symbolic link is
// followed.
type dir struct {
	fd   int
	disk *disk
}

// call makes a system call again while a signal interrupts it.
func call(f func() error) error {
	for {
		err := f()
		if err != unix.EINTR {
			return err
		}
	}
}

func (d dir) close() { _ = unix.Close(d.fd) }

// open opens the directory name.
func (d dir) open(name string) (dir, error) {
	fd, err := d.openat(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		err = isNotDir
		if st, e := d.lstat(name); e == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = isSymlink
		}
	}
	return dir{fd, d.disk}, err
}

func (d dir) openat(name string, flags int, perm uint32) (fd int, err error) {
	err = call(func() error {
		var e error
		fd, e = unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		return e
	})
	return fd, err
}

func (d dir) lstat(name string) (st unix.Stat_t, err error) {
	err = call(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// regular opens a regular file for reading. A file of another kind is not opened, and one that
// takes its place meanwhile is closed unread.
func (d dir) regular(name string) (*os.File, unix.Stat_t, error) {
	st, err := d.lstat(name)
	if err == nil {
		err = regularMode(st)
	}
	if err != nil {
		return nil, st, err
	}
	if err := d.disk.at("open", name); err != nil {
		return nil, st, err
	}
	fd, err := d.openat(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == unix.ELOOP {
		return nil, st, isSymlink
	}
	if err == unix.ENXIO {
		return nil, st, isNotRegular
	}
	if err != nil {
		return nil, st, err
	}
	err = call(func() error { return unix.Fstat(fd, &st) })
	if err == nil {
		err = regularMode(st)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, st, err
	}
	return os.NewFile(uintptr(fd), name), st, nil
}

func regularMode(st unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFLNK:
		return isSymlink
	}
	return isNotRegular
}

// create makes a new file for writing and reading. perm is masked by the umask.
func (d dir) create(name string, perm uint32) (*os.File, error) {
	if err := d.disk.at("create", name); err != nil {
		return nil, err
	}
	fd, err := d.openat(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// fill writes data to f, a file of create, and fsyncs it. It stays as it was created where like is
// nil. A write that a test lets fail is cut in its middle.
func (d dir) fill(f *os.File, name string, data []byte, like *attributes) error {
	if err := d.disk.at("write", name); err != nil {
		_, _ = f.Write(data[:len(data)/2])
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if like != nil {
		if err := d.disk.at("chmod", name); err != nil {
			return err
		}
		if err := like.give(int(f.Fd())); err != nil {
			return err
		}
	}
	if err := d.disk.at("fsync", name); err != nil {
		return err
	}
	if !d.disk.lazy {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := d.disk.at("readback", name); err != nil {
		return err
	}
	if got, err := sumOf(io.NewSectionReader(f, 0, int64(len(data))+1)); err != nil || got != Sum(data) {
		return isMisread
	}
	return nil
}

// place makes a new file with these bytes, fsynced and read back. After an error there is none,
// unless it cannot be removed.
func (d dir) place(name string, data []byte, perm uint32, like *attributes) error {
	f, err := d.create(name, perm)
	if err != nil {
		return err
	}
	err = d.fill(f, name, data, like)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = d.remove(name)
	}
	return err
}

// attributes are what a new file gets: a mode, and the owner, the group and the extended
// attributes of another file.
type attributes struct {
	mode int
	of   *os.File
	lost bool // some were not permitted: the file is neither setuid nor setgid
}

func (a *attributes) give(fd int) error {
	var want, have unix.Stat_t
	from := int(a.of.Fd())
	if err := cmp.Or(unix.Fstat(from, &want), unix.Fstat(fd, &have)); err != nil {
		return err
	}
	if want.Uid != have.Uid || want.Gid != have.Gid {
		if a.lost = unix.Fchown(fd, int(want.Uid), int(want.Gid)) != nil; a.lost {
			_ = unix.Fchown(fd, -1, int(want.Gid)) // as far as it is permitted
		}
	}
	a.lost = !copyXattrs(fd, from) || a.lost
	mode := uint32(a.mode)
	if a.lost {
		mode &^= unix.S_ISUID | unix.S_ISGID
	}
	return call(func() error { return unix.Fchmod(fd, mode) }) // after the owner, whose change takes bits away
}

func (d dir) mkdir(name string, perm uint32) error {
	if err := d.disk.at("mkdir", name); err != nil {
		return err
	}
	return call(func() error { return unix.Mkdirat(d.fd, name, perm) })
}

func (d dir) rename(from, to string) error {
	if err := d.disk.at("rename", to); err != nil {
		return err
	}
	return call(func() error { return unix.Renameat(d.fd, from, d.fd, to) })
}

// maxSwaps is how often swap puts back what another program saves meanwhile.
const maxSwaps = 64

// swap puts the file temp, whose hash is ours, in the place of a file with the hash want:
// isChanged if it has another. Where names can be exchanged, what came out is compared too, and
// put back if another program saved it after the first look.
func (d dir) swap(temp, name, ours, want string) error {
	if err := d.expect(name, want); err != nil {
		return err
	}
	if err := d.disk.at("rename", name); err != nil {
		return err
	}
	put, why := ours, error(nil)
	for n := range maxSwaps {
		err := call(func() error { return exchange(d, temp, name) })
		if n == 0 && (err == unix.EINVAL || err == unix.ENOSYS) {
			return call(func() error { return unix.Renameat(d.fd, temp, d.fd, name) })
		}
		if err != nil {
			return err
		}
		out, err := d.hash(temp) // "" of what has none, and is not ours
		why = cmp.Or(why, err)
		if out == want && n == 0 {
			return d.remove(temp)
		}
		if out == want {
			break
		}
		want, put = put, out
	}
	return cmp.Or(why, error(isChanged))
}

// renameNew renames a file to a name that no file has, else EEXIST.
func (d dir) renameNew(from, to string) error {
	if err := d.disk.at("rename", to); err != nil {
		return err
	}
	return renameNoReplace(d, from, to)
}

func (d dir) remove(name string) error {
	if err := d.disk.at("unlink", name); err != nil {
		return err
	}
	return call(func() error { return unix.Unlinkat(d.fd, name, 0) })
}

func (d dir) rmdir(name string) error {
	if err := d.disk.at("rmdir", name); err != nil {
		return err
	}
	return call(func() error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) })
}

// sync makes names in the directory durable.
func (d dir) sync() error {
	if err := d.disk.at("fsync", "."); err != nil {
		return err
	}
	if d.disk.lazy {
		return nil
	}
	return call(func() error { return unix.Fsync(d.fd) })
}

// list returns the names in the directory, in no order.
func (d dir) list() ([]string, error) {
	fd, err := d.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

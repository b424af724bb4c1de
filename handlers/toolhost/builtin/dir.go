package builtin

import (
	"io"
	"os"
	"path/filepath"

	"trunkline/handlers/toolhost/tool"

	"golang.org/x/sys/unix"
)

// dirPerm and filePerm are what is made with, less the process's mask.
const (
	dirPerm  = 0o755
	filePerm = 0o644
)

// dir is an open directory inside a root. Its methods take the name of one entry, no path and
// neither "." nor "..", and follow no link. One goroutine at a time may use it and must close it.
type dir struct {
	fd    int
	path  string   // for results: the root's path and what leads from there, without links
	parts []string // what leads to it from the root, without links
}

func openDir(fd int, name, path string, flags int) (*dir, error) {
	opened, err := openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|flags, 0)
	if err != nil {
		return nil, err
	}
	return &dir{fd: opened, path: path}, nil
}

func (d *dir) close() { _ = unix.Close(d.fd) }

// enter opens the directory name in d; errLink if that is a link. create makes it if it is missing.
func (d *dir) enter(name string, create bool) (*dir, error) {
	path := filepath.Join(d.path, name)
	sub, err := openDir(d.fd, name, path, unix.O_NOFOLLOW)
	if err == unix.ENOENT && create {
		if err = d.mkdir(name); err == nil {
			sub, err = openDir(d.fd, name, path, unix.O_NOFOLLOW)
		}
	}
	if err == nil {
		sub.parts = append(d.parts[:len(d.parts):len(d.parts)], name)
		return sub, nil
	}
	if err == unix.ENOTDIR || err == unix.ELOOP {
		if st, statErr := d.lstat(name); statErr == nil && typeOf(&st) == unix.S_IFLNK {
			return nil, errLink
		}
	}
	return nil, err
}

// mkdir makes the directory name, durably; one that is there already will do.
func (d *dir) mkdir(name string) error {
	err := retry(func() error { return unix.Mkdirat(d.fd, name, dirPerm) })
	if err == unix.EEXIST {
		return nil
	}
	if err != nil {
		return err
	}
	return d.sync()
}

// open opens the regular file name, as os.OpenFile. Nothing waits for anything but a disk: a
// device, fifo, socket or file that the kernel makes up is errNotRegular, a link errLink.
func (d *dir) open(name string, flag int, perm uint32) (*os.File, error) {
	st, err := d.lstat(name)
	if err == nil {
		err = regular(&st)
	}
	if err != nil && (err != unix.ENOENT || flag&os.O_CREATE == 0) {
		return nil, err
	}
	return d.openUnseen(name, flag, perm)
}

// openUnseen is open for a name that may have become anything since it was looked at.
func (d *dir) openUnseen(name string, flag int, perm uint32) (*os.File, error) {
	fd, err := openat(d.fd, name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
	if err == unix.ELOOP {
		return nil, errLink
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = retry(func() error { return unix.Fstat(fd, &st) }); err == nil {
		err = regular(&st)
	}
	if err == nil {
		var madeUp bool
		if madeUp, err = synthetic(fd); madeUp {
			err = errNotRegular
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return tool.Nonblocking(fd, filepath.Join(d.path, name)), nil
}

func (d *dir) lstat(name string) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

func (d *dir) readlink(name string) (string, error) {
	buf := make([]byte, maxName+1)
	n := 0
	err := retry(func() (err error) { n, err = unix.Readlinkat(d.fd, name, buf); return err })
	if err != nil {
		return "", err
	}
	if n > maxName {
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}

// rename gives from the name to, in place of what has it; a link there is replaced, not followed.
func (d *dir) rename(from, to string) error {
	return retry(func() error { return unix.Renameat(d.fd, from, d.fd, to) })
}

// link gives from the second name to; it fails with unix.EEXIST if anything has it.
func (d *dir) link(from, to string) error {
	return retry(func() error { return unix.Linkat(d.fd, from, d.fd, to, 0) })
}

func (d *dir) remove(name string) error {
	return retry(func() error { return unix.Unlinkat(d.fd, name, 0) })
}

// sync makes what was made, renamed and removed in d durable.
func (d *dir) sync() error { return retry(func() error { return unix.Fsync(d.fd) }) }

// names calls f with the names of d, in no order and some hundred at a time, until f returns false.
func (d *dir) names(f func(name string) bool) error {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	list := os.NewFile(uintptr(fd), d.path)
	defer list.Close()
	for {
		names, err := list.Readdirnames(256)
		for _, name := range names {
			if !f(name) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// regular returns nil for a regular file, errLink for a link and errNotRegular for the rest.
func regular(st *unix.Stat_t) error {
	switch typeOf(st) {
	case unix.S_IFREG:
		return nil
	case unix.S_IFLNK:
		return errLink
	}
	return errNotRegular
}

func typeOf(st *unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }

func openat(fd int, name string, flags int, perm uint32) (opened int, err error) {
	err = retry(func() (err error) {
		opened, err = unix.Openat(fd, name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return opened, err
}

// retry calls f until no signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

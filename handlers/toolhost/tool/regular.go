package tool

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is the error of OpenRegular for a device, a fifo and the like.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a regular file. Neither it nor a read waits for anything but a disk: not for a
// fifo's other end, nor for a line of a kernel file that only claims to be regular.
func OpenRegular(path string) (f *os.File, info fs.FileInfo, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f = Nonblocking(fd, path)
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close() // nothing was read
		return nil, nil, err
	}
	return f, info, nil
}

// Nonblocking makes a file of fd whose reads fail where they would wait. While os.NewFile looks,
// O_NONBLOCK must be off, or such a read would wait in the runtime instead.
func Nonblocking(fd int, path string) *os.File {
	_ = unix.SetNonblock(fd, false) // fails for no open descriptor
	f := os.NewFile(uintptr(fd), path)
	_ = unix.SetNonblock(fd, true)
	return f
}

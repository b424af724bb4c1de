package sock

import (
	"errors"

	"golang.org/x/sys/unix"
)

func send(fd int, b []byte) (n int, err error) { return unix.Write(fd, b) }

// Queued returns how many bytes the socket has taken and its peer's system does not have yet, and
// whether that is known. It neither allocates nor waits.
func Queued(fd int) (n int, known bool) {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NWRITE)
	return n, err == nil
}

// Undelivered is Queued: a FIN does not count here.
func Undelivered(fd int) (n int, known bool) { return Queued(fd) }

// Unsent is Queued: what was sent and not acknowledged counts here.
func Unsent(fd int) (n int, known bool) { return Queued(fd) }

func boundTCP(int, int) error { return errors.ErrUnsupported }

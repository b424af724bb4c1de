package sock

import "golang.org/x/sys/unix"

// Queued returns how many bytes the socket has taken and its peer's system does not have yet, and whether that can be told. It neither
// allocates nor waits.
func Queued(fd int) (n int, ok bool) {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NWRITE)
	return n, err == nil
}

// Undelivered is Queued: a FIN does not count here.
func Undelivered(fd int) (n int, ok bool) { return Queued(fd) }

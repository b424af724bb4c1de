package sock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// send makes one non-blocking send(2). It goes around the runtime's bookkeeping for calls that may
// block, which costs as much as several requests: this call cannot block.
func send(fd int, b []byte) (n int, err error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// Queued returns what the socket has taken and its peer has not, and whether that is known: of TCP
// the bytes, and the FIN, that were not acknowledged, of a unix socket the memory of what was not
// read. It shrinks as the peer takes something. It neither allocates nor waits.
func Queued(fd int) (n int, known bool) {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	return n, err == nil
}

// Undelivered returns how many bytes a socket that was shut down for writing has taken and its
// peer's system does not have yet, and whether that is known. What a unix socket takes is with its
// peer. It neither allocates nor waits.
func Undelivered(fd int) (n int, known bool) {
	switch domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); {
	case err != nil:
		return 0, false
	case domain == unix.AF_UNIX:
		return 0, true
	}
	n, known = Queued(fd)
	return max(0, n-1), known // the FIN has a place in the sequence
}

// Unsent returns what the socket has taken and not sent, and whether that is known: of TCP the
// bytes for which the peer has no room or that its system is not known to be able to take, of a
// unix socket what Queued returns. It neither allocates nor waits.
func Unsent(fd int) (n int, known bool) {
	if n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQNSD); err == nil {
		return n, true
	}
	return Queued(fd)
}

func boundTCP(fd, n int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}

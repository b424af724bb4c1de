package sock

import "golang.org/x/sys/unix"

// Queued returns what the socket has taken and its peer has not, and whether that can be told: of TCP the bytes, and the FIN, that were
// not acknowledged, of a unix socket the memory of what was not read. It shrinks as the peer takes something. It neither allocates
// nor waits.
func Queued(fd int) (n int, ok bool) {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	return n, err == nil
}

// Undelivered returns how many bytes a socket that was shut down for writing has taken and its peer's system does not have yet, and
// whether that can be told. What a unix socket takes is with its peer. It neither allocates nor waits.
func Undelivered(fd int) (n int, ok bool) {
	switch domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); {
	case err != nil:
		return 0, false
	case domain == unix.AF_UNIX:
		return 0, true
	}
	n, ok = Queued(fd)
	return max(0, n-1), ok // the FIN has a place in the sequence
}

package sock

import "golang.org/x/sys/unix"

// Unsent returns what the socket has taken and not sent, and whether that can be told: of TCP the bytes for which the peer has no room or
// that its system is not known to be able to take, of a unix socket what Queued tells. It neither allocates nor waits.
func Unsent(fd int) (n int, ok bool) {
	if n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQNSD); err == nil {
		return n, true
	}
	return Queued(fd)
}

func boundTCP(fd, n int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}

// Package sock makes the one system call of a turn as cheap as the platform allows, and asks a
// socket what its peer has.
package sock

import "golang.org/x/sys/unix"

// Send offers b to a non-blocking socket once, if there is anything to send; n is never negative.
func Send(fd int, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		if n, err = send(fd, b); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Poll returns which of the events, and of errors and hang-ups, the socket shows now, and whether
// that is known. It does not wait.
func Poll(fd int, events int16) (shown int16, known bool) {
	ask := [1]unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		_, err := unix.Poll(ask[:], 0)
		if err != unix.EINTR {
			return ask[0].Revents, err == nil
		}
	}
}

// BoundUnsent has the socket take bytes, and be writable again, only while it has few unsent ones:
// about n, and half of it. A socket without such a bound gets a small send buffer. One that takes
// neither stays as it was.
func BoundUnsent(fd, n int) {
	if boundTCP(fd, n) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, n)
	}
}

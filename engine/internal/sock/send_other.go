//go:build !linux

package sock

import "golang.org/x/sys/unix"

// Send makes one write(2) of b, which is not empty, on a non-blocking socket.
func Send(fd int, b []byte) (n int, err error) {
	n, err = unix.Write(fd, b)
	return max(n, 0), err
}

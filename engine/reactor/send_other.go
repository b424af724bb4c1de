//go:build !linux

package reactor

import "golang.org/x/sys/unix"

// send makes one write(2) of b, which is not empty, on a non-blocking socket.
func send(fd int, b []byte) (n int, err error) {
	n, err = unix.Write(fd, b)
	return max(n, 0), err
}

//go:build unix

package stream

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the socket below rwc is reset or closed in both directions. It does not wait; where there is no socket
// to ask it says false.
func hungUp(rwc io.ReadWriteCloser) (gone bool) {
	nc, _ := rwc.(net.Conn) // the files of a stdio transport hang up one by one
	if w, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = w.NetConn()
	}
	s, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		ask := [1]unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are told unasked
		n, err := unix.Poll(ask[:], 0)
		gone = err == nil && n > 0 && ask[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}

//go:build unix

package stream

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"trunkline/engine/internal/sock"
)

// onSocket calls f with the descriptor of the socket below rwc; where there is none it reports false.
func onSocket(rwc io.ReadWriteCloser, f func(fd int)) bool {
	nc, _ := rwc.(net.Conn) // the files of a stdio transport hang up one by one
	if w, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = w.NetConn()
	}
	s, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	return err == nil && raw.Control(func(fd uintptr) { f(int(fd)) }) == nil
}

// hungUp reports whether the socket below rwc is reset or closed in both directions. It does not wait; where there is no socket
// to ask it says false.
func hungUp(rwc io.ReadWriteCloser) (gone bool) {
	onSocket(rwc, func(fd int) {
		ask := [1]unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are told unasked
		n, err := unix.Poll(ask[:], 0)
		gone = err == nil && n > 0 && ask[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}

// undelivered is sock.Undelivered of the socket below rwc. It does not wait.
func undelivered(rwc io.ReadWriteCloser) (n int, told bool) {
	onSocket(rwc, func(fd int) { n, told = sock.Undelivered(fd) })
	return n, told
}

// queued is sock.Queued of the socket below rwc. It does not wait.
func queued(rwc io.ReadWriteCloser) (n int, told bool) {
	onSocket(rwc, func(fd int) { n, told = sock.Queued(fd) })
	return n, told
}

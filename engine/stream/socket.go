package stream

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"trunkline/engine/internal/sock"
)

// socket is the socket below a transport, or its zero value where there is none to ask: a pipe, the
// files of a stdio transport.
type socket struct{ raw syscall.RawConn }

func socketOf(rwc io.ReadWriteCloser) (s socket) {
	nc, _ := rwc.(net.Conn) // the files of a stdio transport hang up one by one
	if w, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = w.NetConn()
	}
	if c, ok := nc.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn()
	}
	return s
}

// Unsent returns how many bytes the socket below nc has taken and its peer has no room for, 0 where
// that is not known. It does not wait.
func Unsent(nc net.Conn) int64 {
	n, _ := socketOf(nc).ask(sock.Unsent)
	return int64(n)
}

// on calls f with the descriptor of the socket, if there is one.
func (s socket) on(f func(fd int)) {
	if s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// hungUp reports whether the socket is reset or closed in both directions. It does not wait;
// without a socket it returns false.
func (s socket) hungUp() (gone bool) {
	s.on(func(fd int) {
		shown, ok := sock.Poll(fd, 0)
		gone = ok && shown&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}

// ask calls a question of package sock. It does not wait; without a socket the answer is not known.
func (s socket) ask(question func(fd int) (n int, known bool)) (n int, known bool) {
	s.on(func(fd int) { n, known = question(fd) })
	return n, known
}

// awaitWritable has the system keep no more than socketShare unsent, and waits until half of it has
// been sent, or the socket is closed.
func (s socket) awaitWritable() {
	s.on(func(fd int) { sock.BoundUnsent(fd, socketShare) })
	_ = s.raw.Write(func(fd uintptr) bool {
		shown, ok := sock.Poll(int(fd), unix.POLLOUT)
		return shown != 0 || !ok
	})
}

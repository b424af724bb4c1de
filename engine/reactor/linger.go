package reactor

import (
	"golang.org/x/sys/unix"

	"trunkline/engine/internal/sock"
	"trunkline/engine/link"
)

// lingerBytes is how much of what a peer had still sent is dropped before its socket is closed.
const lingerBytes = 256 << 10

// closeWrite closes a connection whose output the socket has taken: at once if the peer has it,
// else by a goroutine of engine/stream that waits until then (stream.Linger). Where too many linger
// it is closed at once.
func (c *conn) closeWrite(r link.Reason) (keep bool) {
	s := c.loop.srv
	may := s.gate.BeginLinger()
	c.close(r)
	if !c.delivered() && may {
		if nc, err := c.detach(); err == nil {
			s.host.Linger(nc, c.port, c.State)
			return false
		}
	}
	if may {
		s.gate.EndLinger()
	}
	return false
}

// delivered shuts the sending side down, and reports whether the socket may be closed: the peer has
// everything and sends nothing, or is gone.
func (c *conn) delivered() bool {
	err := unix.Shutdown(c.fd, unix.SHUT_WR)
	in, dropped := c.loop.scratch(), 0
	for dropped < lingerBytes {
		n, err := unix.Read(c.fd, in)
		if n <= 0 && err != unix.EINTR {
			break
		}
		dropped += max(n, 0)
	}
	n, known := sock.Undelivered(c.fd)
	return err != nil || known && n == 0 && dropped == 0
}

// scratch is where a loop reads what comes to connections that are about to end.
func (l *loop) scratch() []byte {
	if l.sink == nil {
		l.sink = make([]byte, 16<<10)
	}
	return l.sink
}

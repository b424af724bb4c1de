package reactor

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
	"trunkline/engine/internal/sock"
	"trunkline/engine/stream"
)

// handoff gives the connection to the goroutines of engine/stream, with output that the socket did
// not take. The caller closes the loop's own descriptor.
func (c *conn) handoff(why stream.Departure, unsent []byte) (keep bool) {
	nc, err := c.detach()
	s := c.loop.srv
	if err != nil {
		s.log.Warn("cannot move a connection off its loop", "conn", c.port.ID(), "why", why.String(), "err", err)
		return c.close(connection.ReasonError)
	}
	s.gate.Rests(&c.State, false) // the new owner finds out for itself
	a := stream.Adopted{
		Port: c.port, Session: c.sess, State: c.State, Why: why,
		Unread: append([]byte(nil), c.unread()...), Unsent: unsent, Charge: c.charge,
	}
	c.charge = connection.Charge{}
	c.gone = true
	c.dropCarry()
	c.loop.remove(c)
	s.host.Adopt(nc, a)
	return false
}

// detach duplicates the socket for a net.Conn.
func (c *conn) detach() (net.Conn, error) {
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return fileConn(fd)
}

// close ends the session and gives the slot back, before the peer sees the end. It returns false.
func (c *conn) close(r connection.Reason) bool {
	if c.gone {
		return false
	}
	c.gone = true
	s := c.loop.srv
	c.loop.remove(c)
	c.loop.report()
	c.port.SetOwner(nil)
	c.dropCarry()
	s.host.CloseSession(c.port, c.sess)
	s.stats.CountClosed(r)
	s.gate.Release(c.Rests)
	s.log.Debug("connection closed", "conn", c.port.ID(), "remote", c.port.Remote(), "reason", r.String())
	return false
}

// hungUp is called when gnet is about to close the descriptor. err is nil while the loops stop,
// io.EOF when the peer closed its side, and any other error is one of the socket.
func (c *conn) hungUp(err error) {
	if c.gone {
		return
	}
	keep := false
	defer c.recoverPanic(&keep)
	switch {
	case err == nil:
		c.close(connection.ReasonDrain)
	case !errors.Is(err, io.EOF):
		c.close(connection.ReasonError)
	case c.Behind(), len(c.unread()) > 0 && c.loop.srv.limits.EndOfInput != "":
		c.Peer = connection.PeerEnded // frames that came before the end are served before it
		c.handoff(stream.LeftEOF, nil)
	default:
		c.onEOF(c.loop.srv.now())
	}
}

// onEOF serves a peer's end (kernel-ipc §2.3), here if nothing is outstanding.
func (c *conn) onEOF(now connection.Instant) {
	c.dropCarry()
	c.EOF()
	c.sess.EOF(now)
	c.port.Rearm()
	out, more := c.sess.Pump(c.loop.out[:0], c.loop.srv.limits.ChunkBytes, now)
	n, err := sock.Send(c.fd, out)
	c.loop.bytesOut += int64(n)
	c.Out += int64(n)
	switch {
	case n < len(out) && err != nil && err != unix.EAGAIN:
		c.close(connection.ReasonError)
	case n == len(out) && !more && c.sess.Load().Done:
		c.close(connection.ReasonEOF)
	default:
		c.handoff(stream.LeftEOF, out[n:])
	}
	c.loop.giveBack(out)
}

// lingerBytes is how much of what a peer had still sent is dropped before its socket is closed.
const lingerBytes = 256 << 10

// closeWrite closes a connection whose output the socket has taken: at once if the peer has it,
// else by a goroutine of engine/stream that waits until then (stream.Linger). Where too many linger
// it is closed at once.
func (c *conn) closeWrite(r connection.Reason) (keep bool) {
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

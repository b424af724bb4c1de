package reactor

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"trunkline/engine/link"
	"trunkline/engine/stream"
)

// departing is what a connection that leaves its loop takes along beside what its conn knows.
type departing struct {
	why            stream.Departure
	unsent         []byte // copied
	closing        bool
	atEOF, eofTold bool
}

// leave hands the connection to the goroutines of engine/stream. The loop's own descriptor is closed by the caller, like that
// of any connection that is done with.
func (c *conn) leave(d departing) (keep bool) {
	nc, err := c.detach()
	if err != nil {
		c.loop.srv.log.Warn("cannot move a connection off its loop", "conn", c.port.ID(), "why", d.why.String(), "err", err)
		return c.close(stream.ReasonError)
	}
	a := stream.Adopted{
		Port: c.port, Session: c.sess,
		Unread: append([]byte(nil), c.unread()...), Unsent: d.unsent,
		Blocked: c.blocked, Behind: c.behind, AtEOF: d.atEOF, EOFTold: d.eofTold,
		Draining: c.draining, DrainDue: c.drainDue, DrainAfter: c.drainAt, Closing: d.closing,
		Timers: c.timers, Charge: c.charge, Why: d.why,
	}
	c.charge = link.Charge{}
	c.gone = true
	c.loop.srv.gate.Rests(&c.resting, false) // the new owner looks for itself
	c.dropCarry()
	c.loop.remove(c)
	c.loop.srv.host.Adopt(nc, a)
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

// close ends the session and gives the slot back, so that a peer that sees the end may come again. It returns false.
func (c *conn) close(r stream.Reason) bool {
	if c.gone {
		return false
	}
	c.gone = true
	s := c.loop.srv
	c.loop.remove(c)
	c.loop.report()
	c.port.SetOwner(nil)
	c.dropCarry()
	c.closeSession()
	s.stats.CountClosed(r)
	s.gate.Release(c.resting)
	s.log.Debug("connection closed", "conn", c.port.ID(), "remote", c.port.Remote(), "reason", r.String())
	return false
}

func (c *conn) closeSession() {
	defer func() {
		if r := recover(); r != nil {
			c.loop.srv.log.Error("panic closing a session", "conn", c.port.ID(), "panic", r, "stack", string(debug.Stack()))
		}
	}()
	c.sess.Closed()
}

// hungUp is called when gnet is about to close the descriptor: because we asked for it, because the peer closed its side, or
// because the socket failed.
func (c *conn) hungUp(err error) {
	if c.gone {
		c.parted()
		return
	}
	keep := false
	defer c.rescue(&keep)
	switch {
	case err == nil:
		c.close(reasonForced)
	case !errors.Is(err, io.EOF):
		c.close(stream.ReasonError)
	case c.behind || c.blocked, len(c.unread()) > 0 && c.loop.srv.limits.EndOfInput != "":
		// Frames that came before the end are served before it.
		c.leave(departing{why: stream.LeftEOF, atEOF: true})
	default:
		c.lastWords(c.loop.srv.now())
	}
}

// lastWords ends the conversation with a peer that will send nothing more, here if nothing is outstanding (kernel-ipc §2.3).
func (c *conn) lastWords(now link.Instant) {
	c.dropCarry()
	c.timers.Frame = 0
	c.sess.EOF(now)
	c.port.Rearm()
	out, more := c.sess.Pump(c.loop.out[:0], c.loop.srv.limits.ChunkBytes, now)
	n, err := write(c.fd, out)
	c.loop.bytesOut += int64(n)
	switch {
	case n < len(out) && err != nil && err != unix.EAGAIN:
		c.close(stream.ReasonError)
	case n == len(out) && !more && c.sess.Load().Done:
		c.close(stream.ReasonEOF)
	default:
		c.leave(departing{why: stream.LeftEOF, unsent: out[n:], atEOF: true, eofTold: true})
	}
	c.loop.giveBack(out)
}

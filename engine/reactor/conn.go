package reactor

import (
	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/internal/poison"
	"trunkline/engine/internal/sock"
	"trunkline/engine/stream"
)

// Unread bytes beyond these make a connection leave its loop, where reading can be paused. A
// partial frame does not count: its bound is Limits.FrameBytes.
const (
	// blockedBytes may wait behind a blocked session.
	blockedBytes = 64 << 10
	// behindBytes may wait behind a session that yielded: a few reads.
	behindBytes = 256 << 10
)

// pumpsPerTurn bounds the pieces (at most Limits.ChunkBytes each) that one connection is brought
// before the others get theirs: a megabyte, as much as it may be read.
const pumpsPerTurn = 16

// fullRounds is in how many rounds of its loop a socket may have no room before its connection
// leaves: a peer that is only busy has read by then.
const fullRounds = 16

// conn is a connection on a loop, and the connection.Owner of its port. Methods that return keep
// return false when the connection is done with: the caller has gnet close the descriptor.
type conn struct {
	connection.State
	loop *loop
	port *connection.Port
	sess connection.Session
	sock gnet.Conn
	fd   int

	carry  *bufpool.Buffer // bytes the session has not taken: carry.B[off:]; nil while there are none
	off    int
	charge connection.Charge // of Limits.Input, for carry
	index  int               // in loop.conns

	opened  bool
	gone    bool // the session is closed, or has another owner
	queued  bool // on the ready list
	woken   bool // Port.Wake came
	credit  int  // bytes a Pump may append before the socket is asked what it has not sent
	fullFor int  // rounds in which the socket had no room
}

// Wake implements connection.Owner: it puts the connection into its loop's inbox.
func (c *conn) Wake(*connection.Port) {
	l := c.loop
	l.mu.Lock()
	if !l.retired {
		l.inbox = append(l.inbox, c)
	}
	l.mu.Unlock()
	l.ring()
}

// Loop has the port share the hooks and the wake-ups of its loop.
func (c *conn) Loop() *connection.Loop { return c.loop.group }

// open takes the connection onto its loop.
func (c *conn) open(g gnet.Conn) (keep bool) {
	l := c.loop
	c.sock, c.fd, c.opened = g, g.Fd(), true
	now := l.srv.now()
	c.Quiet, c.Opened = now.Mono, now.Mono
	l.add(c)
	c.port.SetOwner(c)
	if l.forced {
		return c.close(connection.ReasonDrain)
	}
	return !l.draining || c.drain(now)
}

// received is the turn of a connection whose socket had bytes.
func (c *conn) received(in []byte) (keep bool) {
	defer c.recoverPanic(&keep)
	l := c.loop
	l.bytesIn += int64(len(in))
	c.In += int64(len(in))
	if c.Verdict != connection.More {
		c.store(in)
		return c.bounded()
	}
	now := l.srv.now()
	awaits := l.group.Awaits()
	out := c.feed(in, l.out[:0], now)
	l.input.add(len(in), l.group.Awaits() != awaits)
	return c.settle(out, now)
}

// turn serves a connection of the ready list: replies and chunks from elsewhere first, then frames
// that it could not take before.
func (c *conn) turn(now connection.Instant) (keep bool) {
	defer c.recoverPanic(&keep)
	out := c.loop.out[:0]
	if c.woken {
		c.woken, c.More = false, true
		c.port.Rearm()
	}
	if c.More {
		var sent bool
		if out, sent, keep = c.pump(out, now); !sent {
			return keep
		}
	}
	if c.Next() == connection.DoFeed {
		out = c.feed(nil, out, now)
	}
	return c.settle(out, now)
}

// pump sends what the session has for its peer, a piece at a time: as long as the socket takes each
// piece whole and sends it on, the next one delays no reply. The last piece is left in rest, to be
// sent with the replies of the turn. With sent false the connection has left its loop or is closed.
//
// A socket has room for megabytes, and a reply would wait behind what lies in it. So it is asked
// each time half of Limits.ChunkBytes was sent, which is seldom enough to cost nothing.
func (c *conn) pump(out []byte, now connection.Instant) (rest []byte, sent, keep bool) {
	most := c.loop.srv.limits.ChunkBytes
	for range pumpsPerTurn {
		if c.credit <= most/2 {
			n, _ := sock.Unsent(c.fd)
			c.credit = most - n
		}
		room, more := c.credit, false
		out, more = c.sess.Pump(out, room, now)
		c.credit -= len(out)
		if c.Pumped(len(out), len(c.unread()), more, now.Mono); !more {
			return out, true, true
		}
		if sent, keep = c.send(out); !sent {
			return nil, false, keep
		}
		if room > 0 {
			c.fullFor = 0
		} else if c.fullFor++; c.fullFor < fullRounds {
			return out[:0], true, true
		} else { // only goroutines can wait for the socket
			return nil, false, c.handoff(stream.LeftWrite, nil)
		}
		out = out[:0]
	}
	return out, true, true
}

// feed lends the session what was read, from the loop's buffer where nothing waits before it.
func (c *conn) feed(in, out []byte, now connection.Instant) []byte {
	src := in
	if c.carry != nil {
		c.store(in)
		src = c.carry.B[c.off:]
	}
	lent := src[:c.Lend(len(src))]
	if len(lent) == 0 {
		c.Fed(0, 0, connection.More, now.Mono)
		return out
	}
	used, out, v := c.sess.Feed(lent, out, now)
	poison.Fill(src[:used])
	c.keepRest(src, used)
	rest, partial := len(src)-used, 0
	if v == connection.More && !c.DrainDue() { // otherwise the rest may have whole frames
		partial = rest
	}
	limits := &c.loop.srv.limits
	if most := limits.FrameBytes; most > 0 && partial > most+readBuffer {
		v = connection.Close // the session waits for more than any frame may have
	}
	if c.carry != nil && !limits.Input.Fit(&c.charge, cap(c.carry.B)) && v == connection.More && partial > connection.OwnInput {
		limits.Input.CountRefused()
		out, v = limits.NoRoom(out), connection.Close
	}
	c.Fed(used, rest, v, now.Mono)
	return out
}

// keepRest carries what the session did not take.
func (c *conn) keepRest(src []byte, used int) {
	switch {
	case used == len(src):
		if c.carry != nil {
			c.dropCarry()
		}
	case c.carry != nil:
		c.off += used
		if rest := len(src) - used; c.loop.srv.limits.Input != nil && cap(c.carry.B) > 2*connection.OwnInput && rest <= connection.OwnInput { // a long frame is gone
			long := c.carry
			c.carry, c.off = c.loop.srv.carry.Get(), 0
			c.carry.B = append(c.carry.B, src[used:]...)
			c.loop.srv.carry.Put(long)
		}
	default:
		c.carry = c.loop.srv.carry.Get()
		c.carry.B = append(c.carry.B, src[used:]...)
	}
}

// store appends to the carry.
func (c *conn) store(in []byte) {
	if len(in) == 0 {
		return
	}
	if c.carry == nil {
		c.carry = c.loop.srv.carry.Get()
	}
	if c.off > 0 && c.off >= len(c.carry.B)/2 {
		c.carry.B = c.carry.B[:copy(c.carry.B, c.carry.B[c.off:])]
		c.off = 0
	}
	c.carry.B = append(c.carry.B, in...)
}

func (c *conn) dropCarry() {
	if c.carry != nil {
		c.loop.srv.carry.Put(c.carry)
		c.carry, c.off = nil, 0
		c.loop.srv.limits.Input.Fit(&c.charge, 0)
	}
}

func (c *conn) unread() []byte {
	if c.carry == nil {
		return nil
	}
	return c.carry.B[c.off:]
}

// bounded hands off a connection whose unread bytes pile up.
func (c *conn) bounded() bool {
	l := &c.loop.srv.limits
	n, blocked := len(c.unread()), c.Verdict == connection.Blocked
	switch {
	case blocked && (n > blockedBytes || l.AheadBytes > 0 && l.Full(n, l.Count(c.unread()), false)):
		return c.handoff(stream.LeftBlocked, nil)
	case n > behindBytes:
		return c.handoff(stream.LeftBehind, nil)
	}
	return true
}

// settle ends a turn: the one write, then what the state asks for.
func (c *conn) settle(out []byte, now connection.Instant) bool {
	if sent, keep := c.send(out); !sent {
		return keep
	}
	switch c.Next() {
	case connection.DoClose:
		return c.closeWrite(connection.ReasonProtocol)
	case connection.DoDrain:
		c.emitDrain(now)
	default:
		if !c.Draining() {
			break
		}
		if r, done := c.loop.srv.gate.Finished(&c.State, c.sess, c.woken); done {
			return c.closeWrite(r)
		}
	}
	if c.Runnable() {
		c.loop.enqueue(c)
	}
	return true
}

// send ends the loan of the output buffer by offering its bytes to the socket. With sent false the
// socket did not take them all, and the connection has left its loop or is closed.
func (c *conn) send(out []byte) (sent, keep bool) {
	n, err := sock.Send(c.fd, out)
	c.loop.bytesOut += int64(n)
	c.Out += int64(n)
	if n < len(out) {
		if err != nil && err != unix.EAGAIN {
			return false, c.close(connection.ReasonError)
		}
		keep = c.handoff(stream.LeftWrite, out[n:])
	}
	c.loop.giveBack(out)
	return n == len(out), keep
}

// drain has the session drain after the frames already read were served (kernel-ipc §2.7). They may
// wait behind a blocked session too, which unblocks without a Drain; later frames come after it.
func (c *conn) drain(now connection.Instant) (keep bool) {
	defer c.recoverPanic(&keep)
	if c.Behind() {
		c.DrainAfter(len(c.unread()))
	} else {
		c.emitDrain(now)
	}
	return true
}

func (c *conn) emitDrain(now connection.Instant) {
	c.sess.Drain(now)
	c.Drained(len(c.unread()))
	c.loop.enqueue(c)
}

// lastTurn answers what has come to a connection whose session is done in a drain, and closes it.
func (c *conn) lastTurn(now connection.Instant) (keep bool) {
	defer c.recoverPanic(&keep)
	l := c.loop
	out, in := l.out[:0], l.scratch()
	for total := 0; total < lingerBytes && c.Verdict == connection.More; {
		n, err := unix.Read(c.fd, in)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		total += n
		l.bytesIn += int64(n)
		c.In += int64(n)
		out = c.feed(in[:n], out, now)
	}
	return c.settle(out, now)
}

// inTime closes the connection if one of its timers ran out (kernel-ipc §2.4).
func (c *conn) inTime(now connection.Instant) (keep bool) {
	defer c.recoverPanic(&keep)
	l := &c.loop.srv.limits
	r, late := c.Overdue(l, c.sess.Load(), 0, now.Mono)
	switch {
	case late && r == connection.ReasonFrame && l.LateFrame != nil:
		c.Close()
		return c.settle(l.LateFrame(c.loop.out[:0]), now)
	case late:
		return c.close(r)
	}
	return true
}

// recoverPanic is deferred around calls of session methods: a panic closes this connection only.
func (c *conn) recoverPanic(keep *bool) {
	if r := recover(); r != nil {
		c.loop.srv.host.Panicked("in", c.port, r)
		*keep = c.close(connection.ReasonPanic)
	}
}

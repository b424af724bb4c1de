package reactor

import (
	"runtime/debug"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"trunkline/engine/internal/bufpool"
	"trunkline/engine/internal/poison"
	"trunkline/engine/internal/sock"
	"trunkline/engine/link"
	"trunkline/engine/stream"
)

// Unread bytes beyond these make a connection leave its loop, where reading can be paused. A partial frame does not count: its
// bound is Limits.FrameBytes.
const (
	// blockedBytes may wait behind a blocked session.
	blockedBytes = 64 << 10
	// behindBytes may wait behind a session that yielded: a few reads, for small frames come faster than turns.
	behindBytes = 256 << 10
)

// pumpsPerTurn bounds the pieces (at most Limits.ChunkBytes each) that one connection is brought before the others get theirs: a
// megabyte, as much as it may be read.
const pumpsPerTurn = 16

// fullRounds is in how many rounds of its loop a socket may have no room before its connection leaves: a peer that is only busy
// has read by then.
const fullRounds = 16

const reasonForced = stream.ReasonDrain

// conn is a connection on a loop, and the link.Owner of its port. Methods that return keep say false when the connection is done
// with: the caller has gnet close the descriptor.
type conn struct {
	loop *loop
	port *link.Port
	sess link.Session
	sock gnet.Conn
	fd   int

	carry *bufpool.Buffer // bytes the session has not taken: carry.B[off:]; nil while there are none
	off   int
	index int // in loop.conns

	charge link.Charge // of Limits.Input, for carry

	opened   bool
	gone     bool // closed, or left
	queued   bool // on the ready list
	woken    bool // Port.Wake came
	more     bool // the session has chunks left to pump
	blocked  bool // the session waits for what a Pump will bring
	behind   bool // carry may begin with a whole frame
	draining bool
	resting  bool // counted by Gate.Rest
	drainDue bool // Drain waits for the frames already read,
	drainAt  int  // which are within so many bytes of carry.B[off:]
	credit   int  // bytes a Pump may still bring before the socket is asked what it has not sent
	fullFor  int  // rounds in which the socket had no room
	timers   stream.Timers
	parting  *stream.Parting // gone, and its last bytes are with the socket; nil before
}

// Wake implements link.Owner.
func (c *conn) Wake(*link.Port) { c.loop.post(c) }

// Loop has the port share the hooks and the wake-ups of its loop.
func (c *conn) Loop() *link.Loop { return c.loop.group }

// open takes the connection onto its loop.
func (c *conn) open(g gnet.Conn) (keep bool) {
	l := c.loop
	c.sock, c.fd, c.opened = g, g.Fd(), true
	now := l.srv.now()
	c.timers.Quiet = now.Mono
	l.add(c)
	c.port.SetOwner(c)
	if l.forced {
		return c.close(reasonForced)
	}
	return !l.draining || c.drain(now)
}

// received is the turn of a connection whose socket had bytes.
func (c *conn) received(in []byte) (keep bool) {
	defer c.rescue(&keep)
	l := c.loop
	l.bytesIn += int64(len(in))
	if c.blocked || c.behind {
		if c.parting != nil {
			c.parting.Heard()
			return true
		}
		c.store(in)
		return c.bounded()
	}
	now := l.srv.now()
	out, v := c.feed(in, l.out[:0], now)
	return c.settle(out, v, now)
}

// turn is the turn of a connection on the ready list: news first, then frames it could not take before.
func (c *conn) turn(now link.Instant) (keep bool) {
	defer c.rescue(&keep)
	out := c.loop.out[:0]
	if c.woken {
		c.woken, c.more = false, true
		c.port.Rearm()
	}
	if c.more {
		c.blocked = false // the Pump may bring the session what it waits for
		var sent bool
		if out, sent, keep = c.pump(out, now); !sent {
			return keep
		}
	}
	v := link.More
	if c.behind && !c.blocked {
		out, v = c.feed(nil, out, now)
	}
	return c.settle(out, v, now)
}

// pump brings out what the session has for its peer, a piece at a time: as long as the socket takes each piece whole and sends it
// on, the next one keeps no reply waiting. The last piece is left in rest, to go out with the replies of the turn. sent false means
// that the connection has left or is closed.
func (c *conn) pump(out []byte, now link.Instant) (rest []byte, sent, keep bool) {
	for range pumpsPerTurn {
		room := c.room()
		out, c.more = c.sess.Pump(out, room, now)
		c.credit -= len(out)
		if len(out) > 0 {
			c.timers.Quiet = now.Mono
		}
		if !c.more {
			return out, true, true
		}
		if sent, keep = c.send(out, false); !sent {
			return nil, false, keep
		}
		if room > 0 {
			c.fullFor = 0
		} else if c.fullFor++; c.fullFor < fullRounds {
			return out[:0], true, true
		} else { // only goroutines can wait for the socket
			return nil, false, c.leave(departing{why: stream.LeftWrite})
		}
		out = out[:0]
	}
	return out, true, true
}

// room returns how many bytes of chunks may be brought. A socket has room for megabytes, and a reply would wait behind what lies in
// it; so it is asked each time half of Limits.ChunkBytes was brought, which is seldom enough to cost nothing.
func (c *conn) room() int {
	most := c.loop.srv.limits.ChunkBytes
	if c.credit <= most/2 {
		n, _ := sock.Unsent(c.fd)
		c.credit = most - n
	}
	return c.credit
}

// feed lends the session what was read, straight from the loop's buffer where nothing waits before it.
func (c *conn) feed(in, out []byte, now link.Instant) ([]byte, link.Verdict) {
	src := in
	if c.carry != nil {
		c.store(in)
		src = c.carry.B[c.off:]
	}
	lent := src
	if c.drainDue {
		lent = src[:min(c.drainAt, len(src))]
	}
	if len(lent) == 0 {
		c.behind = false
		return out, link.More
	}
	used, out, v := c.sess.Feed(lent, out, now)
	poison.Fill(src[:used])
	c.keepRest(src, used)
	c.blocked, c.behind = v == link.Blocked, v == link.Yield || v == link.Blocked
	rest := len(src) - used
	if c.drainDue {
		c.drainAt, rest = c.drainAt-used, 0 // the rest is fed after Drain
	}
	if c.behind {
		rest = 0 // it is us who wait
	} else if most := c.loop.srv.limits.FrameBytes; most > 0 && rest > most+readBuffer {
		v = link.Close // the last net below a session that waits for more than any frame may have
	}
	if !c.fits() && v == link.More && rest > link.OwnInput {
		c.loop.srv.limits.Input.CountRefused()
		out, v = append(out, c.loop.srv.limits.NoRoom...), link.Close
	}
	c.timers.Took(used, rest, now.Mono)
	return out, v
}

// keepRest carries what the session did not take.
func (c *conn) keepRest(src []byte, used int) {
	switch {
	case used == len(src):
		c.dropCarry()
	case c.carry != nil:
		c.off += used
		if rest := len(src) - used; c.loop.srv.limits.Input != nil && cap(c.carry.B) > 2*link.OwnInput && rest <= link.OwnInput { // a long frame is gone
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
		c.fits()
	}
}

// fits charges the carry to the budget of input; false means that the budget has no room for it.
func (c *conn) fits() bool {
	b := c.loop.srv.limits.Input
	if c.carry == nil {
		return b.Fit(&c.charge, 0)
	}
	return b.Fit(&c.charge, cap(c.carry.B))
}

func (c *conn) unread() []byte {
	if c.carry == nil {
		return nil
	}
	return c.carry.B[c.off:]
}

// bounded sends a connection away whose unread bytes pile up.
func (c *conn) bounded() bool {
	l := &c.loop.srv.limits
	switch n := len(c.unread()); {
	case c.blocked && (n > blockedBytes || l.HeldBytes > 0 && l.Full(n, l.Count(c.unread()), false)):
		return c.leave(departing{why: stream.LeftBlocked})
	case n > behindBytes:
		return c.leave(departing{why: stream.LeftBehind})
	}
	return true
}

// settle ends a turn: the one write, then what the verdict asks for.
func (c *conn) settle(out []byte, v link.Verdict, now link.Instant) bool {
	sent, keep := c.send(out, v == link.Close)
	if !sent {
		return keep
	}
	l := c.loop
	if v == link.Close {
		return c.farewell(stream.ReasonProtocol)
	}
	if c.draining {
		if c.drainDue && !c.behind {
			c.tellDrain(now)
		} else if c.loop.srv.gate.Rests(&c.resting, !c.behind && !c.blocked && !c.more && !c.woken && c.sess.Load().Done) {
			return c.farewell(stream.ReasonDrain)
		}
	}
	if c.more || c.behind && !c.blocked {
		l.enqueue(c)
	}
	return true
}

// send ends the loan of the output buffer by offering its bytes to the socket. With sent false the socket did not take them
// all, and the connection has left its loop or is closed.
func (c *conn) send(out []byte, closing bool) (sent, keep bool) {
	n, err := write(c.fd, out)
	c.loop.bytesOut += int64(n)
	if n < len(out) {
		if err != nil && err != unix.EAGAIN {
			return false, c.close(stream.ReasonError)
		}
		keep = c.leave(departing{why: stream.LeftWrite, unsent: out[n:], closing: closing})
	}
	c.loop.giveBack(out)
	return n == len(out), keep
}

// write offers b to the socket once, if there is anything to write; n is never negative.
func write(fd int, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		if n, err = sock.Send(fd, b); err != unix.EINTR {
			return n, err
		}
	}
}

// drain tells the session that the server is shutting down, after the frames already read were served (kernel-ipc §2.7). They
// may wait behind a blocked session too, which unblocks without being told; what comes behind them is later, however soon it comes.
func (c *conn) drain(now link.Instant) (keep bool) {
	defer c.rescue(&keep)
	c.draining = true
	if c.behind {
		c.drainDue, c.drainAt = true, len(c.unread())
		return true
	}
	c.tellDrain(now)
	return true
}

func (c *conn) tellDrain(now link.Instant) {
	c.drainDue = false
	c.sess.Drain(now)
	c.more, c.behind = true, len(c.unread()) > 0
	c.loop.enqueue(c)
}

// lastTurn answers what has come to a connection that rests, and has it part.
func (c *conn) lastTurn(now link.Instant) (keep bool) {
	defer c.rescue(&keep)
	l := c.loop
	out, v, in := l.out[:0], link.More, l.bin()
	for total := 0; total < farewellBytes && v == link.More; {
		n, err := unix.Read(c.fd, in)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		total += n
		l.bytesIn += int64(n)
		out, v = c.feed(in[:n], out, now)
	}
	return c.settle(out, v, now)
}

// inTime closes the connection if one of its timers ran out (kernel-ipc §2.4).
func (c *conn) inTime(now link.Instant) (keep bool) {
	defer c.rescue(&keep)
	pending := c.behind || c.blocked || c.more
	l := &c.loop.srv.limits
	r, late := c.timers.Overdue(l, c.sess.Load(), pending, now.Mono)
	switch {
	case late && r == stream.ReasonFrame && l.LateFrame != "":
		return c.settle(append(c.loop.out[:0], l.LateFrame...), link.Close, now)
	case late:
		return c.close(r)
	}
	return true
}

// rescue is deferred around calls of session methods: a panic closes this connection and no other.
func (c *conn) rescue(keep *bool) {
	if r := recover(); r != nil {
		c.loop.srv.log.Error("panic in a session",
			"conn", c.port.ID(), "remote", c.port.Remote(), "panic", r, "stack", string(debug.Stack()))
		*keep = c.close(stream.ReasonPanic)
	}
}

package stream

import (
	"runtime"

	"trunkline/engine/connection"
)

// Reading ahead (Limits.AheadBytes): while the session is blocked, or its peer does not take its
// replies, the reader goes on reading, into spill, and puts what came behind the rest. So a peer
// that first sends and then reads is not stuck before the limits are reached. Meanwhile the tender
// feeds the session, for the reader is in its Read and the writer in its Write.

// reading is where the bytes go that the reader reads.
type reading uint8

const (
	direct reading = iota // into in, for the session to be fed
	ahead                 // into spill, while the tender owns in
	paused                // nowhere: the limit of bytes kept is reached
)

// readAhead reports whether to read ahead, and lends in to the tender then: what came may be whole
// frames. The caller holds mu; the session may not be fed.
func (c *conn) readAhead() bool {
	l := &c.host.cfg.Limits
	if l.AheadBytes <= 0 || c.Peer != connection.PeerOpen || c.readErr != nil || c.Verdict == connection.Close {
		return false
	}
	c.startTend.Do(func() { c.host.wg.Go(c.tend) }) // the reader is one of the group
	if c.frames < 0 {
		c.frames = l.Count(c.in.unread())
	}
	if l.Full(len(c.in.unread()), c.frames, c.reads == paused) || !c.in.roomAhead() {
		c.reads = paused
		return false
	}
	c.reads = ahead
	if len(c.in.unread()) > 0 {
		c.Kept()
	}
	c.unfed.Store(false)
	if c.roused { // the next to feed calls Drain
		c.unrouse()
		c.DrainAfter(len(c.in.unread()))
	}
	if c.woken.Load() {
		c.nudge()
	}
	return true
}

// keep puts what was read ahead behind what waits.
func (c *conn) keep(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 || c.released || c.Verdict == connection.Close {
		return
	}
	c.in.put(p)
	c.Kept()
	if c.frames >= 0 {
		c.frames += c.host.cfg.Limits.Count(p)
	}
}

// readSpill makes one Read ahead.
func (c *conn) readSpill() (n int, err error) {
	if c.spill == nil {
		c.spill = make([]byte, readMin)
	}
	n, err = c.rwc.Read(c.spill)
	c.keep(c.spill[:n])
	if n == len(c.spill) && n < readKeep {
		c.spill = make([]byte, 2*n)
	}
	return n, err
}

// nudge has the tender look, now or when there is one.
func (c *conn) nudge() {
	select {
	case c.tending <- struct{}{}:
	default:
	}
}

// tend is the tender goroutine, of a connection that has begun to read ahead: it pumps while the
// writer is in its Write, and feeds while the reader is in its Read.
func (c *conn) tend() {
	for {
		select {
		case <-c.tending:
		case <-c.done:
			return
		}
		for c.tendOnce() == connection.DoFeed {
			runtime.Gosched()
		}
	}
}

func (c *conn) tendOnce() (act connection.Action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	act = connection.DoClose // what a panic leaves behind
	if c.released || c.Verdict == connection.Close {
		return act
	}
	if c.inFlight.Load() > 0 && c.woken.Load() && c.roomy() {
		c.out = c.pump(c.out)
	}
	if !c.tendable() || !c.feedable() {
		return connection.DoRead
	}
	return c.give()
}

// tendable reports whether the tender has bytes to feed, or a Drain to call. The caller holds mu.
func (c *conn) tendable() bool {
	return c.reads == ahead && (c.Behind() || c.DrainDue() || len(c.in.unread()) > 0)
}

// roomy reports whether the peer has taken enough for more to be appended. The caller holds mu.
func (c *conn) roomy() bool { return c.unsent() <= c.host.cfg.Limits.UnsentBytes }

// mayFeed wakes the reader or the tender, which may feed the session now. The caller holds mu.
func (c *conn) mayFeed() {
	if c.tendable() || c.woken.Load() {
		c.nudge()
	}
	c.room.Signal()
}

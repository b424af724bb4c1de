package stream

import (
	"runtime"

	"trunkline/engine/link"
)

// Reading ahead (Limits.HeldBytes): while the session is blocked, or its peer does not take its replies, the reader goes on
// reading, into spill, and puts what came behind the rest. So a peer that first sends and then reads is not stuck before the limits
// are reached. Who may feed the session then is the tender, for the reader is in its Read and the writer in its Write.

// mayHold reports whether the reader is to read ahead. The caller holds mu, and the session may not be fed.
func (c *conn) mayHold() bool {
	l := &c.host.cfg.Limits
	if l.HeldBytes <= 0 || c.atEOF || c.readErr != nil || c.closing {
		return false
	}
	if !c.tended {
		c.tended = true
		c.host.wg.Go(c.tend) // the reader is one of the group
	}
	if !c.counted {
		c.counted, c.frames = true, l.Count(c.in.unread())
	}
	c.paused = l.Full(len(c.in.unread()), c.frames, c.paused) || !c.in.mayHold()
	return !c.paused
}

// hold lends in to the tender. What came may be whole frames. The caller holds mu.
func (c *conn) hold() {
	c.holding, c.behind = true, c.behind || len(c.in.unread()) > 0
	c.unfed.Store(false)
	if c.roused { // whoever feeds tells Drain
		c.unrouse()
		c.drainAt = len(c.in.unread())
	}
	if c.woken.Load() {
		c.nudge()
	}
}

// keep puts what was read ahead behind what waits.
func (c *conn) keep(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 || c.released || c.closing {
		return
	}
	c.in.put(p)
	c.behind = true
	if c.counted {
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

// nudge has the tender look, if there is one.
func (c *conn) nudge() {
	select {
	case c.turn <- struct{}{}:
	default:
	}
}

// tend is the tender goroutine, of a connection that has begun to read ahead: it pumps while the writer is in its Write, and feeds
// while the reader is in its Read.
func (c *conn) tend() {
	for {
		select {
		case <-c.turn:
		case <-c.done:
			return
		}
		for c.tendOnce() == link.Yield {
			runtime.Gosched()
		}
	}
}

func (c *conn) tendOnce() (v link.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rescue()
	v = link.Close // what a panic leaves behind
	if c.released || c.closing {
		return v
	}
	if c.flying > 0 && c.woken.Load() && c.roomy() {
		c.out = c.pump(c.out)
	}
	if !c.wanted() || !c.feedable() {
		return link.More
	}
	return c.give()
}

// wanted reports whether the tender has something to feed, or Drain to tell. The caller holds mu.
func (c *conn) wanted() bool {
	return c.holding && (c.behind || c.drainDue || len(c.in.unread()) > 0)
}

// roomy reports whether the peer has taken enough for more to be said. The caller holds mu.
func (c *conn) roomy() bool { return c.unsent() <= c.host.cfg.Limits.UnsentBytes }

// mayGo tells whoever waits to feed the session that it may be possible now. The caller holds mu.
func (c *conn) mayGo() {
	if c.wanted() || c.tended && c.woken.Load() {
		c.nudge()
	}
	c.room.Signal()
}

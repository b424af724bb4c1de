package stream

import (
	"time"

	"trunkline/engine/link"
)

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// drain has the session drain after the frames already read were served (kernel-ipc §2.7). Frames
// may wait behind a blocked session too, which unblocks without a Drain; later frames come after
// it. What a reader in its Read has is not visible here, so the reader calls Drain after that Read;
// where the Read cannot be interrupted, the session is drained here.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	if c.released || c.Draining() {
		return
	}
	switch {
	case c.ahead, c.Behind():
		c.DrainAfter(len(c.in.unread()))
		c.nudge()
	case c.unfed.Load(), c.rouse():
		c.DrainAfter(-1)
	default:
		c.emitDrain(0)
	}
}

// rouse calls the reader out of its Read, or out of its next one, and reports whether it will feed
// the session again. The caller holds mu.
func (c *conn) rouse() bool {
	if c.Peer == link.PeerEOF || c.Verdict == link.Close {
		return false
	}
	d, ok := c.rwc.(readDeadliner)
	c.roused = ok && d.SetReadDeadline(longAgo) == nil
	return c.roused
}

// calledOut reports whether a Read ended because of rouse, and did not fail.
func (c *conn) calledOut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roused || c.released || c.Verdict == link.Close
}

// unrouse lets Reads wait again. The caller holds mu.
func (c *conn) unrouse() {
	if c.roused {
		c.roused = false
		_ = c.rwc.(readDeadliner).SetReadDeadline(time.Time{})
	}
}

// emitDrain drains the session, which has not taken unread bytes. The caller holds mu.
func (c *conn) emitDrain(unread int) {
	c.unrouse()
	c.sess.Drain(c.host.cfg.Now())
	c.Drained(unread)
	c.Wake(c.port)
}

// readDeadliner is a transport whose Read can be interrupted and taken up again.
type readDeadliner interface{ SetReadDeadline(time.Time) error }

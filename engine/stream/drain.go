package stream

import "time"

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// drain tells the session that the server is shutting down, after the frames already read were served (kernel-ipc §2.7). Frames may
// wait behind a blocked session too, which unblocks without being told; what comes behind them is later, however soon it comes.
// Of a reader that is in its Read only itself knows what it has, so it is the one to tell, once it has come round; where it cannot
// be called out, the session is told here.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rescue()
	if c.released || c.draining {
		return
	}
	c.draining = true
	switch {
	case c.holding, c.behind:
		c.drainDue, c.drainAt = true, len(c.in.unread())
		c.nudge()
	case c.unfed.Load(), c.rouse():
		c.drainDue, c.drainAt = true, -1
	default:
		c.tellDrain()
	}
}

// rouse calls the reader out of its Read, or out of its next one, and reports whether it will feed the session again. The
// caller holds mu.
func (c *conn) rouse() bool {
	if c.eofTold || c.closing {
		return false
	}
	d, ok := c.rwc.(readDeadliner)
	c.roused = ok && d.SetReadDeadline(longAgo) == nil
	return c.roused
}

// calledOut tells a Read that ended because of rouse from one that failed.
func (c *conn) calledOut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roused || c.released || c.closing
}

// unrouse lets Reads wait again. The caller holds mu.
func (c *conn) unrouse() {
	if c.roused {
		c.roused = false
		_ = c.rwc.(readDeadliner).SetReadDeadline(time.Time{})
	}
}

// tellDrain is called with mu held.
func (c *conn) tellDrain() {
	c.drainDue = false
	c.unrouse()
	c.sess.Drain(c.host.cfg.Now())
	c.Wake(c.port)
}

// readDeadliner is a transport whose Read can be interrupted and taken up again.
type readDeadliner interface{ SetReadDeadline(time.Time) error }

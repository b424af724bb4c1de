package stream

import "time"

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// drain tells the session that the server is shutting down, after the frames already read were served (kernel-ipc §2.7). Only
// the reader knows what was read, so it is the one to tell, once it has come round; where it cannot be called out of a Read,
// the session is told here. Frames may wait behind a blocked session too, which unblocks without being told.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rescue()
	if c.released || c.draining {
		return
	}
	c.draining = true
	if c.behind || c.unfed.Load() || c.rouse() {
		c.drainDue = true
		return
	}
	c.tellDrain()
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
	return c.roused
}

// tellDrain is called with mu held.
func (c *conn) tellDrain() {
	c.drainDue = false
	if c.roused {
		c.roused = false
		_ = c.rwc.(readDeadliner).SetReadDeadline(time.Time{})
	}
	c.sess.Drain(c.host.cfg.Now())
	c.Wake(c.port)
}

// readDeadliner is a transport whose Read can be interrupted and taken up again.
type readDeadliner interface{ SetReadDeadline(time.Time) error }

package stream

import (
	"runtime"

	"trunkline/engine/internal/poison"
	"trunkline/engine/link"
)

// feed gives the session what the reader has, and returns how the reader goes on: DoRead, DoWait
// where it is to read ahead because the session may not be fed, or DoClose.
func (c *conn) feed() link.Action {
	for {
		if act := c.feedOnce(); act != link.DoFeed {
			return act
		}
		runtime.Gosched() // the writer may need the lock
	}
}

// feedOnce waits until the session may be fed, then feeds it until it asks for more or yields. It
// returns DoClose also when the session is gone.
func (c *conn) feedOnce() (act link.Action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	c.ahead = false
	act = link.DoClose // what a panic leaves behind
	for {
		for !c.released && !c.feedable() {
			if c.mayReadAhead() {
				c.startAhead()
				return link.DoWait
			}
			c.room.Wait()
		}
		if c.released || c.Verdict == link.Close {
			return link.DoClose
		}
		if next := c.give(); next != link.DoWait {
			if next == link.DoRead {
				c.frames, c.paused = -1, false
			}
			return next
		}
	}
}

// feedable reports whether the session may be fed, or is closed. The caller holds mu.
func (c *conn) feedable() bool {
	return c.Verdict == link.Close || c.Verdict != link.Blocked && c.roomy()
}

// give feeds the session once, and drains it when that is due. The caller holds mu.
func (c *conn) give() link.Action {
	now := c.host.cfg.Now()
	all := len(c.in.unread())
	src := c.in.unread()[:c.Lend(all)]
	c.unfed.Store(false)
	if len(src) == 0 {
		return c.fed(0, 0, link.More, now)
	}
	if c.out == nil {
		c.out = c.host.bufs.Get()
	}
	used, out, v := c.sess.Feed(src, c.out.B, now)
	if c.frames >= 0 {
		c.frames -= c.host.cfg.Limits.Count(src[:used])
	}
	poison.Fill(src[:used])
	c.in.take(used)
	c.out.B = out
	if len(out) == 0 {
		c.host.bufs.Put(c.out)
		c.out = nil
	}
	return c.fed(used, all-used, v, now)
}

// fed notes a Feed's outcome. The caller holds mu.
func (c *conn) fed(used, rest int, v link.Verdict, now link.Instant) link.Action {
	act := c.Fed(used, rest, v, now.Mono)
	if c.out != nil || act == link.DoClose || c.Draining() {
		c.ring()
	}
	if act == link.DoDrain {
		c.emitDrain(len(c.in.unread()))
	}
	return c.Next()
}

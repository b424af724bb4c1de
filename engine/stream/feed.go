package stream

import (
	"runtime"

	"trunkline/engine/internal/poison"
	"trunkline/engine/link"
)

// next is what the reader does after it has fed the session.
type next uint8

const (
	readOn    next = iota // into in
	readAhead             // into spill: the session may not be fed
	readNoMore
)

// feed gives the session what the reader holds, and returns how the reader goes on.
func (c *conn) feed() next {
	for {
		switch v, ahead := c.feedOnce(); {
		case ahead:
			return readAhead
		case v == link.Close:
			return readNoMore
		case v == link.More:
			return readOn
		case v == link.Yield:
			runtime.Gosched() // the writer may want the lock
		}
	}
}

// feedOnce waits until the session may be fed, then feeds it once; with ahead the reader is to read
// on meanwhile instead. It returns Close also when the session is gone.
func (c *conn) feedOnce() (v link.Verdict, ahead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.catch()
	c.ahead = false
	v = link.Close // what a panic leaves behind
	for !c.released && !c.feedable() {
		if c.mayReadAhead() {
			c.startAhead()
			return v, true
		}
		c.room.Wait()
	}
	if c.released || c.Verdict == link.Close {
		return link.Close, false
	}
	if v = c.give(); v == link.More {
		c.frames, c.paused = -1, false
	}
	return v, false
}

// feedable reports whether the session may be fed, or is closed. The caller holds mu.
func (c *conn) feedable() bool {
	return c.Verdict == link.Close || c.Verdict != link.Blocked && c.roomy()
}

// give feeds the session once, which may be fed, and returns its verdict: Yield also where frames
// that came after a drain are left. The caller holds mu.
func (c *conn) give() link.Verdict {
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
func (c *conn) fed(used, rest int, v link.Verdict, now link.Instant) link.Verdict {
	act := c.Fed(used, rest, v, now.Mono)
	if c.out != nil || act == link.DoClose || c.Draining() {
		c.ring()
	}
	if act == link.DoDrain {
		c.emitDrain(len(c.in.unread()))
	}
	return c.Verdict
}

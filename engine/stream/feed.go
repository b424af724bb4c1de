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

// feed gives the session what the reader holds, and says how the reader goes on.
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

// feedOnce waits until the session may be fed, then feeds it once; ahead says that the reader is to read on meanwhile instead. It
// returns Close also when there is nobody to feed.
func (c *conn) feedOnce() (v link.Verdict, ahead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rescue()
	c.holding = false
	v = link.Close // what a panic leaves behind
	for !c.released && !c.feedable() {
		if c.mayHold() {
			c.hold()
			return v, true
		}
		c.room.Wait()
	}
	if c.released || c.closing {
		return link.Close, false
	}
	if v = c.give(); v == link.More {
		c.counted, c.paused = false, false
	}
	return v, false
}

// feedable reports whether the session may be fed. The caller holds mu.
func (c *conn) feedable() bool {
	return c.closing || !c.blocked && c.roomy()
}

// give feeds the session once, which may be fed. The caller holds mu.
func (c *conn) give() link.Verdict {
	now := c.host.cfg.Now()
	src := c.in.unread()
	all := len(src)
	if c.drainDue {
		src = c.beforeDrain(src)
	}
	if len(src) == 0 {
		c.settle(0, 0, link.More, now)
		if c.draining {
			c.ring()
		}
		return c.later(link.More)
	}
	if c.out == nil {
		c.out = c.host.bufs.Get()
	}
	used, out, verdict := c.sess.Feed(src, c.out.B, now)
	if c.counted {
		c.frames -= c.host.cfg.Limits.Count(src[:used])
	}
	poison.Fill(src[:used])
	c.in.take(used)
	c.out.B = out
	if c.drainDue {
		c.drainAt -= used
	}
	c.settle(used, all-used, verdict, now)
	if len(out) == 0 {
		c.host.bufs.Put(c.out)
		c.out = nil
	}
	if len(out) > 0 || c.closing || c.draining {
		c.ring()
	}
	return c.later(verdict)
}

// settle notes a Feed's outcome. The caller holds mu.
func (c *conn) settle(used, rest int, v link.Verdict, now link.Instant) {
	c.unfed.Store(false)
	c.blocked, c.behind, c.closing = v == link.Blocked, v == link.Yield || v == link.Blocked, v == link.Close
	if c.behind {
		c.timers.Took(used, 0, now.Mono)
	} else {
		c.timers.Took(used, rest, now.Mono)
	}
}

// beforeDrain returns the part of src that was read before the drain was ordered. The caller holds mu.
func (c *conn) beforeDrain(src []byte) []byte {
	if c.drainAt < 0 { // the reader has come round
		c.drainAt = len(src)
	}
	return src[:min(c.drainAt, len(src))]
}

// later has a session that took what was read before the drain told of it; what came later is fed after that. The caller holds mu.
func (c *conn) later(v link.Verdict) link.Verdict {
	if !c.drainDue || v != link.More {
		return v
	}
	c.tellDrain()
	if c.behind = len(c.in.unread()) > 0; c.behind {
		return link.Yield
	}
	return v
}

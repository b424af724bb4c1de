package stream

import (
	"time"

	"trunkline/engine/link"
)

// TickEvery is how often owners look at their timers: twice per second, because the end of a request may be noticed one tick
// late and its timer one tick later, and both together must stay within the second that kernel-ipc §2.4 allows.
const TickEvery = 500 * time.Millisecond

// janitor closes connections whose timers ran out or whose peer is gone.
func (h *Host) janitor() {
	tick := time.NewTicker(TickEvery)
	defer tick.Stop()
	var conns []*conn
	for {
		select {
		case <-h.stopped:
			return
		case <-tick.C:
		}
		now := h.cfg.Now()
		conns = h.list(conns[:0])
		for _, c := range conns {
			if r, ok := c.overdue(now); ok {
				c.abort(r)
			} else if c.lost() {
				c.abort(ReasonError)
			}
		}
		clear(conns)
	}
}

// lost reports whether the peer of a connection that has ended is gone altogether: nobody reads from such a socket any more, and
// a reset that comes while an answer is outstanding would be noticed only by sending it. Before the session knows of the end
// there may be frames to serve, and the reader notices.
func (c *conn) lost() bool {
	c.mu.Lock()
	ended := c.eofTold && !c.released
	c.mu.Unlock()
	return ended && c.sock.hungUp()
}

// Timers are the times an owner keeps per connection; zero means the timer is off. They travel with a connection that leaves
// its loop.
type Timers struct {
	// Quiet is when the connection last did anything that starts the idle timer anew.
	Quiet int64
	// Frame is when the first byte of the partly read frame came.
	Frame int64
	// Busy is whether the session was busy when last asked.
	Busy bool
}

// Took notes the outcome of a Feed: used bytes taken, rest left of an incomplete frame. It does not allocate.
func (t *Timers) Took(used, rest int, now int64) {
	if used > 0 {
		t.Quiet = now
	}
	switch {
	case rest == 0:
		t.Frame = 0
	case used > 0 || t.Frame == 0:
		t.Frame = now
	}
}

// Overdue reports the read timer that ran out, if any. pending says that output or whole frames wait, so that the silence is
// not the peer's. It does not allocate.
func (t *Timers) Overdue(l *link.Limits, load link.Load, pending bool, now int64) (Reason, bool) {
	if l.FrameWithin > 0 && t.Frame != 0 && now-t.Frame >= l.FrameWithin || load.Until != 0 && now >= load.Until {
		return ReasonFrame, true
	}
	if load.Busy || pending || t.Busy {
		t.Quiet = now
	}
	t.Busy = load.Busy || pending
	if l.IdleAfter > 0 && t.Frame == 0 && now-t.Quiet >= l.IdleAfter {
		return ReasonIdle, true
	}
	return 0, false
}

package stream

import (
	"time"

	"trunkline/engine/link"
)

// TickEvery is how often owners look at their timers: twice per second, because the end of a
// request may be noticed one tick late and its timer one tick later, and both together must stay
// within the second that kernel-ipc §2.4 allows.
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
		h.cfg.OnTick()
		now := h.cfg.Now()
		conns = h.list(conns[:0])
		for _, c := range conns {
			if r, ok := c.overdue(now); ok {
				c.abort(r)
			} else if c.lost() {
				c.abort(link.ReasonError)
			}
		}
		clear(conns)
	}
}

// lost reports whether the peer of a connection that has ended is gone altogether: such a socket is
// not read any more, and a reset that comes while an answer is outstanding would be noticed only by
// sending it. Before Session.EOF there may be frames to serve, and the reader notices.
func (c *conn) lost() bool {
	c.mu.Lock()
	ended := c.Peer == link.PeerEOF && !c.released
	c.mu.Unlock()
	return ended && c.sock.hungUp()
}

package stream

import (
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/link"
)

// sendPiece is how many bytes the socket must take within Limits.SendWithin. Owners do not know where frames end, so the write
// timer of kernel-ipc §2.4 runs per piece: a peer that takes nothing is cut on time, and one that takes at least a piece per
// period is not.
const sendPiece = 64 << 10

// write is the writer goroutine: replies first, then one Pump's worth, one batch at a time.
func (c *conn) write() {
	for {
		batch, r, last := c.collect()
		switch {
		case last:
			if r != reasons {
				c.part(r)
			}
			return
		case batch != nil:
			good := c.send(batch.B)
			c.host.bufs.Put(batch)
			if !good {
				return
			}
		default:
			select {
			case <-c.bell:
			case <-c.done:
				return
			}
		}
	}
}

// collect takes what is to be sent, or tells why nothing ever will be: last with the reason to close for, or with reasons when
// the connection is gone already.
func (c *conn) collect() (batch *bufpool.Buffer, r Reason, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rescue()
	r, last = reasons, true // what a panic leaves behind
	if c.sent(); c.released {
		return nil, reasons, true
	}
	batch, c.out = c.out, nil
	batch = c.pump(batch)
	if batch != nil {
		c.flying = len(batch.B)
		return batch, 0, false
	}
	if c.more { // a Pump that had nothing, yet promises more
		c.ring()
		return nil, 0, false
	}
	r, last = c.finished()
	return nil, r, last
}

// sent notes that the last batch is with the socket. The caller holds mu.
func (c *conn) sent() {
	c.flying, c.sendFrom = 0, 0
	if c.unsent() <= c.host.cfg.Limits.UnsentBytes {
		c.room.Signal()
	}
}

// pump appends news to batch, if there are any, and lets a blocked session be fed again. It returns nil where there is nothing
// to send. The caller holds mu.
func (c *conn) pump(batch *bufpool.Buffer) *bufpool.Buffer {
	woken := c.woken.Swap(false)
	if !woken && !c.more {
		return batch
	}
	if batch == nil {
		batch = c.host.bufs.Get()
	}
	now := c.host.cfg.Now()
	if woken {
		c.port.Rearm()
	}
	before := len(batch.B)
	batch.B, c.more = c.sess.Pump(batch.B, now)
	if len(batch.B) > before {
		c.timers.Quiet = now.Mono
	}
	if woken && c.blocked {
		c.blocked = false
		c.room.Signal()
	}
	if len(batch.B) == 0 {
		c.host.bufs.Put(batch)
		return nil
	}
	return batch
}

// finished reports whether the session has said its last word, and why. The caller holds mu and has nothing to send.
func (c *conn) finished() (Reason, bool) {
	switch {
	case c.closing:
		return ReasonProtocol, true
	case c.eofTold:
		return ReasonEOF, c.sess.Load().Done
	case c.draining && !c.drainDue && !c.behind:
		return ReasonDrain, c.sess.Load().Done
	}
	return 0, false
}

// send writes b and reports whether the connection is still good.
func (c *conn) send(b []byte) bool {
	for len(b) > 0 {
		if !c.sending() {
			return false
		}
		n, err := c.rwc.Write(b[:min(len(b), sendPiece)])
		c.host.cfg.Stats.BytesOut.Add(int64(n))
		if err != nil {
			c.abort(ReasonError)
			return false
		}
		b = b[n:]
		c.took(n)
	}
	return true
}

// sending starts the write timer; it reports false once the connection is gone.
func (c *conn) sending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendFrom = c.host.cfg.Now().Mono
	return !c.released
}

// took lets the reader go on as soon as enough was sent.
func (c *conn) took(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying -= n
	if c.unsent() <= c.host.cfg.Limits.UnsentBytes {
		c.room.Signal()
	}
}

var _ link.Owner = (*conn)(nil)

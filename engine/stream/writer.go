package stream

import (
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/link"
)

const (
	// sendPiece is how many bytes the socket is given at a time: what happens within a Write cannot be seen.
	sendPiece = 16 << 10
	// socketShare is how many bytes may lie unsent in the socket; the rest of Limits.ChunkBytes is for the batch behind it.
	socketShare = 2 * sendPiece
)

// write is the writer goroutine: replies first, then one Pump's worth, one batch at a time.
func (c *conn) write() {
	for {
		if c.hasNews() { // what a full socket cannot send yet is better kept where a reply may go before it
			c.awaitRoom()
		}
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

// hasNews reports whether streams are live and there may be something to send; then the write timer runs.
func (c *conn) hasNews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released || !(c.more || c.woken.Load() || c.out != nil) || !c.sess.Load().Streams {
		return false
	}
	c.startTimer()
	return true
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
	if c.handed { // as much as may stand before a reply
		c.handed = false
	} else {
		batch = c.pump(batch)
	}
	if batch != nil {
		c.flying = len(batch.B)
		c.inFlight.Store(true)
		if c.woken.Load() { // since the pump above: the waker may not have seen that this one cannot pump
			c.nudge()
		}
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
	c.inFlight.Store(false)
	if c.roomy() {
		c.mayGo()
	}
}

// pump appends news to batch, if there are any, and lets a blocked session be fed again, for whatever it waited for may have
// come with them. It returns nil where there is nothing to send. The caller holds mu.
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
	batch.B, c.more = c.sess.Pump(batch.B, c.host.cfg.Limits.ChunkBytes/2, now)
	if len(batch.B) > before {
		c.timers.Quiet = now.Mono
	}
	if c.blocked {
		c.blocked = false
		c.behind = c.behind && !(c.holding && len(c.in.unread()) == 0)
		c.mayGo()
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
		return ReasonDrain, c.host.cfg.Gate.Rests(&c.resting, c.sess.Load().Done)
	}
	return 0, false
}

// send writes b and reports whether the connection is still good.
func (c *conn) send(b []byte) bool {
	for len(b) > 0 {
		good, streams := c.sending()
		if !good {
			return false
		}
		if streams {
			c.awaitRoom()
		}
		n, err := c.rwc.Write(b[:min(len(b), sendPiece)])
		c.host.cfg.Stats.BytesOut.Add(int64(n))
		if err != nil {
			c.abort(ReasonError)
			return false
		}
		c.took(n)
		b = b[n:]
	}
	return true
}

// sending starts the write timer. It reports false once the connection is gone, and whether streams are live.
func (c *conn) sending() (good, streams bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startTimer()
	return !c.released, c.sess.Load().Streams
}

// startTimer starts the write timer unless it runs. The caller holds mu.
func (c *conn) startTimer() {
	if c.sendFrom == 0 {
		c.sendFrom, c.queued = c.host.cfg.Now().Mono, -1
	}
}

// awaitRoom waits while the socket has sent so little of what it took that another piece might make it more than socketShare: it
// would take megabytes, and a reply would wait behind them.
func (c *conn) awaitRoom() {
	if c.credit >= sendPiece {
		return
	}
	n, told := c.sock.unsent()
	if c.credit = socketShare - n; !told || c.credit >= sendPiece {
		return
	}
	n, _ = c.sock.queued()
	c.mu.Lock()
	c.queued = n
	c.mu.Unlock()
	c.sock.awaitWritable()
	c.credit = sendPiece
}

// took notes that the socket has another n bytes: the write timer starts anew, and who feeds the session may go on as soon as
// enough was sent.
func (c *conn) took(n int) {
	c.credit -= n
	now := c.host.cfg.Now().Mono
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendFrom = 0
	c.takes(n, now)
	c.flying -= n
	if c.roomy() {
		c.mayGo()
	}
}

var _ link.Owner = (*conn)(nil)

package stream

import (
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/link"
)

// sendPiece is how many bytes the socket is given at a time. The write timer of kernel-ipc §2.3 runs per frame, and what
// happens within a Write cannot be seen: small frames that share a piece share its time, so a piece is small.
const sendPiece = 16 << 10

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
	batch.B, c.more = c.sess.Pump(batch.B, now)
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
		return ReasonDrain, c.rests(c.sess.Load().Done)
	}
	return 0, false
}

// rests notes whether the session has nothing left to say in a drain, and reports whether the connection is to part. The caller holds
// mu.
func (c *conn) rests(done bool) bool {
	gate := c.host.cfg.Gate
	switch {
	case done && !c.resting:
		gate.Rest()
	case !done && c.resting:
		gate.Stir()
	}
	c.resting = done
	return done && gate.RestIsOver()
}

// send writes b, which ends at a frame boundary, and reports whether the connection is still good.
func (c *conn) send(b []byte) bool {
	for len(b) > 0 {
		if !c.sending() {
			return false
		}
		n, err := c.rwc.Write(b[:c.piece(b)])
		c.host.cfg.Stats.BytesOut.Add(int64(n))
		if err != nil {
			c.abort(ReasonError)
			return false
		}
		c.took(b, n)
		b = b[n:]
	}
	return true
}

// piece returns how much of b to write next: the frames that fit, or a part of a frame that does not.
func (c *conn) piece(b []byte) int {
	l := &c.host.cfg.Limits
	if c.front == 0 {
		c.front = l.Front(b)
	}
	n := c.front
	for n < len(b) {
		next := l.Front(b[n:])
		if n+next > sendPiece {
			break
		}
		n += next
	}
	return min(n, sendPiece)
}

// sending starts the write timer of a frame that has become the first unsent one; it reports false once the connection is gone.
func (c *conn) sending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendFrom == 0 {
		c.sendFrom, c.queued = c.host.cfg.Now().Mono, 0
	}
	return !c.released
}

// took notes that the socket has n bytes of b: the write timer starts anew where they complete a frame, or for any of them
// (Limits.Progress). Who feeds the session may go on as soon as enough was sent.
func (c *conn) took(b []byte, n int) {
	whole := n >= c.front
	if whole {
		c.front = c.host.cfg.Limits.Cut(b[c.front:], n-c.front)
	} else {
		c.front -= n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if whole || n > 0 && c.host.cfg.Limits.Progress {
		c.sendFrom = 0
	}
	c.flying -= n
	if c.roomy() {
		c.mayGo()
	}
}

var _ link.Owner = (*conn)(nil)

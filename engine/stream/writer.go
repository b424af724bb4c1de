package stream

import (
	"trunkline/engine/connection"
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/internal/sock"
)

const (
	// sendPiece is how many bytes one Write is given: what happens within it cannot be seen.
	sendPiece = 16 << 10
	// socketShare is how many bytes may lie unsent in the socket; the rest of Limits.ChunkBytes is
	// for the batch behind it.
	socketShare = 2 * sendPiece
)

// write is the writer goroutine: replies first, then one Pump's worth, one batch at a time. The
// first batch is what a former owner could not send, if anything.
func (c *conn) write(batch *bufpool.Buffer) {
	if batch != nil && !c.sendBatch(batch) {
		return
	}
	for {
		if c.hasNews() { // what a full socket cannot send yet is better kept where a reply may go before it
			c.awaitRoom()
		}
		batch, r, last := c.collect()
		switch {
		case last:
			if r != connection.Reasons {
				c.closeWrite(r)
			}
			return
		case batch != nil:
			if !c.sendBatch(batch) {
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

// hasNews starts the write timer, and returns true, if streams are live and may have chunks.
func (c *conn) hasNews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released || !(c.More || c.woken.Load() || c.out != nil) || !c.sess.Load().Streams {
		return false
	}
	c.startTimer()
	return true
}

// collect takes what is to be sent. With last there never will be anything: r is the reason to
// close for, or connection.Reasons when the connection is gone already.
func (c *conn) collect() (batch *bufpool.Buffer, r connection.Reason, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recoverPanic()
	r, last = connection.Reasons, true // what a panic leaves behind
	if c.sent(); c.released {
		return nil, r, true
	}
	batch, c.out = c.out, nil
	if batch = c.pump(batch); batch != nil {
		c.launch(batch)
		return batch, 0, false
	}
	if c.More { // a Pump that had nothing, yet promises more
		c.ring()
		return nil, 0, false
	}
	r, last = c.host.Gate.Finished(&c.State, c.sess, false)
	return nil, r, last
}

// launch notes that the writer sends batch. The caller holds mu, or has c for itself.
func (c *conn) launch(batch *bufpool.Buffer) {
	c.inFlight.Store(int64(len(batch.B)))
	if c.woken.Load() { // since the last pump: Wake may not have seen that the writer cannot pump
		c.nudge()
	}
}

// sent notes that the last batch is with the socket. The caller holds mu.
func (c *conn) sent() {
	c.sendFrom = 0
	c.inFlight.Store(0)
	if c.roomy() {
		c.mayFeed()
	}
}

// pump appends what the session has from elsewhere to batch, and lets a blocked session be fed
// again. It returns nil where there is nothing to send. The caller holds mu.
func (c *conn) pump(batch *bufpool.Buffer) *bufpool.Buffer {
	woken := c.woken.Swap(false)
	if !woken && !c.More {
		return batch
	}
	if batch == nil {
		batch = c.host.bufs.Get()
	}
	now := c.host.cfg.Now()
	if woken {
		c.port.Rearm()
	}
	before, blocked, unread := len(batch.B), c.Verdict == connection.Blocked, 0
	var more bool
	batch.B, more = c.sess.Pump(batch.B, c.host.cfg.Limits.ChunkBytes/2, now)
	if blocked { // otherwise in is the reader's
		unread = len(c.in.unread())
	}
	c.Pumped(len(batch.B)-before, unread, more, now.Mono)
	if blocked {
		c.mayFeed()
	}
	if len(batch.B) == 0 {
		c.host.bufs.Put(batch)
		return nil
	}
	return batch
}

// sendBatch sends batch, returns it to its pool, and reports whether the connection is still good.
func (c *conn) sendBatch(batch *bufpool.Buffer) bool {
	defer c.host.bufs.Put(batch)
	return c.send(batch.B)
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
		c.host.Stats.BytesOut.Add(int64(n))
		if err != nil {
			c.abort(connection.ReasonError)
			return false
		}
		c.took(n)
		b = b[n:]
	}
	return true
}

// sending starts the write timer. good is false once the connection is gone.
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

// awaitRoom waits while the socket has sent so little of what it took that another piece might make
// it more than socketShare: it would take megabytes, and a reply would wait behind them.
func (c *conn) awaitRoom() {
	if c.credit >= sendPiece {
		return
	}
	n, known := c.sock.ask(sock.Unsent)
	if c.credit = socketShare - n; !known || c.credit >= sendPiece {
		return
	}
	n, _ = c.sock.ask(sock.Queued)
	c.mu.Lock()
	c.queued = n
	c.mu.Unlock()
	c.sock.awaitWritable()
	c.credit = sendPiece
}

// took notes that the socket has another n bytes: the write timer starts again, and the session may
// be fed again as soon as enough was sent.
func (c *conn) took(n int) {
	c.credit -= n
	now := c.host.cfg.Now().Mono
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendFrom = 0
	c.Out += int64(n)
	c.takes(n, now)
	c.inFlight.Add(int64(-n))
	if c.roomy() {
		c.mayFeed()
	}
}

var _ connection.Owner = (*conn)(nil)

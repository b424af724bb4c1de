package loadgen

import (
	"net"
	"slices"
)

// batchBytes is how much one write holds: enough for a full pipeline of small requests, less than a
// socket's buffer.
const batchBytes = 32 << 10

// write sends what is due until all requests of the connection have ended (lost is false) or the
// transport ends.
func (c *conn) write(nc net.Conn, ended <-chan struct{}) (lost bool) {
	for {
		n, over, drained := c.fill()
		if n > 0 {
			c.writing.Store(max(c.g.now(), 1))
			_, err := nc.Write(c.out)
			c.writing.Store(0)
			if err != nil {
				return true
			}
			c.wrote()
			continue
		}
		if over || drained {
			return drained
		}
		select {
		case <-c.wake:
		case <-ended:
			return true
		}
	}
}

// wrote notes that the transport took everything: from now on it is the generator that may be late.
func (c *conn) wrote() {
	now := c.g.now()
	c.mu.Lock()
	c.ready = max(c.ready, now)
	c.mu.Unlock()
}

// fill puts the requests that are due and have a place into out. It returns how many, whether all
// requests have ended, and whether the server drains and has answered what is on the transport.
func (c *conn) fill() (n int, over, drained bool) {
	now := c.g.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:0]
	if cap(c.out) > 4*batchBytes {
		c.out = nil
	}
	if c.closing || c.draining {
		return 0, false, c.draining && c.places.live == 0 // what is sent now would be lost
	}
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	c.giveUpUnsent(now, ErrorTimeout)
	n = c.sendAgain()
	for len(c.out) < batchBytes {
		if c.places.full() {
			c.starved = c.g.due(c.next, now)
			break
		}
		start, ok := c.g.claim(c.next, now)
		if !ok {
			break
		}
		c.send(start, now)
		n++
	}
	return n, n == 0 && c.places.live == 0 && c.exhausted(now), false
}

// send appends the next request, which was due at start. Both locks are held; it does not allocate
// in a steady state.
func (c *conn) send(start, now int64) {
	g := c.g
	c.write1(c.next, start)
	c.next += g.stride
	a := c.account(start)
	a.Sent++
	if g.table != nil {
		by := now - max(start, c.ready)
		if by > int64(lagTolerance) {
			a.behind++
		}
		a.longest = max(a.longest, by)
	}
}

// write1 appends request seq, which was due at start. Both locks are held.
func (c *conn) write1(seq, start int64) {
	g := c.g
	share := g.mix.pick(seq)
	stamp := c.stamps & (1<<(idBits-idPlaceBits) - 1)
	c.stamps++
	at := c.places.take(start, stamp, uint8(share))
	c.places.all[at].seq = seq
	r := request{id: stamp<<idPlaceBits | uint64(at), seq: seq, conn: c.index, secret: g.secret, owned: c.owned}
	before := len(c.out)
	c.out = g.messages[share].append(c.out, &r)
	c.shard.inFlight++
	c.account(start).Bytes.Sent += int64(len(c.out) - before)
}

// expire ends requests that waited too long to be sent.
func (c *conn) expire(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	c.giveUpUnsent(c.g.now(), why)
}

// giveUpUnsent ends the requests that were due a timeout ago and are not on their way. Both locks
// are held.
func (c *conn) giveUpUnsent(now int64, why string) {
	g := c.g
	c.again = slices.DeleteFunc(c.again, func(f flight) bool {
		old := f.start <= now-g.timeout
		if old {
			c.timeOut(f.start, f.share, why)
		}
		return old
	})
	if g.table == nil {
		return
	}
	for c.next < g.table.last {
		start := g.table.at(c.next)
		if start > now-g.timeout {
			return
		}
		c.timeOut(start, uint8(g.mix.pick(c.next)), why)
		c.next += g.stride
	}
}

// exhausted reports whether the connection has nothing left to send, now and later.
func (c *conn) exhausted(now int64) bool {
	switch {
	case len(c.again) > 0:
		return false
	case c.g.table != nil:
		return c.next >= c.g.table.last
	}
	return now >= c.g.end || c.g.tickets.Load() <= 0
}

// codeDraining is how a server refuses a request without having looked at it, because it drains
// (kernel-ipc §2.7). With Plan.Resend such a reply is the end of its transport.
const codeDraining = "UNAVAILABLE"

// postpone keeps a request for the next transport. There are never more of them than places. Both
// locks are held.
func (c *conn) postpone(f *flight) {
	c.again = append(c.again, *f)
	c.account(f.start).Resent++
}

// sendAgain appends what was postponed, and returns how much. Both locks are held.
func (c *conn) sendAgain() (n int) {
	for len(c.again) > n && len(c.out) < batchBytes && !c.places.full() {
		c.write1(c.again[n].seq, c.again[n].start)
		n++
	}
	c.again = slices.Delete(c.again, 0, n)
	return n
}

// sweep ends what has been in flight for too long, and a transport that takes nothing.
func (c *conn) sweep(now int64) {
	c.mu.Lock()
	c.shard.mu.Lock()
	for at := c.places.oldest(); at != none; at = c.places.oldest() {
		f := &c.places.all[at]
		if f.start > now-c.g.timeout {
			break
		}
		c.timeOut(f.start, f.share, ErrorTimeout)
		c.shard.inFlight--
		c.places.giveUp(at)
	}
	c.shard.mu.Unlock()
	if since := c.writing.Load(); since > 0 && since < now-c.g.timeout && c.nc != nil {
		c.nc.Close()
	}
	idle := c.starved || c.places.live == 0
	if c.starved && !c.places.full() {
		c.starved, c.ready = false, now // until now it was the server that kept the places
	}
	c.mu.Unlock()
	if idle {
		c.nudge()
	}
}

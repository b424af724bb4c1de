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
			c.mu.Lock()
			c.ready = max(c.ready, c.g.now()) // any later delay is the generator's
			c.mu.Unlock()
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
	for len(c.again) > n && len(c.out) < batchBytes && !c.places.full() { // what was postponed comes first
		c.write1(c.again[n].seq, c.again[n].start)
		n++
	}
	c.again = slices.Delete(c.again, 0, n)
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

// flight is a request on its way: a place of a connection.
type flight struct {
	start      int64  // when it was due, in nanoseconds of the run
	seq        int64  // its number in the run
	stamp      uint64 // of its id, so that a late reply to the place's earlier request is known
	prev, next int16  // in the order sent; none at the ends
	share      uint8
	state      flightState
}

type flightState uint8

const (
	empty flightState = iota
	flying
	overdue // given up, but its reply is still to come: only where replies are matched by their order
)

const none = -1

// places are the requests in flight on one connection: at most as many as it is deep. Those in use
// are linked in the order sent, so that the oldest is at hand. With inOrder the place of a request
// that timed out is kept until its reply comes, for the replies behind it are found by counting.
type places struct {
	all        []flight
	unused     []int16
	head, tail int16
	live       int // requests flying
	inOrder    bool
}

func newPlaces(depth int, inOrder bool) places {
	p := places{all: make([]flight, depth), inOrder: inOrder}
	p.clear()
	return p
}

// clear makes all places free.
func (p *places) clear() {
	p.head, p.tail, p.live = none, none, 0
	p.unused = p.unused[:0]
	for i := len(p.all) - 1; i >= 0; i-- {
		p.all[i].state = empty
		p.unused = append(p.unused, int16(i))
	}
}

func (p *places) full() bool { return len(p.unused) == 0 }

// take fills a free place, of which there must be one.
func (p *places) take(start int64, stamp uint64, share uint8) (at int16) {
	last := len(p.unused) - 1
	at = p.unused[last]
	p.unused = p.unused[:last]
	p.all[at] = flight{start: start, stamp: stamp, share: share, state: flying, prev: p.tail, next: none}
	if p.tail == none {
		p.head = at
	} else {
		p.all[p.tail].next = at
	}
	p.tail = at
	p.live++
	return at
}

// find returns the place that a reply belongs to; none if it has been given up.
func (p *places) find(place int, stamp uint64) int16 {
	if place >= len(p.all) || p.all[place].state != flying || p.all[place].stamp != stamp {
		return none
	}
	return int16(place)
}

// free ends a request and makes its place free.
func (p *places) free(at int16) {
	f := &p.all[at]
	if f.state == flying {
		p.live--
	}
	f.state = empty
	if f.prev == none {
		p.head = f.next
	} else {
		p.all[f.prev].next = f.next
	}
	if f.next == none {
		p.tail = f.prev
	} else {
		p.all[f.next].prev = f.prev
	}
	p.unused = append(p.unused, at)
}

// giveUp ends a request whose reply may still come.
func (p *places) giveUp(at int16) {
	if !p.inOrder {
		p.free(at)
		return
	}
	p.all[at].state = overdue
	p.live--
}

// oldest returns the request that flies longest; none if none flies.
func (p *places) oldest() int16 {
	at := p.head
	for at != none && p.all[at].state != flying {
		at = p.all[at].next
	}
	return at
}

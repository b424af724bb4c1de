package loadgen

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection to the server, over all the transports it has had. Its writer goroutine
// (serve) sends what is due and connects again, one reader goroutine per transport takes replies.
type conn struct {
	g     *generator
	index int64
	shard *shard
	owned string        // the thread or the project, where the mix asks for one
	wake  chan struct{} // one slot: there may be something to do for the writer

	next    int64  // request it sends next; the writer's
	stamps  uint64 // ids given; the writer's
	out     []byte // the writer's
	backoff time.Duration

	writing atomic.Int64 // since when a write is under way, in nanoseconds of the run; 0: none

	mu       sync.Mutex
	nc       net.Conn // nil while there is none
	places   places
	starved  bool     // something is due and there is no place for it
	ready    int64    // since when there are places, and a transport
	closing  bool     // the server announced that it closes: nothing more is sent
	draining bool     // the server refuses what is sent on this transport
	again    []flight // what goes out once more, on the next transport (Plan.Resend)
	alive    bool     // this transport has brought a reply
	words    []byte   // the error of the connection: that of the requests that are lost with it

	reply reply // the reader's: it would be allocated per read otherwise
}

// How a lost connection is made again: the pause doubles from the first to the last of these until
// a reply comes.
const (
	firstBackoff = 10 * time.Millisecond
	lastBackoff  = time.Second
	// dialTimeout bounds one attempt to connect, and greeting the server.
	dialTimeout = 5 * time.Second
)

// nudge wakes the writer, now or when it next waits. It does not block.
func (c *conn) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// serve uses one transport until it or the run ends; lost reports that it was the transport.
func (c *conn) serve(nc net.Conn) (lost bool) {
	c.mu.Lock()
	c.nc, c.ready = nc, c.g.now()
	c.closing, c.draining, c.alive, c.words = false, false, false, c.words[:0]
	if c.g.stopped.Load() {
		nc.Close()
	}
	c.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.read(nc)
	}()
	lost = c.write(nc, over)
	nc.Close()
	<-over
	c.detach(lost)
	return lost
}

// detach ends what was in flight on a transport that is gone.
func (c *conn) detach(lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc = nil
	c.writing.Store(0)
	stopped := c.g.stopped.Load()
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	if lost && !stopped && (!c.closing && !c.draining || c.places.live > 0) {
		c.account(c.g.now()).Lost++
	}
	for at := c.places.oldest(); at != none; at = c.places.oldest() {
		f := &c.places.all[at]
		switch {
		case stopped:
		case c.g.plan.Resend:
			c.postpone(f)
		case len(c.words) > 0:
			fail(c.account(f.start), f.share, c.words)
		default:
			fail(c.account(f.start), f.share, ErrorLost)
		}
		c.shard.inFlight--
		c.places.free(at)
	}
	c.places.clear()
	if c.alive {
		c.backoff = 0
	}
}

// reconnect connects until it succeeds. Nil: the run has ended, or every request of the connection.
func (c *conn) reconnect(ctx context.Context) net.Conn {
	over := c.g.end // when it has nothing to wait for any more: its last request has timed out
	if t := c.g.table; t != nil {
		over = t.at(t.last-1) + c.g.timeout
	}
	for at := uint64(0); ; at++ {
		c.expire(ErrorUnconnected)
		if c.exhausted(c.g.now()) {
			return nil
		}
		if at > 0 || !c.closing { // an end that was announced is no reason to wait
			c.backoff = min(max(2*c.backoff, firstBackoff), lastBackoff)
			// A server that comes back should not meet all connections at once.
			wait := c.backoff/2 + time.Duration(scramble(at+uint64(c.index)<<32)%uint64(c.backoff))
			if !pause(ctx, max(min(wait, time.Duration(over-c.g.now())), time.Millisecond)) {
				return nil
			}
		}
		if nc, _, err := c.g.connect(ctx); err == nil {
			c.expire(ErrorUnconnected)
			return nc
		}
	}
}

// pause waits; false: the run was stopped meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// read takes replies until the transport ends.
func (c *conn) read(nc net.Conn) {
	defer nc.Close() // a writer that waits for the server to take its bytes must not wait for ever
	d := newDialect(c.g.plan.Target.Protocol)
	buf := make([]byte, readBuffer)
	have := 0
	for {
		n, err := nc.Read(buf[have:])
		now := c.g.now()
		have += n
		used, need, bad := c.take(d, buf[:have], n, errors.Is(err, io.EOF), now)
		if bad == nil && err == nil {
			have = copy(buf, buf[used:have])
			buf, bad = resize(buf, have, need)
		}
		if bad != nil && bad != errFinal {
			c.setError(errorProtocol)
		}
		if bad != nil || err != nil {
			return
		}
	}
}

// The sizes of a read buffer, in bytes: that of its beginning, and the one above which it is given
// back once it is empty.
const (
	readBuffer = 4 << 10
	keptBuffer = 64 << 10
)

// resize makes room for a reply of need bytes, of which have are there.
func resize(buf []byte, have, need int) ([]byte, error) {
	switch {
	case need > maxReply || have >= maxReply:
		return buf, errTooLarge
	case need > len(buf) || have == len(buf):
		larger := make([]byte, max(need, min(2*len(buf), maxReply)))
		copy(larger, buf[:have])
		return larger, nil
	case have == 0 && len(buf) > keptBuffer:
		return make([]byte, keptBuffer), nil
	}
	return buf, nil
}

// setError sets the error of the requests in flight for when the transport is closed.
func (c *conn) setError(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.words = append(c.words[:0], why...)
}

// take counts the replies in the bytes read, of which fresh are new; with ended nothing follows.
func (c *conn) take(d dialect, in []byte, fresh int, ended bool, now int64) (used, need int, err error) {
	r := &c.reply
	c.mu.Lock()
	c.shard.mu.Lock()
	c.account(now).Bytes.Received += int64(fresh)
	for used < len(in) {
		var n int
		if n, need, err = d.next(in[used:], ended, r); n == 0 || err != nil {
			break
		}
		used += n
		if c.end(r, now); c.closing {
			err = errFinal
			break
		}
	}
	c.shard.mu.Unlock()
	finished := c.places.live == 0 && (c.draining || c.exhausted(now))
	hungry := c.starved
	if hungry {
		c.starved, c.ready = false, now
	}
	c.mu.Unlock()
	if hungry || finished {
		c.nudge()
	}
	return used, need, err
}

// end ends the request that a reply belongs to. Both locks are held; it does not allocate for a
// success.
func (c *conn) end(r *reply, now int64) {
	c.closing = c.closing || r.final
	switch {
	case r.none:
		return
	case r.stray:
		c.words = append(c.words[:0], r.code...)
		return
	}
	at := c.places.head
	if !c.places.inOrder {
		at = c.places.find(int(r.id&(1<<idPlaceBits-1)), r.id>>idPlaceBits)
	}
	drains := c.g.plan.Resend && !r.ok && string(r.code) == codeDraining
	c.alive = c.alive || !drains
	c.draining = c.draining || drains
	if at == none || c.places.all[at].state == overdue {
		c.account(now).Late++
		if at != none {
			c.places.free(at)
		}
		return
	}
	f := &c.places.all[at]
	a := c.account(f.start)
	switch latency := now - f.start; {
	case drains:
		c.postpone(f)
	case latency >= c.g.timeout:
		// It came before the timer, but too late all the same.
		a.Late++
		c.timeOut(f.start, f.share, ErrorTimeout)
	case r.ok:
		a.Done++
		a.Methods[f.share].Done++
		a.observe(f.share, latency)
	default:
		a.observe(f.share, latency)
		fail(a, f.share, r.code)
	}
	c.shard.inFlight--
	c.places.free(at)
}

// account is that of what was due, or happened, at a time. The lock of the shard is held.
func (c *conn) account(at int64) *account {
	if at < c.g.warm {
		return c.shard.accounts[warming]
	}
	return c.shard.accounts[measuring]
}

// timeOut ends a request that was due a timeout ago. The lock of the shard is held.
func (c *conn) timeOut(start int64, share uint8, why string) {
	a := c.account(start)
	a.observe(share, c.g.timeout)
	fail(a, share, why)
}

package stream

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/internal/sock"
)

const (
	// checkMin is how soon a lingering connection is checked again, at first: the next time takes
	// twice as long, up to TickEvery.
	checkMin = int64(5e6)
	// quietWithin is how long a lingering connection whose peer has everything still takes and
	// drops what that peer sends: on some systems a reset destroys what was not read yet.
	quietWithin = int64(lingerWithin)
)

// delivery is the wait of a connection whose last bytes the socket has taken and whose session is
// gone. The socket has bytes before the peer has them: closing a socket with unread bytes resets
// it, and so do bytes that come later, and a reset destroys what is under way to the peer. So the
// sending side is shut down, what comes is dropped, and the socket is closed when its peer has
// ended too, or has everything, or took too long. The reader sees the first of these, over the
// others. All times are connection.Instant.Mono.
type delivery struct {
	within int64 // Limits.LingerWithin
	until  int64
	next   int64 // when to check again
	wait   int64
	left   int   // bytes the peer did not have at the last check
	has    int64 // when the peer was first seen to have everything, 0 before
	heard  atomic.Bool
}

// begin starts the time.
func (d *delivery) begin(l *connection.Limits, now int64) {
	d.within = l.LingerWithin()
	d.until, d.wait = now+d.within, checkMin
}

// over reports whether the connection may be closed; undelivered and known are those of
// sock.Undelivered. It does not allocate.
func (d *delivery) over(undelivered int, known bool, now int64) bool {
	d.wait = min(2*d.wait, int64(TickEvery))
	if known && undelivered > 0 {
		if undelivered < d.left {
			d.until = now + d.within
		}
		d.left = undelivered
	}
	d.next = min(now+d.wait, d.until)
	switch {
	case now >= d.until:
		return true
	case !known || undelivered > 0:
		return false
	case d.has == 0:
		d.has = now
	}
	return !d.heard.Swap(false) || now-d.has >= quietWithin
}

// closeWrite closes a connection whose output was all sent: the session ends, and the socket is
// closed once the peer has everything. Where too many linger it is closed at once.
func (c *conn) closeWrite(r connection.Reason) {
	gate := c.host.Gate
	_, can := c.rwc.(writeCloser)
	can = can && gate.BeginLinger()
	c.mu.Lock()
	first := c.release(r)
	c.mu.Unlock()
	if can && first {
		c.awaitDelivery()
		return
	}
	_ = c.rwc.Close()
	if can {
		gate.EndLinger()
	}
}

// Linger closes a connection of another owner, whose session is gone and whose output the socket
// has taken, once the peer has it; the owner has called Gate.BeginLinger. It does not wait.
func (h *Host) Linger(nc net.Conn, p *connection.Port, s connection.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = nc.Close()
		h.Gate.EndLinger()
		return
	}
	c := h.bareConn(nc, p)
	c.State = s
	h.wg.Go(func() {
		defer close(c.ended)
		c.discard()
	})
	h.wg.Go(c.awaitDelivery)
}

// endWriting shuts the sending side down; below TLS, whose own end is no end of the TCP stream,
// that of the socket too.
func (c *conn) endWriting() bool {
	if c.rwc.(writeCloser).CloseWrite() != nil {
		return false
	}
	if below, ok := c.rwc.(interface{ NetConn() net.Conn }); ok {
		if w, ok := below.NetConn().(writeCloser); ok {
			_ = w.CloseWrite()
		}
	}
	return true
}

// awaitDelivery shuts the sending side down and closes the socket as soon as it may be closed. The
// reader drops what comes meanwhile.
func (c *conn) awaitDelivery() {
	defer c.host.Gate.EndLinger()
	defer c.rwc.Close()
	c.host.lingering(c, true)
	defer c.host.lingering(c, false)
	if !c.endWriting() {
		return
	}
	now := c.host.cfg.Now().Mono
	c.delivery.begin(&c.host.cfg.Limits, now)
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-c.host.stopped:
			return
		case <-look.C:
		}
		now = c.host.cfg.Now().Mono
		n, known := c.sock.ask(sock.Undelivered)
		if c.delivery.over(n, known, now) {
			return
		}
		look.Reset(max(time.Duration(c.delivery.next-now), time.Millisecond))
	}
}

// discard reads, below TLS, until the transport is closed or its peer ends.
func (c *conn) discard() {
	var from io.Reader = c.rwc
	if w, ok := c.rwc.(interface{ NetConn() net.Conn }); ok {
		from = w.NetConn()
	}
	c.mu.Lock()
	c.unrouse()
	c.mu.Unlock()
	c.dropInput()
	sink := make([]byte, readMin)
	for {
		n, err := from.Read(sink)
		if n > 0 {
			c.delivery.heard.Store(true)
		}
		if err != nil {
			return
		}
	}
}

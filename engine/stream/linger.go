package stream

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"trunkline/engine/link"
)

const (
	// lookMin is how soon a parting connection is looked at again, at first: the next time takes twice as long, up to TickEvery.
	lookMin = int64(5e6)
	// quietWithin is how long a parting connection whose peer has everything still takes and drops what that peer sends: some systems
	// drop what a program has not read yet when a reset comes.
	quietWithin = int64(lingerWithin)
)

// Linger is the end of a connection whose last bytes the socket has taken and whose session is gone. "The socket took it" is not "the
// peer has it": closing a socket with unread bytes resets it, and so does what comes later, and a reset destroys what is under way to
// the peer. So the sending side is shut down, what comes is dropped, and the socket is closed when its peer has ended too, or has
// everything, or took too long. The first of these is the owner's to see, the others are Over's. All times are link.Instant.Mono.
type Linger struct {
	within int64 // Limits.PartWithin
	until  int64
	next   int64 // when to look again
	wait   int64
	left   int   // bytes the peer did not have at the last look
	has    int64 // when the peer was first seen to have everything, 0 before
	heard  atomic.Bool
}

// Begin starts the time.
func (p *Linger) Begin(l *link.Limits, now int64) {
	p.within = l.PartWithin()
	p.until, p.wait, p.next = now+p.within, lookMin, now+lookMin
	p.left, p.has = 0, 0
}

// Heard notes that the peer still sends.
func (p *Linger) Heard() { p.heard.Store(true) }

// Due reports whether to look at the connection. It does not allocate.
func (p *Linger) Due(now int64) bool { return now >= p.next }

// Next returns when to look at the connection next.
func (p *Linger) Next() int64 { return p.next }

// Over reports whether the connection may be closed, undelivered being what sock.Undelivered says of its socket. It does not allocate.
func (p *Linger) Over(undelivered int, told bool, now int64) bool {
	p.wait = min(2*p.wait, int64(TickEvery))
	if told && undelivered > 0 {
		if undelivered < p.left {
			p.until = now + p.within
		}
		p.left = undelivered
	}
	p.next = min(now+p.wait, p.until)
	switch {
	case now >= p.until:
		return true
	case !told || undelivered > 0:
		return false
	case p.has == 0:
		p.has = now
	}
	return !p.heard.Swap(false) || now-p.has >= quietWithin
}

// closeWrite closes a connection whose output was all sent: the session ends, the sending side is shut
// down, and the socket is closed once the peer has it all (Linger). Where too many linger it is closed at
// once.
func (c *conn) closeWrite(r link.Reason) {
	gate := c.host.cfg.Gate
	_, can := c.rwc.(writeCloser)
	if can = can && gate.BeginLinger(); can {
		defer gate.EndLinger()
	}
	c.mu.Lock()
	first := c.release(r)
	c.mu.Unlock()
	if can && first && c.endWriting() {
		c.awaitDelivery()
	}
	_ = c.rwc.Close()
}

// endWriting tells the peer that nothing more comes; below TLS, whose own word for that is no end of the stream, the socket does too.
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

// awaitDelivery waits until the socket may be closed. The reader drops what comes meanwhile.
func (c *conn) awaitDelivery() {
	now := c.host.cfg.Now().Mono
	c.linger.Begin(&c.host.cfg.Limits, now)
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
		n, known := c.sock.undelivered()
		if c.linger.Over(n, known, now) {
			return
		}
		look.Reset(max(time.Duration(c.linger.Next()-now), time.Millisecond))
	}
}

// discard reads until the transport is closed or its peer ends. Below TLS nobody needs to know what comes.
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
			c.linger.Heard()
		}
		if err != nil {
			return
		}
	}
}

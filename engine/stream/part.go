package stream

import (
	"io"
	"net"
	"time"
)

// part closes a connection whose output was all sent: the session ends, the peer is told that nothing more comes, and the socket
// is closed once the peer has it all (see Parting). Where there are too many that part it is closed at once.
func (c *conn) part(r Reason) {
	gate := c.host.cfg.Gate
	_, can := c.rwc.(writeCloser)
	if can = can && gate.Part(); can {
		defer gate.Parted()
	}
	c.mu.Lock()
	first := c.release(r)
	c.mu.Unlock()
	if can && first && c.endWriting() {
		c.linger()
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

// linger waits until the socket may be closed. The reader drops what comes meanwhile.
func (c *conn) linger() {
	now := c.host.cfg.Now().Mono
	c.parting.Begin(&c.host.cfg.Limits, now)
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
		n, told := c.sock.undelivered()
		if c.parting.Over(n, told, now) {
			return
		}
		look.Reset(max(time.Duration(c.parting.Next()-now), time.Millisecond))
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
			c.parting.Heard()
		}
		if err != nil {
			return
		}
	}
}

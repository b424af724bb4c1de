// Package httpd is what the HTTP servers of the protocols share: bounded listeners, the lists of
// their connections, how a connection ends, and what net/http takes and no server should.
package httpd

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection that gives its slot back when it is closed, once.
type Conn struct {
	net.Conn
	from     *Listener // nil: it has no slot
	reserved bool      // its slot is one of Config.Reserved
	once     sync.Once
	slow     atomic.Bool // Close lingers: the peer may still be sending
	entry                // what a book shows of it
	stall                // whether it may be closed for another one
	framing
}

// LingerAtEnd has the first Close linger, unless the server was stopped by then.
func (c *Conn) LingerAtEnd() { c.slow.Store(true) }

// Close closes the connection; the slot is free afterwards, so that the bound counts open sockets.
func (c *Conn) Close() error {
	if c.slow.CompareAndSwap(true, false) && (c.from == nil || c.from.stopped == nil || !c.from.stopped.Load()) {
		c.Linger()
	}
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.from != nil {
			c.from.give(c)
		}
		c.leave(c)
	})
	return err
}

// CloseWrite ends the sending direction, where the transport can. net/http uses it, too.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// LocalAddr returns the address that the client connected to. Of a client that another node has
// forwarded only its own address is known: it is on loopback if both are.
func (c *Conn) LocalAddr() net.Addr {
	remote := c.RemoteAddr()
	switch remote.(type) {
	case nil, *net.TCPAddr, *net.UnixAddr:
		return c.Conn.LocalAddr()
	}
	if at, err := netip.ParseAddrPort(remote.String()); err == nil && at.Addr().Unmap().IsLoopback() {
		return net.TCPAddrFromAddrPort(at)
	}
	return remote
}

// lingerTimeout and lingerBytes bound how long Linger reads.
const (
	lingerTimeout = time.Second
	lingerBytes   = 32 << 20
)

// Linger ends the sending direction and reads on until the peer closes, or for a bounded time:
// closing with unread bytes would reset the connection and destroy the last reply.
func (c *Conn) Linger() {
	c.lingers.Store(true)
	_ = c.CloseWrite()
	if c.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
}

// Package conns bounds and closes the connections of HTTP servers.
package conns

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Conn is a connection that gives its slot back when it is closed, once.
type Conn struct {
	net.Conn
	from     *Listener // nil: it has no slot
	reserved bool      // its slot is one of Listener.Reserve
	once     sync.Once
	entry    // what a book shows of it
	stall    // whether it may be closed for another one
	framing
}

// Close closes the connection; the slot is free afterwards, so that the bound counts open sockets.
func (c *Conn) Close() error {
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

// HeaderBytes is the size of the header fields as "Name: value" and a line end each. net/http's own
// limit lets up to 4 KiB more pass and counts the request line too.
func HeaderBytes(r *http.Request) int {
	n := len("Host: ") + len(r.Host) + len("\r\n")
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}

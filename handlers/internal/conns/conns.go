// Package conns bounds and closes the connections of HTTP servers.
package conns

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener is a listener with a bound on its open connections. At the bound it stops accepting: new
// ones wait in the system's backlog until a connection closes.
type Listener struct {
	net.Listener
	book   *Book
	addr   string
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Limit returns ln with a bound: at most so many connections are open at once.
func Limit(ln net.Listener, most int) *Listener {
	return &Listener{Listener: ln, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Limit is the function Limit for a listener whose connections the book lists.
func (b *Book) Limit(ln net.Listener, most int) *Listener {
	l := Limit(ln, most)
	l.book, l.addr = b, ln.Addr().String()
	return l
}

// Accept waits for a free slot, then for a connection, which is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	conn := &Conn{Conn: c, slots: l.slots}
	if l.book != nil {
		l.book.enter(conn, l.addr)
	}
	return conn, nil
}

// Open returns how many connections are open.
func (l *Listener) Open() int { return len(l.slots) }

// Close also ends an Accept that waits for a slot.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Conn is a connection that gives its slot back when it is closed, once.
type Conn struct {
	net.Conn
	slots <-chan struct{}
	once  sync.Once
	entry // what a book shows of it
}

// Close closes the connection; the slot is free afterwards, so that the bound counts open sockets.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		<-c.slots
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

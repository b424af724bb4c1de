package web

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"trunkline/handlers/internal/conns"
)

// conn is a connection as net/http sees it. It may close slowly.
type conn struct {
	*conns.Conn
	s       *Server
	lingers atomic.Bool // the peer may still be sending
}

// Close closes the connection once the peer has seen the last answer. A second Close does not wait.
func (c *conn) Close() error {
	if c.lingers.CompareAndSwap(true, false) && !c.s.stopped.Load() {
		c.Linger()
	}
	return c.Conn.Close()
}

// LocalAddr returns the address that the client connected to. Of a client that another node has
// forwarded only its own address is known: it is on loopback if both are.
func (c *conn) LocalAddr() net.Addr {
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

// listener hands its connections to net/http inside a conn.
type listener struct {
	*conns.Listener
	s *Server
}

// listen bounds the connections of ln.
func (s *Server) listen(ln net.Listener) listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.book.Limit(ln, s.connections)
	s.listeners = append(s.listeners, l)
	return listener{l, s}
}

// SetMaxConnections changes Limits.Connections. Connections above a lower limit stay open.
func (s *Server) SetMaxConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = n
	for _, ln := range s.listeners {
		ln.SetLimit(n)
	}
}

// Accept waits for a free slot, then for a connection.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// net/http sets deadlines per request; a TLS handshake writes before the first one.
	_ = c.SetWriteDeadline(time.Now().Add(l.s.limits.WriteTimeout))
	return &conn{Conn: c.(*conns.Conn), s: l.s}, nil
}

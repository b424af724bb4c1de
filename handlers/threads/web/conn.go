package web

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTimeout and lingerBytes bound how long a closing connection reads on, so that a peer that
// still sends sees the last answer instead of a reset.
const (
	lingerTimeout = time.Second
	lingerBytes   = 8 << 20
)

// conn is a connection as net/http sees it. It frees its slot, and it may close slowly.
type conn struct {
	net.Conn
	s       *Server
	slots   <-chan struct{}
	lingers atomic.Bool // the peer may still be sending
	freed   sync.Once
}

// connKey is where a request's context has its conn.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Close closes the connection once the peer has seen the last answer: closing with unread bytes
// would reset the connection and destroy that answer. A second Close does not wait.
func (c *conn) Close() error {
	if c.lingers.CompareAndSwap(true, false) && !c.s.stopped.Load() {
		_ = c.CloseWrite()
		if c.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
		}
	}
	err := c.Conn.Close()
	c.freed.Do(func() { <-c.slots })
	return err
}

// CloseWrite ends the sending direction, where the transport can. net/http uses it, too.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// listener hands its connections to net/http inside a conn and bounds how many are open.
type listener struct {
	net.Listener
	s      *Server
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (s *Server) listen(ln net.Listener) *listener {
	return &listener{Listener: ln, s: s, slots: make(chan struct{}, s.limits.Connections), closed: make(chan struct{})}
}

// Accept waits for a free slot, then for a connection.
func (l *listener) Accept() (net.Conn, error) {
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
	// net/http sets deadlines per request; a TLS handshake writes before the first one.
	_ = c.SetWriteDeadline(time.Now().Add(l.s.limits.WriteTimeout))
	return &conn{Conn: c, s: l.s, slots: l.slots}, nil
}

// Close also ends an Accept that waits for a slot.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

package exchange

import (
	"net"
	"sync"
	"time"
)

// listener hands its connections to net/http inside a conn and bounds how many are open: at the
// bound it stops accepting, and new ones wait in the system's backlog until a connection closes.
type listener struct {
	net.Listener
	s      *Server
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (s *Server) listen(ln net.Listener) *listener {
	return &listener{Listener: ln, s: s, slots: make(chan struct{}, s.cfg.MaxConnections), closed: make(chan struct{})}
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
	_ = c.SetWriteDeadline(time.Now().Add(l.s.cfg.WriteTimeout))
	l.s.open.Add(1)
	return &conn{Conn: c, s: l.s, slots: l.slots}, nil
}

// Close also ends an Accept that waits for a slot.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

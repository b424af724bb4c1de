package ops

import (
	"net"
	"sync"
)

// limited is a listener with a bound on its open connections. At the bound it stops accepting: new
// ones wait in the system's backlog until a connection closes.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(ln net.Listener, most int) *limited {
	return &limited{Listener: ln, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits for a free slot, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
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
	return &slotted{Conn: c, free: func() { <-l.slots }}, nil
}

// Close also ends an Accept that waits for a slot.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// slotted is a connection that gives its slot back when it is closed, once.
type slotted struct {
	net.Conn
	once sync.Once
	free func()
}

// Close closes the connection; the slot is free afterwards, so that the bound counts open sockets.
func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}

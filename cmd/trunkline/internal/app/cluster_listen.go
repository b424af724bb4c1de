package app

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/peer"
)

// kept are the listeners of a node by their setting. They stay open while one replica takes the
// place of another; clients that connect meanwhile wait in the backlog.
type kept map[string][]bound

// lend returns the listeners of a section for one replica: they are opened for the first one.
func (k kept) lend(a *config.Access, o Options) ([]bound, error) {
	open := k[a.AddrKey()]
	if open == nil {
		var err error
		if open, err = openAll(a, o); err != nil {
			return nil, err
		}
		k[a.AddrKey()] = open
	}
	lent := make([]bound, len(open))
	for i, b := range open {
		l := lend(b.raw.(peer.Listener))
		b.ln, b.raw = l, l
		if b.tls != nil {
			b.ln = tls.NewListener(l, b.tls)
		}
		lent[i] = b
	}
	return lent, nil
}

// close closes all of them.
func (k kept) close() {
	for _, open := range k {
		for _, b := range open {
			_ = b.raw.Close()
		}
	}
}

// lent is a listener of the node for the time of one replica: Close ends Accept, and leaves the
// listener of the node open.
type lent struct {
	peer.Listener
	ended chan struct{}
	end   func()
}

// lend returns a listener whose former borrower has closed it.
func lend(ln peer.Listener) *lent {
	_ = ln.SetDeadline(time.Time{})
	l := &lent{Listener: ln, ended: make(chan struct{})}
	l.end = sync.OnceFunc(func() {
		close(l.ended)
		_ = ln.SetDeadline(time.Unix(1, 0))
	})
	return l
}

// Accept implements net.Listener.
func (l *lent) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	select {
	case <-l.ended:
		if err == nil {
			_ = nc.Close()
		}
		return nil, net.ErrClosed
	default:
		return nc, err
	}
}

// Close implements net.Listener.
func (l *lent) Close() error {
	l.end()
	return nil
}

// pipes is a listener inside of the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	end    func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// dial connects in the name of a client. It waits until the connection is accepted.
func (p *pipes) dial(ctx context.Context, client string) (net.Conn, error) {
	toThere, fromHere := net.Pipe()
	toHere, fromThere := net.Pipe()
	here, there := &pipe{Conn: toHere, out: toThere}, &pipe{Conn: fromHere, out: fromThere, client: inside(client)}
	err := net.ErrClosed
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, _ = here.Close(), there.Close()
	return nil, err
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.end()
	return nil
}

// Addr implements net.Listener.
func (*pipes) Addr() net.Addr { return inside(kindLocal) }

// pipe is an end of a connection, each of whose directions ends by itself as that of a socket does.
type pipe struct {
	net.Conn          // is read
	out      net.Conn // is written
	client   inside
}

// Write implements net.Conn.
func (p *pipe) Write(b []byte) (int, error) { return p.out.Write(b) }

// CloseWrite ends the sending direction.
func (p *pipe) CloseWrite() error { return p.out.Close() }

// Close implements net.Conn.
func (p *pipe) Close() error { return errors.Join(p.out.Close(), p.Conn.Close()) }

// SetDeadline implements net.Conn.
func (p *pipe) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// SetWriteDeadline implements net.Conn.
func (p *pipe) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }

// RemoteAddr returns the name of the client.
func (p *pipe) RemoteAddr() net.Addr { return p.client }

// inside is an address in this process.
type inside string

// Network implements net.Addr.
func (inside) Network() string { return kindLocal }

// String implements net.Addr.
func (a inside) String() string { return string(a) }

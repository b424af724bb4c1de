package upstream

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Local is a listener inside of the process.
type Local struct {
	conns  chan net.Conn
	closed chan struct{}
	end    func()
}

// NewLocal returns one that is open.
func NewLocal() *Local {
	p := &Local{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Dial connects in the name of a client. It waits until the connection is accepted.
func (p *Local) Dial(ctx context.Context, client string) (net.Conn, error) {
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
func (p *Local) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Local) Close() error {
	p.end()
	return nil
}

// Addr implements net.Listener.
func (*Local) Addr() net.Addr { return inside(network) }

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

// network is that of addresses in this process.
const network = "local"

// inside is an address in this process.
type inside string

// Network implements net.Addr.
func (inside) Network() string { return network }

// String implements net.Addr.
func (a inside) String() string { return string(a) }

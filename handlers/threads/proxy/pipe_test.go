package proxy

import (
	"context"
	"errors"
	"net"
	"time"
)

// pipes is a listener for clients in this process, whose connections have no buffer.
type pipes struct {
	conns chan net.Conn
	ended context.Context
	end   context.CancelFunc
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	p.ended, p.end = context.WithCancel(context.Background())
	return p
}

// dial connects in the name of a client.
func (p *pipes) dial(ctx context.Context, client string) (net.Conn, error) {
	asked, gets := net.Pipe()
	answered, sends := net.Pipe()
	here := &pipe{Conn: answered, out: asked}
	select {
	case p.conns <- &pipe{Conn: gets, out: sends, client: client}:
		return here, nil
	case <-p.ended.Done():
	case <-ctx.Done():
	}
	return nil, errors.Join(here.Close(), net.ErrClosed)
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.ended.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.end()
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &pipe{client: "inside"} }

// pipe is an end of a connection, and the address of its client. It is read from Conn.
type pipe struct {
	net.Conn
	out    net.Conn
	client string
}

func (p *pipe) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *pipe) CloseWrite() error           { return p.out.Close() }
func (p *pipe) Close() error                { return errors.Join(p.Conn.Close(), p.out.Close()) }
func (p *pipe) RemoteAddr() net.Addr        { return p }
func (p *pipe) Network() string             { return "inside" }
func (p *pipe) String() string              { return p.client }

func (p *pipe) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }

func (p *pipe) SetDeadline(t time.Time) error {
	return errors.Join(p.Conn.SetReadDeadline(t), p.out.SetWriteDeadline(t))
}

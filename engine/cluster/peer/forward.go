package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
)

// connect dials for what h describes; raw is below TLS.
func connect(ctx context.Context, addr string, cfg *Config, h *header) (c, raw net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	var d net.Dialer
	socket, err := d.DialContext(ctx, "tcp", addr) // no named result: the function below may run after the return
	if err != nil {
		return nil, nil, err
	}
	c = socket
	if cfg.ClientTLS != nil {
		secured := cfg.ClientTLS.Clone()
		secured.ServerName, _, _ = net.SplitHostPort(addr)
		c = tls.Client(socket, secured)
	}
	h.cluster, h.node = cfg.Cluster, cfg.Node
	release := context.AfterFunc(ctx, func() { _ = socket.Close() })
	err = dial(c, h)
	if !release() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, fmt.Errorf("cannot reach %s of partition %d at the node %s: %w", h.service, h.partition, addr, err)
	}
	return c, socket, nil
}

// ForwardConfig is what a Forwarder needs.
type ForwardConfig struct {
	// Owner connects to the node that owns a service, in the name of a client. While there is no
	// owner it waits, until ctx ends. owns ends when that node is not the owner any more: then the
	// client is closed, as that node may never answer.
	Owner func(ctx context.Context, service, client string) (conn net.Conn, owns context.Context, err error)
	// Max bounds the connections; more wait in the backlog of their listener. 0:
	// defaultMaxConnections.
	Max int
	// Hold is how long a client is kept while there is no owner; then it is closed. 0: 10 s.
	Hold time.Duration
	// Name returns the name of a client, and Allow why it may not be one.
	Name  func(net.Conn) string
	Allow func(net.Conn) error
	// Term is Config.Term: a client that had to wait for longer and has sent something is closed.
	Term time.Duration
}

// defaultHold is the default of ForwardConfig.Hold.
const defaultHold = 10 * time.Second

// Forwarder joins clients of this node to the owner of what they ask for.
type Forwarder struct {
	cfg   ForwardConfig
	ctx   context.Context
	stop  context.CancelFunc
	takes context.Context // ends with ctx or earlier: no further client is accepted
	yield context.CancelFunc
	slots chan struct{} // one is taken before each Accept
	open  atomic.Int64
	wg    sync.WaitGroup
}

// NewForwarder returns one that forwards what Serve accepts, until Close.
func NewForwarder(cfg ForwardConfig) *Forwarder {
	if cfg.Max == 0 {
		cfg.Max = defaultMaxConnections
	}
	if cfg.Hold == 0 {
		cfg.Hold = defaultHold
	}
	f := &Forwarder{cfg: cfg, slots: make(chan struct{}, cfg.Max)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.takes, f.yield = context.WithCancel(f.ctx)
	return f
}

// Listener is what clients of a node connect to. The listeners of package net have its methods.
type Listener interface {
	net.Listener
	SetDeadline(t time.Time) error
}

// Serve accepts clients of a service until Yield or Close, and returns nil then. ln stays open: the
// node may become the owner, and serve it.
func (f *Forwarder) Serve(ln Listener, service string) error {
	interrupted := make(chan struct{})
	interrupt := context.AfterFunc(f.takes, func() {
		_ = ln.SetDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	defer func() {
		if !interrupt() {
			<-interrupted
			_ = ln.SetDeadline(time.Time{})
		}
	}()
	for {
		select {
		case f.slots <- struct{}{}:
		case <-f.takes.Done():
			return nil
		}
		nc, err := ln.Accept()
		if err != nil {
			<-f.slots
			switch {
			case f.takes.Err() != nil:
				return nil
			case errors.Is(err, net.ErrClosed):
				return fmt.Errorf("cannot accept clients: %w", err)
			}
			connection.Pause(f.takes, acceptPause)
			continue
		}
		f.wg.Go(func() {
			f.open.Add(1)
			f.join(nc, service)
			f.open.Add(-1)
			<-f.slots
		})
	}
}

// Open returns how many clients are forwarded, or wait for an owner.
func (f *Forwarder) Open() int { return int(f.open.Load()) }

// Yield ends every Serve, as this node becomes the owner. Clients that wait for an owner stay, and
// are forwarded to it.
func (f *Forwarder) Yield() { f.yield() }

// Close ends every Serve and every connection, and waits for the connections.
func (f *Forwarder) Close() {
	f.stop()
	f.wg.Wait()
}

// join serves a client until its connection has ended.
func (f *Forwarder) join(client net.Conn, service string) {
	defer client.Close()
	if f.cfg.Allow(client) != nil {
		return
	}
	accepted := connection.Mono()
	hold, cancel := context.WithTimeout(f.ctx, f.cfg.Hold)
	owner, owns, err := f.cfg.Owner(hold, service, f.cfg.Name(client))
	cancel()
	if err != nil {
		return
	}
	if f.cfg.Term > 0 && connection.Mono()-accepted > int64(f.cfg.Term) && hasSent(client) {
		_ = owner.Close()
		return
	}
	Join(client, owner, f.ctx, owns)
}

// hasSent reports whether there is something to read of a client, its end included.
func hasSent(client net.Conn) (sent bool) {
	if c, ok := client.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				sent = n > 0
			})
		}
	}
	return sent
}

// Join copies between a client and the owner of what it asks for, until both directions have ended
// or one of ends has, and closes both.
func Join(client, owner net.Conn, ends ...context.Context) {
	end := func() {
		_ = owner.Close()
		_ = client.Close() // which may wait for the client
	}
	defer end()
	for _, ctx := range ends {
		defer context.AfterFunc(ctx, end)()
	}
	var back sync.WaitGroup
	back.Go(func() { pass(client, owner) })
	pass(owner, client)
	back.Wait()
}

// pass copies until from ends, and ends to likewise: a half-closed client may still be answered. A
// broken connection ends both directions.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()
		_ = from.Close()
	}
}

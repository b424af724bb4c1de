package client

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// Conn is one connection to a kernel server. Its methods may be called from any goroutine.
type Conn struct {
	addr string
	opts options
	nc   net.Conn

	loops    sync.WaitGroup
	done     chan struct{} // closed once err is set
	wake     chan struct{} // one slot: out has something for the writer
	writeErr atomic.Pointer[error]

	mu      sync.Mutex // guards what follows
	lastID  uint64
	calls   map[string]chan incoming // waiting unary requests by id; each channel has one slot
	streams map[string]*Stream       // open streams by id
	out     []byte                   // whole frames the writer has not taken
	room    chan struct{}            // non-nil while someone waits for out to be taken; closed then
	err     *ConnError               // why the connection ended, once it has
}

func newConn(nc net.Conn, addr string, o options) *Conn {
	c := &Conn{
		addr:    addr,
		opts:    o,
		nc:      nc,
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		calls:   make(map[string]chan incoming),
		streams: make(map[string]*Stream),
	}
	c.loops.Go(c.readLoop)
	c.loops.Go(c.writeLoop)
	return c
}

// Addr returns the server's address as it was dialled.
func (c *Conn) Addr() string { return c.addr }

// Close ends the connection: waiting calls and open streams fail with a ConnError of ErrClosed, and requests whose bytes are
// still unsent may or may not take effect. Both goroutines have ended when it returns. Closing again does nothing.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	c.loops.Wait()
	return nil
}

// Done is closed when the connection has ended, for whatever reason; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection is usable, and its *ConnError afterwards.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// Call sends one request and waits for its reply. body is one MessagePack map, nil means an empty one; it is not kept. The
// returned body belongs to the caller. When ctx ends first, Call returns its error and drops the late reply: the request may
// still take effect.
func (c *Conn) Call(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	reply := make(chan incoming, 1)
	id, err := c.send(ctx, service, method, body, func(id string) { c.calls[id] = reply })
	if err != nil {
		return nil, err
	}
	select {
	case m := <-reply:
		return c.answer(m, service, method)
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return nil, ctx.Err()
	case <-c.done:
	}
	select { // the reply may have come just before the end
	case m := <-reply:
		return c.answer(m, service, method)
	default:
		return nil, c.Err()
	}
}

func (c *Conn) answer(m incoming, service, method string) ([]byte, error) {
	switch m.kind {
	case frame.Response:
		return m.body, nil
	case frame.Error:
		return nil, m.err
	}
	c.post(busService, "Unsubscribe", unsubscribe(m.id))
	return nil, fmt.Errorf("cannot call %s.%s: it opens a stream", service, method)
}

// send registers a fresh id and queues the request under it, in one step, so that requests go out in id order and a reply
// never finds its id missing. It waits while maxUnsent bytes are queued.
func (c *Conn) send(ctx context.Context, service, method string, body []byte, register func(id string)) (id string, err error) {
	if body, err = checkBody(body); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := c.lockWithRoom(ctx); err != nil {
		return "", err
	}
	defer c.mu.Unlock()
	if id, err = c.queue(service, method, body); err == nil {
		register(id)
	}
	return id, err
}

// post queues a request whose reply nobody waits for; it is skipped on a connection that has ended.
func (c *Conn) post(service, method string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.queue(service, method, body) // a frame over the limit has nobody to tell
	}
}

// queue puts a request under a fresh id into the output. It is called with mu held.
func (c *Conn) queue(service, method string, body []byte) (id string, err error) {
	start := len(c.out)
	id = strconv.FormatUint(c.lastID+1, 10)
	out := mpack.AppendRequest(frame.Begin(c.out, frame.Request), id, service, method, body)
	size := frame.Finish(out, start)
	if size > c.opts.maxFrame {
		c.out = out[:start]
		return "", fmt.Errorf("cannot send %s.%s: %w: %d bytes (max %d)", service, method, ErrFrameTooLarge, size, c.opts.maxFrame)
	}
	c.out = out
	c.lastID++
	signal(c.wake)
	return id, nil
}

// lockWithRoom returns with mu held once the connection is alive and its output below maxUnsent, or with an error and mu free.
func (c *Conn) lockWithRoom(ctx context.Context) error {
	for {
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			return c.err
		}
		if len(c.out) < maxUnsent {
			return nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fail ends the connection with its first reason.
func (c *Conn) fail(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = &ConnError{Addr: c.addr, Err: reason}
	c.nc.Close()
	for _, s := range c.streams {
		s.finish(c.err)
	}
	clear(c.streams)
	clear(c.calls)
	close(c.done)
}

// signal fills a one-slot channel without waiting.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

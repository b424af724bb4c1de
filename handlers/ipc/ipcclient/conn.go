// Package ipcclient is the caller's side of kernel IPC: one connection, any number of concurrent
// requests matched by id, and streams beside them. methods_gen.go has a typed method for every
// method of the protocol.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:50051")
//	if err != nil { … }
//	defer conn.Close()
//	p, err := conn.CreateProcess(ctx, client.CreateProcess{PID: "p1", UserID: "u1"})
//
//	sub, err := conn.Subscribe(ctx, client.Subscribe{EventTypes: []string{"process.created"}})
//	for event, err := range sub.All(ctx) { … }
//
// # Errors
//
// There are three kinds; errors.As separates them. *Error is the answer of the server, with its
// code. *ConnError means that the connection is gone; it fails every call and stream on it. All
// others (a body that cannot be encoded, a request over the frame limit, the error of the context)
// concern one call and leave the connection usable.
//
// # Repeating a call
//
// After a ConnError, or the end of a context, a call may have taken effect or not. A call that had
// an idempotency key is repeated with the same one, over any connection:
//
//	ctx = client.WithIdempotencyKey(ctx, uuid.NewString())
//	usage, err := conn.RecordUsage(ctx, client.RecordUsage{PID: "p1", LLMCalls: 1})
//
// # Back-pressure
//
// A stream buffers a bounded number of bytes and messages (WithStreamBuffer). When a buffer is
// full, the connection is not read until the consumer takes a message or closes the stream. Nothing
// is dropped on this side; the slow-reader rule of the server applies (kernel-ipc §4.18). Other
// calls on the connection wait meanwhile: a slow consumer with calls needs a second connection.
//
// # Goroutines
//
// A Conn has a reader and a writer. Both have ended when Close returns. A broken connection is not
// dialled again.
package ipcclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tinylib/msgp/msgp"

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
	unsent   chan []byte   // whole frames for the writer
	writeErr atomic.Pointer[error]
	lastID   atomic.Uint64
	heard    atomic.Bool // a frame has come

	mu      sync.Mutex               // guards what follows
	calls   map[string]chan incoming // waiting unary requests by id; each channel has one slot
	streams map[string]*Stream       // open streams by id
	err     *ConnError               // the reason for the end, once there is one
}

func newConn(nc net.Conn, addr string, o options) *Conn {
	c := &Conn{
		addr:    addr,
		opts:    o,
		nc:      nc,
		done:    make(chan struct{}),
		unsent:  make(chan []byte, maxUnsent),
		calls:   make(map[string]chan incoming),
		streams: make(map[string]*Stream),
	}
	c.loops.Go(c.readLoop)
	c.loops.Go(c.writeLoop)
	return c
}

// Close ends the connection. Waiting calls and open streams fail with a ConnError of ErrClosed;
// unsent requests may or may not take effect. Both goroutines have ended when it returns.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	c.loops.Wait()
	return nil
}

// Done is closed when the connection has ended; Err then returns the reason.
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

// Heard reports whether the server has sent a frame yet.
func (c *Conn) Heard() bool { return c.heard.Load() }

// Call sends one request and waits for its reply. body is one MessagePack map, nil means an empty
// one; it is not kept. The returned body belongs to the caller. When ctx ends first, Call returns
// its error; the request may still take effect. With the idempotency key of ctx it can be repeated.
func (c *Conn) Call(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	if key, ok := ctx.Value(keyed{}).(string); ok {
		var err error
		if body, err = withKey(body, key); err != nil {
			return nil, err
		}
	}
	reply := make(chan incoming, 1)
	id, err := c.send(ctx, service, method, body, func(id string) { c.calls[id] = reply })
	if err != nil {
		return nil, err
	}
	select {
	case m := <-reply:
		return c.answer(m, service, method)
	case <-ctx.Done():
		c.forget(id)
		return nil, ctx.Err()
	}
}

func (c *Conn) answer(m incoming, service, method string) ([]byte, error) {
	switch m.kind {
	case frame.Response:
		return m.body, nil
	case frame.Error:
		return nil, m.err
	}
	c.unsubscribe(m.id)
	return nil, fmt.Errorf("cannot call %s.%s: it opens a stream", service, method)
}

// send registers a fresh id and queues the request under it, so that a reply always finds its id.
// It waits while maxUnsent requests are queued.
func (c *Conn) send(
	ctx context.Context, service, method string, body []byte, register func(id string),
) (id string, err error) {
	if body, err = checkBody(body); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	id = strconv.FormatUint(c.lastID.Add(1), 10)
	out := mpack.AppendRequest(frame.Begin(nil, frame.Request), id, service, method, body)
	if size := frame.Finish(out, 0); size > c.opts.maxFrame {
		return "", fmt.Errorf("cannot send %s.%s: %w: %d bytes (max %d)",
			service, method, ErrFrameTooLarge, size, c.opts.maxFrame)
	}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return "", c.err
	}
	register(id)
	c.mu.Unlock()
	select {
	case c.unsent <- out:
		return id, nil
	case <-ctx.Done():
		c.forget(id)
		return "", ctx.Err()
	case <-c.done:
		return "", c.Err()
	}
}

// forget makes the connection drop further frames with an id.
func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
	delete(c.streams, id)
}

// unsubscribe ends a stream without waiting for the reply.
func (c *Conn) unsubscribe(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_, _ = c.send(ctx, busService, "Unsubscribe", unsubscribeBody(id), func(string) {})
}

// fail ends the connection with its first reason.
func (c *Conn) fail(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = &ConnError{Addr: c.addr, Err: reason}
	_ = c.nc.Close()
	for _, s := range c.streams {
		s.finish(c.err)
	}
	for _, reply := range c.calls {
		reply <- incoming{kind: frame.Error, err: c.err} // its slot is free as long as it is registered
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

// invoke is Call with typed maps; in may be nil for an empty one.
func (c *Conn) invoke(ctx context.Context, service, method string, in msgp.Marshaler, out msgp.Unmarshaler) error {
	body, err := encode(in)
	if err != nil {
		return err
	}
	reply, err := c.Call(ctx, service, method, body)
	if err != nil {
		return err
	}
	if _, err := out.UnmarshalMsg(reply); err != nil {
		return protocolErrorf("reply of %s.%s: %v", service, method, err)
	}
	return nil
}

func encode(in msgp.Marshaler) (body []byte, err error) {
	if in == nil {
		return nil, nil
	}
	if body, err = in.MarshalMsg(nil); err != nil {
		err = fmt.Errorf("cannot encode the body: %w", err)
	}
	return body, err
}

// keyed is the key of a context that has an idempotency key.
type keyed struct{}

// WithIdempotencyKey returns a context whose calls have an idempotency key of 32 to 200 bytes,
// random as a rule. Of calls that change something the server executes the first one with the key,
// and gives its answer to those that repeat it, on any connection and to any node of a cluster.
// Another request with the same key is refused. A server without the extension idempotency_key
// (Ping) executes each.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

// withKey returns body with an idempotency key behind its members.
func withKey(body []byte, key string) ([]byte, error) {
	body, err := checkBody(body)
	if err != nil {
		return nil, err
	}
	members, rest, err := msgp.ReadMapHeaderBytes(body)
	if err != nil {
		return nil, fmt.Errorf("cannot send body: %w", err)
	}
	body = append(msgp.AppendMapHeader(nil, members+1), rest...)
	return msgp.AppendString(msgp.AppendString(body, "idempotency_key"), key), nil
}

// checkBody makes sure that body is exactly one MessagePack map: anything else damages its frame.
func checkBody(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return []byte{0x80}, nil
	}
	rest, err := msgp.Skip(body)
	if err != nil || len(rest) != 0 || msgp.NextType(body) != msgp.MapType {
		return nil, errors.New("cannot send body: it is not exactly one MessagePack map")
	}
	return body, nil
}

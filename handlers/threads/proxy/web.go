package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/rest"
)

// legIdle is how long a leg waits for another request: half as long as an owner would.
const legIdle = 36 * time.Second

// goneWithin is how long an answer may take whose client has ended its sending direction, or is
// gone, which look the same.
const goneWithin = 30 * time.Second

// copyBytes is how much of a body is read at a time.
const copyBytes = 16 << 10

// Web serves clients over HTTP. Its methods may be called from any goroutine.
type Web struct {
	*rest.Server
	router
	idle    time.Duration // legIdle, unless a test has another
	gone    time.Duration // goneWithin, unless a test has another
	buffers sync.Pool     // of *[copyBytes]byte

	mu       sync.Mutex
	clients  map[net.Conn]*client
	stopped  bool
	watching sync.WaitGroup // legs
}

// client is a connection. The goroutine of its requests owns it.
type client struct {
	remote string
	legs   map[int]*leg // without a request, by partition
}

// NewWeb returns a server. Nothing runs before Serve.
func NewWeb(cfg Config) *Web { return newWeb(cfg, rest.Limits{Connections: cfg.MaxConnections}) }

func newWeb(cfg Config, limits rest.Limits) *Web {
	w := &Web{router: newRouter(cfg), idle: legIdle, gone: goneWithin, clients: map[net.Conn]*client{}}
	w.buffers.New = func() any { return new([copyBytes]byte) }
	w.Server = rest.New(
		rest.Config{Forward: w, Limits: limits, Surface: method.Surface{IDs: w.cfg.IDs, Logger: w.cfg.Logger}},
	)
	return w
}

// Shutdown stops accepting, waits for the requests in flight, and closes all connections. When ctx
// ends first, it closes the rest and returns an error.
func (w *Web) Shutdown(ctx context.Context) error {
	err := w.Server.Shutdown(ctx)
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.stop()
	w.watching.Wait()
	return err
}

// Forward implements rest.Forwarder.
func (w *Web) Forward(rw http.ResponseWriter, r *http.Request, bearer string) *method.Fault {
	c, partition := w.client(httpd.Of(r.Context())), w.partition(bearer)
	l, err := w.leg(c, partition)
	if err != nil {
		return &method.Fault{Condition: method.Unavailable, Message: noOwner}
	}
	x := &exchange{w: w, leg: l, to: rw, r: r, control: http.NewResponseController(rw), sent: make(chan struct{})}
	if x.run() {
		c.legs[partition] = l
	}
	return nil
}

// Closed implements rest.Forwarder.
func (w *Web) Closed(nc net.Conn) {
	w.mu.Lock()
	c := w.clients[nc]
	delete(w.clients, nc)
	w.mu.Unlock()
	if c == nil {
		return
	}
	for _, l := range c.legs {
		l.close()
	}
}

// client returns what is known of a connection.
func (w *Web) client(nc net.Conn) *client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clients[nc]
	if c == nil {
		c = &client{remote: nc.(interface{ Remote() string }).Remote(), legs: map[int]*leg{}}
		w.clients[nc] = c
	}
	return c
}

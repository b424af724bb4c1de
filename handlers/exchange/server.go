package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/envelope"
	"trunkline/engine/obs"
	"trunkline/handlers/internal/conns"
)

// Server answers POST /api/v1/process (envelope §2.3). Any goroutine may call its methods.
type Server struct {
	cfg      HTTPConfig
	http     *http.Server
	process  func(dst, src []byte) ([]byte, envelope.Reason, *envelope.Error)
	refusals refusals
	bounds   atomic.Pointer[bounds]
	buffers  sync.Pool // of *buffers
	book     *conns.Book
	meter    *obs.Meter

	draining atomic.Bool
	stopped  atomic.Bool // connections are closed without lingering
	inFlight atomic.Int64
	open     atomic.Int64
	classes  [6]atomic.Uint64

	mu        sync.Mutex
	listeners []*conns.Listener
}

// bounds is what a running server can change.
type bounds struct {
	connections, inFlight int
	overloaded            *refusal
}

// Stats are the server's counters, each read on its own.
type Stats struct {
	// Requests counts replies by the first digit of their status: Requests[2] are the successful
	// ones.
	Requests [6]uint64
	// InFlight is how many requests are being served; refused ones are not among them.
	InFlight int64
	// Connections is how many connections are open.
	Connections int64
}

// NewServer returns a server that answers with engine. Nothing runs before Serve.
func NewServer(engine *envelope.Engine, cfg HTTPConfig) *Server {
	s := &Server{
		cfg: cfg, process: engine.Process, refusals: newRefusals(cfg), book: conns.NewBook("http", "http"),
		meter: cfg.Recorder.Meter("http", []string{rowProcess: "process", rowInvalid: obs.InvalidMethod}),
	}
	s.buffers.New = func() any { return new(buffers) }
	s.SetLimits(cfg.MaxConnections, cfg.MaxInFlight)
	one := new(http.Protocols)
	one.SetHTTP1(true)
	s.http = &http.Server{
		Handler:                      http.HandlerFunc(s.serveHTTP),
		Protocols:                    one,
		DisableGeneralOptionsHandler: true, // OPTIONS * is a path we do not have, like any other
		ReadHeaderTimeout:            cfg.ReadHeaderTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		MaxHeaderBytes:               cfg.MaxHeaderBytes,
		ErrorLog:                     slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		ConnContext:                  conns.With,
		ConnState:                    setState,
	}
	return s
}

// Serve accepts on ln, which may be a TLS listener without HTTP/2, until Shutdown, and then returns
// nil, else why it stopped. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(s.listen(ln)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve HTTP: %w", err)
	}
	return nil
}

// SetLimits changes MaxConnections and MaxInFlight. What is above a lower limit goes on.
func (s *Server) SetLimits(connections, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounds.Store(&bounds{connections, inFlight, tooMany(inFlight)})
	for _, ln := range s.listeners {
		ln.SetLimit(connections)
	}
}

// listen bounds the connections of ln.
func (s *Server) listen(ln net.Listener) listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.book.Limit(ln, s.bounds.Load().connections)
	s.listeners = append(s.listeners, l)
	return listener{l, s}
}

// Shutdown closes the listeners and idle connections, refuses further requests on the others with
// 503 shutting_down, and waits until those in flight are answered. New connections wait for the
// next server, where the socket outlives this one. When ctx ends first, it closes the rest and
// returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	if err := s.http.Shutdown(ctx); err != nil {
		s.stopped.Store(true)
		_ = s.http.Close()
		return fmt.Errorf("cannot finish HTTP requests: %w", err)
	}
	return nil
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	st := Stats{InFlight: s.inFlight.Load(), Connections: s.open.Load()}
	for i := range st.Requests {
		st.Requests[i] = s.classes[i].Load()
	}
	return st
}

// Totals returns how many connections are open, and the bytes read and written by all there were.
func (s *Server) Totals() (open, in, out int64) { return s.book.Totals() }

// Connections appends a row for each open connection.
func (s *Server) Connections(dst []obs.Connection) []obs.Connection { return s.book.Connections(dst) }

// Drop closes the connection of a name at once. found is false where none has it.
func (s *Server) Drop(name string) (found bool) { return s.book.Drop(name) }

// The rows of the meter: what came for the one path there is, and the rest.
const (
	rowProcess = iota
	rowInvalid
)

func (s *Server) count(status int) {
	if class := status / 100; class >= 0 && class < len(s.classes) {
		s.classes[class].Add(1)
	}
}

// enter takes one of the MaxInFlight places; false if all are taken.
func (s *Server) enter() bool {
	for {
		n := s.inFlight.Load()
		if n >= int64(s.bounds.Load().inFlight) {
			return false
		}
		if s.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// buffers are the bytes of one request: its body and its reply.
type buffers struct{ in, out []byte }

// give puts b back for another request, without the memory that a rare large one left behind.
func (s *Server) give(b *buffers) {
	if cap(b.in) > maxKeptBuffer {
		b.in = nil
	}
	if cap(b.out) > maxKeptBuffer {
		b.out = nil
	}
	s.buffers.Put(b)
}

// HTTPConfig bounds the HTTP side (envelope §2.3, §6). All members are set.
type HTTPConfig struct {
	// MaxBodyBytes is the largest request body; a larger one is answered 413.
	MaxBodyBytes int
	// MaxInFlight is how many requests may read their body, run or write their reply at a time.
	// Further ones get 503. It bounds the memory for bodies.
	MaxInFlight int
	// MaxHeaderBytes bounds the header fields with names, values and line ends: 431.
	MaxHeaderBytes int
	// MaxConnections may be open; further ones wait in the system's backlog.
	MaxConnections int
	// ReadHeaderTimeout is the time for a request's headers: 408, or a close if nothing came.
	ReadHeaderTimeout time.Duration
	// ReadBodyTimeout is the time for a request's body after its headers: 408.
	ReadBodyTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// WriteTimeout is the time for one reply: the connection is closed.
	WriteTimeout time.Duration
	// Recorder gets the latencies; nil: they are not kept.
	Recorder *obs.Recorder
	// Logger gets panics and the lines of net/http.
	Logger *slog.Logger
}

// maxKeptBuffer is the largest buffer that a pool keeps: one large body must not stay for ever.
const maxKeptBuffer = 256 << 10

// Package exchange is boundary A of the envelope exchange (envelope §2.2–§2.4): an engine step for
// callers without a connection.
//
//	trunkline process < envelope  one JSON text in, one JSON object and a line end out  (Command)
//	trunkline < {"command": …}    the same, the command named inside the text           (Bridge)
//	POST /api/v1/process          one envelope in, one envelope out, over HTTP/1.1      (Server)
//
// All three are pure functions of their input: nothing is stored, and the commands open no socket
// and write no file. Every failure is an error object {"error":true,"code":…,"message":…}. Usage
// and stacks go to stderr or the log.
//
// The server is net/http behind a listener of its own. That listener bounds open connections, turns
// the plain-text answers of net/http into error objects, and reads on for a moment after a
// connection's last reply, so that a peer that still sends sees it.
//
// Out of scope: HTTP/2, compressed bodies, CORS, authentication. Who may connect is
// decided where the listener is opened (kernel-ipc D41).
package exchange

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/envelope"
	"trunkline/engine/obs"
	"trunkline/handlers/internal/httpd"
)

// Server answers POST /api/v1/process (envelope §2.3). Any goroutine may call its methods.
type Server struct {
	*httpd.Server
	cfg      HTTPConfig
	process  func(dst, src []byte) ([]byte, envelope.Reason, *envelope.Error)
	refusals refusals
	bounds   atomic.Pointer[bounds]
	buffers  sync.Pool // of *buffers
	meter    *obs.Meter

	inFlight atomic.Int64
	classes  [6]atomic.Uint64
}

// bounds is what a running server can change.
type bounds struct {
	inFlight   int
	overloaded *refusal
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
		cfg: cfg, process: engine.Process, refusals: newRefusals(cfg),
		meter: cfg.Recorder.Meter("http", []string{rowProcess: "process", rowInvalid: obs.InvalidMethod}),
	}
	s.buffers.New = func() any { return new(buffers) }
	s.Server = httpd.NewServer(httpd.Config{What: "HTTP", Book: httpd.NewBook("http", "http"),
		Connections: cfg.MaxConnections, Logger: cfg.Logger,
		Wrap: func(c *httpd.Conn) net.Conn { return &conn{Conn: c, s: s} },
		HTTP: &http.Server{
			Handler:                      http.HandlerFunc(s.serveHTTP),
			DisableGeneralOptionsHandler: true, // OPTIONS * is a path we do not have, like any other
			ReadHeaderTimeout:            cfg.ReadHeaderTimeout,
			WriteTimeout:                 cfg.WriteTimeout,
			IdleTimeout:                  cfg.IdleTimeout,
			MaxHeaderBytes:               cfg.MaxHeaderBytes,
			ConnState:                    setState,
		}})
	s.SetLimits(cfg.MaxConnections, cfg.MaxInFlight)
	return s
}

// SetLimits changes MaxConnections and MaxInFlight. What is above a lower limit goes on.
func (s *Server) SetLimits(connections, inFlight int) {
	s.bounds.Store(&bounds{inFlight, tooMany(inFlight)})
	s.SetMaxConnections(connections)
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	st := Stats{InFlight: s.inFlight.Load()}
	st.Connections, _, _ = s.Totals()
	for i := range st.Requests {
		st.Requests[i] = s.classes[i].Load()
	}
	return st
}

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
	b.in, b.out = httpd.Keep(b.in), httpd.Keep(b.out)
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

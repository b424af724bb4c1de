package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/obs"
	"trunkline/handlers/internal/conns"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// Server serves agent threads over HTTP. Any goroutine may call its methods.
type Server struct {
	cfg    Config
	limits Limits
	http   *http.Server
	routes map[string]*route // by raw path; never written after New

	challenge method.Challenge
	exchanges sync.Pool
	metrics   metrics
	book      *conns.Book

	draining atomic.Bool
	stopped  atomic.Bool // connections are closed without lingering

	mu          sync.Mutex
	connections int // that may be open
	listeners   []*conns.Listener
}

// New returns a server. Nothing runs before Serve.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Peers == nil {
		cfg.Peers = token.NewPeers(0)
	}
	if cfg.Meter == nil {
		cfg.Meter = method.NewMeter(nil)
	}
	if cfg.Pending == nil {
		cfg.Pending = method.NewBudget(0)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, limits: cfg.Limits.withDefaults(), challenge: method.NewChallenge(cfg.ResourceMetadata), book: conns.NewBook("threads", cmp.Or(cfg.Name, "threads-http"))}
	s.connections = s.limits.Connections
	s.exchanges.New = func() any { return new(exchange) }
	s.addRoutes()
	one := new(http.Protocols)
	one.SetHTTP1(true)
	s.http = &http.Server{
		Handler:                      http.HandlerFunc(s.serveHTTP),
		Protocols:                    one,
		DisableGeneralOptionsHandler: true, // OPTIONS * is a path we do not have, like any other
		ReadHeaderTimeout:            s.limits.HeaderTimeout,
		WriteTimeout:                 s.limits.WriteTimeout,
		IdleTimeout:                  s.limits.IdleTimeout,
		MaxHeaderBytes:               s.limits.HeaderBytes,
		ErrorLog:                     slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		ConnContext:                  conns.With,
	}
	if cfg.Forward != nil {
		s.http.ConnState = func(nc net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				cfg.Forward.Closed(nc)
			}
		}
	}
	return s
}

// Connections appends a row for each open connection.
func (s *Server) Connections(dst []obs.Connection) []obs.Connection { return s.book.Connections(dst) }

// Totals returns how many connections are open, and the bytes read and written by all there were.
func (s *Server) Totals() (open, in, out int64) { return s.book.Totals() }

// Drop closes the connection of a name at once. found is false where none has it.
func (s *Server) Drop(name string) (found bool) { return s.book.Drop(name) }

// Serve accepts on ln, which may be a TLS listener without HTTP/2, until Shutdown, and then returns
// nil, else why it stopped. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(s.listen(ln)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve HTTP: %w", err)
	}
	return nil
}

// Shutdown stops accepting, waits for the requests in flight, and closes all connections. When ctx
// ends first, it closes the rest and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	if err := s.http.Shutdown(ctx); err != nil {
		s.stopped.Store(true)
		_ = s.http.Close()
		return fmt.Errorf("cannot finish HTTP requests: %w", err)
	}
	return nil
}

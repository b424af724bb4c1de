package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a Server works with.
type Config struct {
	// HTTP has the handler and the limits; its other members belong to the Server, ConnState aside.
	HTTP *http.Server
	// What is what errors call the server, such as "HTTP".
	What string
	// Book lists the connections.
	Book *Book
	// Connections may be open at a time on one listener, and above them so many of which the
	// function Reserved is true.
	Connections, Reserved int
	// Wrap returns what net/http sees of a connection, which embeds it; nil: the connection.
	Wrap   func(*Conn) net.Conn
	Logger *slog.Logger
}

// Server is an http.Server over bounded listeners. Any goroutine may call its methods.
type Server struct {
	*Book
	// HTTP is the server itself.
	HTTP *http.Server
	// Draining is set by Shutdown, before anything else.
	Draining atomic.Bool

	cfg     Config
	stopped atomic.Bool // connections are closed without lingering

	mu          sync.Mutex
	connections int // that may be open
	listeners   []*Listener
}

// NewServer returns a server of HTTP/1. Nothing runs before Serve.
func NewServer(cfg Config) *Server {
	s := &Server{Book: cfg.Book, HTTP: cfg.HTTP, cfg: cfg, connections: cfg.Connections}
	s.HTTP.Protocols = new(http.Protocols)
	s.HTTP.Protocols.SetHTTP1(true)
	s.HTTP.ErrorLog = slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug)
	s.HTTP.ConnContext = with
	return s
}

// Bound returns ln with the bounds of the server, for Serve.
func (s *Server) Bound(ln net.Listener) *Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.Limit(ln, s.connections)
	l.spare, l.stopped = s.cfg.Reserved, &s.stopped
	s.listeners = append(s.listeners, l)
	return l
}

// Serve accepts on ln, which may be a TLS listener without HTTP/2, or one of Bound, until Shutdown,
// and then returns nil, else why it stopped. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	bounded, ok := ln.(*Listener)
	if !ok {
		bounded = s.Bound(ln)
	}
	if err := s.HTTP.Serve(accepted{bounded, s}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve %s: %w", s.cfg.What, err)
	}
	return nil
}

// SetMaxConnections changes Config.Connections. Connections above a lower limit stay open.
func (s *Server) SetMaxConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = n
	for _, ln := range s.listeners {
		ln.setLimit(n)
	}
}

// Shutdown closes the listeners and idle connections, and waits for the requests in flight; the
// handler refuses further ones. When ctx ends first, it closes the rest and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Draining.Store(true)
	err := s.HTTP.Shutdown(ctx)
	if err == nil {
		return nil
	}
	s.stopped.Store(true)
	_ = s.HTTP.Close()
	return fmt.Errorf("cannot finish HTTP requests: %w", err)
}

// accepted hands the connections of a listener to net/http.
type accepted struct {
	*Listener
	s *Server
}

// Accept waits for a free slot, then for a connection.
func (l accepted) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// net/http sets deadlines per request; a TLS handshake writes before the first one.
	_ = nc.SetWriteDeadline(time.Now().Add(l.s.HTTP.WriteTimeout))
	if wrap := l.s.cfg.Wrap; wrap != nil {
		return wrap(nc.(*Conn)), nil
	}
	return nc, nil
}

// HangUp ends the connection of a request after its answer. The peer may still send: closing waits
// for it, so net/http must not look for the body's end before that.
func HangUp(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	ReadWithin(w, 0)
	Linger(r)
}

// Linger has the connection of a request closed only when the peer has seen the last answer.
func Linger(r *http.Request) {
	if c := connOf(r.Context()); c != nil {
		c.LingerAtEnd()
	}
}

// ReadWithin gives the peer time to send the rest of a body. Transports without deadlines do
// without.
func ReadWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d))
}

// WriteWithin gives the peer time to take an answer. The deadline that net/http set began with the
// request, whose body may have used it up.
func WriteWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// Hosts are names under which a server on a loopback address is asked, beside those of this
// machine. A page from elsewhere, in a browser here, reaches the server under a name of its own
// that was made to point here: such a name is not among them.
type Hosts map[string]bool

// NewHosts returns the set of names, each with a port or without.
func NewHosts(names []string) Hosts {
	h := Hosts{}
	for _, n := range names {
		if n = hostname(n); n != "" {
			h[n] = true
		}
	}
	return h
}

// Allow reports whether a Host, with a port or without, names this machine or is in the set.
func (h Hosts) Allow(host string) bool { return IsLoopback(host) || h[hostname(host)] }

// IsLoopback reports whether a Host, with a port or without, is localhost or a loopback address.
func IsLoopback(host string) bool {
	switch host { // nearly always
	case "127.0.0.1", "localhost":
		return true
	}
	host = hostname(host)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// hostname returns the name in a Host: in lower case, without the port, brackets and a final dot.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

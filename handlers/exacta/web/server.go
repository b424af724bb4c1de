// Package web serves projects to browsers: the WebSocket carrier of exacta (§2.2), and a page for
// operators that shows plans, diffs and events and cannot change anything.
//
//	GET /exacta/v1/ws ─► Handshake ─► conn ─► engine/stream ─► session of handlers/exacta
//
//	text message ──► text: one line ──► Feed
//	text message ◄── frame ◄── lines ◄── Pump
//
// A message becomes a line: its raw line ends, white space to JSON, become carriage returns, which
// are white space too, and an error inside of a string as they were. Reading and the end of a
// connection are those of github.com/coder/websocket. Frames of the server, which have no mask, are
// appended here: all lines of one write leave with one system call, and an answer to a ping never
// waits in the goroutine that reads.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
	"trunkline/handlers/internal/conns"
)

// wsPath is where the WebSocket of exacta is (exacta §2.2).
const wsPath = "/exacta/v1/ws"

// Bounds of handshakes.
const (
	maxHeaderBytes   = 16 << 10
	handshakeWithin  = 10 * time.Second
	handshakesBeside = 64 // sockets beside those of connections, for handshakes and refusals
)

// Server serves WebSockets of exacta (§2.2). Any goroutine may call its methods.
type Server struct {
	sockets *sockets
	http    *http.Server

	mu          sync.Mutex
	connections int // at a time
	listeners   []*conns.Listener
}

// NewServer returns the WebSockets of srv. Nothing is accepted before Serve. Shutdown ends it.
func NewServer(srv *exacta.Server) *Server {
	c := configOf(srv, exacta.WebSocket, wsPath)
	c.token = func() string { return srv.Live().AuthToken }
	return newServer(c)
}

func newServer(c config) *Server {
	s := &Server{sockets: newSockets(c), connections: c.maxConnections}
	one := new(http.Protocols)
	one.SetHTTP1(true)
	s.http = &http.Server{
		Handler:                      http.HandlerFunc(s.serveHTTP),
		ConnContext:                  conns.With,
		Protocols:                    one,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            handshakeWithin,
		ReadTimeout:                  handshakeWithin,
		WriteTimeout:                 handshakeWithin,
		IdleTimeout:                  handshakeWithin,
		MaxHeaderBytes:               maxHeaderBytes,
		ErrorLog:                     slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	return s
}

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if conns.Ambiguous(r) {
		w.Header().Set("Connection", "close")
		http.Error(w, conns.TextAmbiguous, http.StatusBadRequest)
		return
	}
	s.sockets.ServeHTTP(w, r)
}

// Serve accepts on ln until Shutdown, and then returns nil, else why it stopped. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(s.listen(ln)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve WebSockets: %w", err)
	}
	return nil
}

// listen bounds the sockets of ln.
func (s *Server) listen(ln net.Listener) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := conns.Limit(ln, s.connections+handshakesBeside)
	s.listeners = append(s.listeners, l)
	return l
}

// SetMaxConnections changes how many WebSockets may be open. Those above a lower limit stay open.
func (s *Server) SetMaxConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = n
	s.sockets.host.Gate.SetMax(n)
	for _, ln := range s.listeners {
		ln.SetLimit(n + handshakesBeside)
	}
}

// Connections appends a row for each open WebSocket.
func (s *Server) Connections(dst []obs.Connection) []obs.Connection {
	return s.sockets.host.Connections(dst)
}

// Stats reads the counters of the WebSockets.
func (s *Server) Stats() stream.Snapshot { return s.sockets.host.Snapshot() }

// Drop closes the WebSocket of a name at once. found is false where none has it.
func (s *Server) Drop(name string) (found bool) { return s.sockets.host.Drop(name) }

// Refused returns how many WebSockets were turned away: over the limit, of another origin, or
// without the token.
func (s *Server) Refused() int64 {
	return s.sockets.refused.Load() + s.sockets.host.Stats.Refused.Load()
}

// Shutdown stops accepting, has what was asked for answered until ctx ends, and closes all
// connections with 1001 (exacta §2.2).
func (s *Server) Shutdown(ctx context.Context) error {
	s.sockets.stopping.Store(true)
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	return errors.Join(err, s.sockets.shutdown(ctx))
}

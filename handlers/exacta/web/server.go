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
	"net"
	"net/http"
	"time"

	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
	"trunkline/handlers/internal/httpd"
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
	handshakes *httpd.Server
	sockets    *sockets
}

// NewServer returns the WebSockets of srv. Nothing is accepted before Serve. Shutdown ends it.
func NewServer(srv *exacta.Server) *Server {
	c := configOf(srv, exacta.WebSocket, wsPath)
	c.token = func() string { return srv.Live().AuthToken }
	return newServer(c)
}

func newServer(c config) *Server {
	s := &Server{sockets: newSockets(c)}
	s.handshakes = httpd.NewServer(httpd.Config{What: "WebSockets", Book: httpd.NewBook("exacta", "handshake"),
		Connections: c.maxConnections + handshakesBeside, Logger: c.log,
		HTTP: &http.Server{
			Handler:                      httpd.Unambiguous(s.sockets),
			DisableGeneralOptionsHandler: true,
			ReadHeaderTimeout:            handshakeWithin,
			ReadTimeout:                  handshakeWithin,
			WriteTimeout:                 handshakeWithin,
			IdleTimeout:                  handshakeWithin,
			MaxHeaderBytes:               maxHeaderBytes,
		}})
	return s
}

// Serve accepts on ln until Shutdown, and then returns nil, else why it stopped. It closes ln.
func (s *Server) Serve(ln net.Listener) error { return s.handshakes.Serve(ln) }

// SetMaxConnections changes how many WebSockets may be open. Those above a lower limit stay open.
func (s *Server) SetMaxConnections(n int) {
	s.sockets.host.Gate.SetMax(n)
	s.handshakes.SetMaxConnections(n + handshakesBeside)
}

// Clients are the WebSockets.
func (s *Server) Clients() *stream.Host { return s.sockets.host }

// Refused returns how many WebSockets were turned away: over the limit, of another origin, or
// without the token.
func (s *Server) Refused() int64 {
	return s.sockets.refused.Load() + s.sockets.host.Stats.Refused.Load()
}

// Shutdown stops accepting, has what was asked for answered until ctx ends, and closes all
// connections with 1001 (exacta §2.2).
func (s *Server) Shutdown(ctx context.Context) error {
	s.sockets.stopping.Store(true)
	err := s.handshakes.Shutdown(ctx)
	return errors.Join(err, s.sockets.shutdown(ctx))
}

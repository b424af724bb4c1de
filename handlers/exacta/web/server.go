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
	"net/http"
	"time"

	"trunkline/engine/obs"
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
	*httpd.Server // of the handshakes
	sockets       *sockets
}

// NewServer returns the WebSockets of srv. Nothing is accepted before Serve. Shutdown ends it.
func NewServer(srv *exacta.Server) *Server {
	c := configOf(srv, exacta.WebSocket, wsPath)
	c.token = func() string { return srv.Live().AuthToken }
	return newServer(c)
}

func newServer(c config) *Server {
	s := &Server{sockets: newSockets(c)}
	s.Server = httpd.NewServer(httpd.Config{What: "WebSockets", Book: httpd.NewBook("exacta", "handshake"),
		Connections: c.maxConnections + handshakesBeside, Logger: c.log,
		HTTP: &http.Server{
			Handler:                      http.HandlerFunc(s.serveHTTP),
			DisableGeneralOptionsHandler: true,
			ReadHeaderTimeout:            handshakeWithin,
			ReadTimeout:                  handshakeWithin,
			WriteTimeout:                 handshakeWithin,
			IdleTimeout:                  handshakeWithin,
			MaxHeaderBytes:               maxHeaderBytes,
		}})
	return s
}

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if httpd.Ambiguous(r) {
		w.Header().Set("Connection", "close")
		http.Error(w, httpd.TextAmbiguous, http.StatusBadRequest)
		return
	}
	s.sockets.ServeHTTP(w, r)
}

// SetMaxConnections changes how many WebSockets may be open. Those above a lower limit stay open.
func (s *Server) SetMaxConnections(n int) {
	s.sockets.host.Gate.SetMax(n)
	s.Server.SetMaxConnections(n + handshakesBeside)
}

// Connections appends a row for each open WebSocket.
func (s *Server) Connections(dst []obs.Connection) []obs.Connection {
	return s.sockets.host.Connections(dst)
}

// Totals returns how many WebSockets are open, and the bytes read and written by all there were.
func (s *Server) Totals() (open, in, out int64) { return s.sockets.host.Totals() }

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
	err := s.Server.Shutdown(ctx)
	return errors.Join(err, s.sockets.shutdown(ctx))
}

package web

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
)

// config is what the WebSockets of one path need.
type config struct {
	rules
	name           string            // what the names of connections begin with
	open           connection.Opener // makes the session of a connection
	limits         connection.Limits
	messageBytes   int // of one message at most
	maxConnections int // at a time; further ones are closed with 1013
	pingEvery      time.Duration
	pongWithin     time.Duration
	log            *slog.Logger
}

// The liveness of a connection (exacta §2.2).
const (
	pingEvery  = 30 * time.Second
	pongWithin = 90 * time.Second
)

// configOf returns what a server and its settings ask for.
func configOf(srv *exacta.Server, carrier exacta.Carrier, path string) config {
	c := srv.Config()
	return config{
		rules:          rules{path: path, origins: c.WSOrigins, token: func() string { return "" }},
		name:           "exacta-" + carrier.String(),
		open:           func(p *connection.Port) connection.Session { return srv.Open(p, carrier, nil) },
		limits:         srv.SocketLimits(),
		messageBytes:   c.MaxMessageBytes,
		maxConnections: c.MaxConnections,
		pingEvery:      pingEvery,
		pongWithin:     pongWithin,
		log:            c.Logger,
	}
}

// sockets serves WebSockets of one path.
type sockets struct {
	cfg    config
	host   *stream.Host
	frames sync.Pool // of *[]byte

	refused  atomic.Int64 // by origin or token
	stopping atomic.Bool
	mu       sync.Mutex
	conns    map[*conn]struct{} // nil: no more are served
	running  sync.WaitGroup     // one for each of them; Add only under mu
}

func newSockets(c config) *sockets {
	s := &sockets{cfg: c, conns: make(map[*conn]struct{})}
	s.frames.New = func() any { return new([]byte) }
	s.host = stream.NewHost(stream.Config{
		Protocol:       "exacta",
		Name:           c.name,
		MaxConnections: c.maxConnections,
		Logger:         c.log,
		Limits:         c.limits,
		OnTick:         s.turnWheel,
	})
	return s
}

// ServeHTTP implements http.Handler. It returns when the connection is closed.
func (s *sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := s.cfg.refuse(w, r); status != 0 {
		if status == http.StatusForbidden || status == http.StatusUnauthorized {
			s.refused.Add(1)
		}
		return
	}
	if !s.enter(nil) {
		http.Error(w, "the server ends", http.StatusServiceUnavailable)
		return
	}
	defer s.running.Done()
	c, err := s.accept(w, r)
	if err != nil {
		s.cfg.log.Debug("no WebSocket", "remote", r.RemoteAddr, "err", err)
		return
	}
	// The listener may end a request whose sender is no longer let in.
	defer context.AfterFunc(r.Context(), c.below.cut)()
	s.serve(c, r.RemoteAddr)
}

// enter counts a handshake, and notes a connection.
func (s *sockets) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c == nil && s.conns != nil:
		s.running.Add(1)
	case s.conns != nil:
		s.conns[c] = struct{}{}
	}
	return s.conns != nil
}

func (s *sockets) serve(c *conn, remote string) {
	if !s.enter(c) {
		c.below.cut()
	}
	err := s.host.ServeSession(c, remote, func(p *connection.Port) connection.Session {
		l := p.Listener()
		l.Addr = c.below.LocalAddr().String()
		p.From(&l)
		return &session{Session: s.cfg.open(p)}
	})
	s.cfg.log.Debug("WebSocket ends", "remote", remote, "err", err)
	_ = c.Close()
	<-c.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// shutdown has what was asked for answered, until ctx ends, and closes all connections.
func (s *sockets) shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	err := s.host.Shutdown(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.running.Wait()
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.below.cut()
	}
	s.conns = nil
	s.mu.Unlock()
	<-gone
	return err
}

// session is that of lines, over a WebSocket.
type session struct {
	connection.Session
	over bool // the peer has ended
}

// EOF implements connection.Session.
func (s *session) EOF(now connection.Instant) {
	s.over = true
	s.Session.EOF(now)
}

// Report implements connection.Reporter.
func (s *session) Report() (inFlight, streams int64) {
	if r, ok := s.Session.(connection.Reporter); ok {
		return r.Report()
	}
	return 0, 0
}

// Load implements connection.Session. A WebSocket whose peer has ended takes no more answers: what
// was asked for goes on without it (exacta §2.6).
func (s *session) Load() connection.Load {
	l := s.Session.Load()
	l.Done = l.Done || s.over
	return l
}

// liveness is what a connection knows of its pings. All connections share one wheel, which looks at
// them twice a second; a goroutine runs only while a frame is due (exacta §2.2, §10).
type liveness struct {
	heard   atomic.Int64 // when the last pong came, or the connection began: Mono of connection.Instant
	asked   int64        // when the last ping was due, of the wheel
	due     atomic.Bool  // a ping is to be sent
	pings   chan []byte  // one slot: the last ping of the peer that was not answered
	sending atomic.Bool
}

// turnWheel pings peers, and ends the connections of those that do not answer.
func (s *sockets) turnWheel() {
	now := connection.Now().Mono
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		heard := c.live.heard.Load()
		switch c.live.asked = max(c.live.asked, heard); {
		case now-heard >= int64(s.cfg.pongWithin):
			c.close(websocket.StatusGoingAway, "no pong")
		case now-c.live.asked >= int64(s.cfg.pingEvery):
			c.live.asked = now
			c.live.due.Store(true)
			c.sendControls()
		}
	}
}

// pinged notes a ping. It is not answered here: a peer that reads slowly would hold up what it
// sends. Of several only the last one is answered (RFC 6455 §5.5.3).
func (c *conn) pinged(_ context.Context, payload []byte) bool {
	select {
	case <-c.live.pings:
	default:
	}
	c.live.pings <- bytes.Clone(payload)
	c.sendControls()
	return false
}

func (c *conn) ponged(context.Context, []byte) { c.live.heard.Store(connection.Now().Mono) }

// sendControls has pings and answers to pings sent. It does not wait.
func (c *conn) sendControls() {
	if c.live.sending.CompareAndSwap(false, true) {
		go func() {
			for c.sendControl() {
			}
		}()
	}
}

// sendControl sends one frame that is due. It reports false, and lets another goroutine begin, if
// there is none.
func (c *conn) sendControl() bool {
	var frame []byte
	select {
	case payload := <-c.live.pings:
		frame = appendFrame(nil, fin|opPong, payload)
	default:
		if c.live.due.Swap(false) {
			frame = appendFrame(nil, fin|opPing, nil)
		}
	}
	if frame != nil {
		_ = c.send(frame) // a connection that is gone ends
		return true
	}
	c.live.sending.Store(false)
	again := len(c.live.pings) > 0 || c.live.due.Load() // since it was looked at
	return again && c.live.sending.CompareAndSwap(false, true)
}

package peer

import (
	"bufio"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"trunkline/engine/connection"
)

// Defaults and limits of Config.
const (
	// defaultMaxConnections is how many connections a node takes from other nodes.
	defaultMaxConnections = 4096
	// handshakeWithin bounds a handshake, TLS included.
	handshakeWithin = 5 * time.Second
	// maxGreeting is how many handshakes go on at a time. One more ends the oldest one, once that
	// had shortGreeting: many clients that come at once, as after a takeover, are served in turn.
	maxGreeting   = 256
	shortGreeting = 250 * time.Millisecond
	// roomChecks is how often is looked whether one more handshake may begin.
	roomChecks = 5 * time.Millisecond
	// refusalsEvery is how often a refusal is a warning; further ones are for debugging.
	refusalsEvery = time.Second
)

// Config is what the nodes of a cluster agree on.
type Config struct {
	// Cluster and Node are the names of the cluster and of this node, of at most 255 bytes.
	Cluster, Node string
	// ServerTLS and ClientTLS have all connections between nodes encrypted, and both sides show
	// certificates, which have the host of their address. nil: the bytes are in clear.
	ServerTLS, ClientTLS *tls.Config
	// MaxConnections bounds the connections that other nodes forward to this one. 0:
	// defaultMaxConnections.
	MaxConnections int
	// Term is that of a lease: what was on its way from a client for longer takes no effect. 0: it
	// does.
	Term   time.Duration
	Logger *slog.Logger
}

func (c *Config) check() error {
	if len(c.Cluster) > maxText || len(c.Node) > maxText {
		return fmt.Errorf("cannot use the names of cluster and node: at most %d bytes each", maxText)
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultMaxConnections
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Server is the listener of a node for other nodes. Its methods may be called from any goroutine.
type Server struct {
	cfg  Config
	ln   net.Listener
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	warn *rate.Limiter // of refusals

	pulses chan struct{} // one for each

	mu       sync.Mutex
	services map[place]*service
	open     int
	greeting list.List // of greeting, oldest first
}

// place is what a connection is for.
type place struct {
	service   string
	partition uint32
}

// NewServer returns a server on ln, which it owns from then on.
func NewServer(ln net.Listener, cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Server{cfg: cfg, ln: ln, ctx: ctx, stop: stop, warn: rate.NewLimiter(rate.Every(refusalsEvery), 1), services: make(map[place]*service), pulses: make(chan struct{}, maxPulses)}, nil
}

// Serve accepts connections until Close, and returns nil then.
func (s *Server) Serve() error {
	for {
		nc, err := s.ln.Accept()
		if s.ctx.Err() != nil {
			if err == nil {
				_ = nc.Close()
			}
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("cannot accept other nodes: %w", err)
			}
			s.cfg.Logger.Warn("cannot accept a connection of another node, trying again", "err", err)
			connection.Pause(s.ctx, acceptPause)
			continue
		}
		greeted := s.begin(nc)
		s.wg.Go(func() { s.greet(nc, greeted) })
	}
}

// acceptPause is what passes after an error of a listener, such as no free descriptor.
const acceptPause = 50 * time.Millisecond

// greeting is a handshake that goes on.
type greeting struct {
	net.Conn
	since time.Time
}

// begin notes a handshake, once there is room for it; greeted is called at its end.
func (s *Server) begin(nc net.Conn) (greeted func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.greeting.Len() >= maxGreeting {
		if oldest := s.greeting.Front(); time.Since(oldest.Value.(greeting).since) >= shortGreeting {
			nc := s.greeting.Remove(oldest).(greeting).Conn
			if c, ok := nc.(*net.TCPConn); ok {
				_ = c.SetLinger(0) // an end without a word is that of an earlier version (pulse)
			}
			_ = nc.Close()
			break
		}
		s.mu.Unlock()
		time.Sleep(roomChecks)
		s.mu.Lock()
	}
	e := s.greeting.PushBack(greeting{nc, time.Now()})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.greeting.Remove(e)
	}
}

// greet makes the handshake and hands the connection to its service, which may be long in accepting
// it.
func (s *Server) greet(nc net.Conn, greeted func()) {
	release := context.AfterFunc(s.ctx, func() { _ = nc.Close() })
	defer release()
	_ = nc.SetDeadline(time.Now().Add(handshakeWithin))
	from := &arrivals{Conn: nc, at: connection.Mono()}
	var c net.Conn = from
	if s.cfg.ServerTLS != nil {
		c = tls.Server(from, s.cfg.ServerTLS)
	}
	h, err := greet(c, s.cfg.Cluster)
	if err == nil && h.dated && h.service == pulseService {
		greeted()
		s.beat(c, nc)
		return
	}
	var svc *service
	if err == nil {
		svc, err = s.admit(place{h.service, h.partition})
	}
	greeted()
	if err != nil {
		s.refuse(c, nc, err)
		return
	}
	fc := &conn{Conn: c, raw: nc, in: c, client: address(h.client), closed: s.released}
	if h.dated {
		fc.in = &pieces{in: bufio.NewReaderSize(c, piecesAhead), from: from, term: int64(s.cfg.Term)}
	}
	if s.cfg.ServerTLS == nil {
		fc.Conn = nc
	}
	if _, err = c.Write([]byte{byte(accepted)}); err != nil || nc.SetDeadline(time.Time{}) != nil || !release() {
		_ = fc.Close()
		return
	}
	select {
	case svc.conns <- fc:
	case <-svc.ctx.Done():
		_ = fc.Close()
	}
}

// refuse ends a connection that did not come to be one.
func (s *Server) refuse(c, nc net.Conn, why error) {
	level := slog.LevelWarn
	if r := Refusal(0); errors.As(why, &r) {
		_, _ = c.Write([]byte{byte(r)})
		if r == NotOwner {
			level = slog.LevelDebug // each takeover has them: for a moment others ask the former owner
		}
	}
	if level == slog.LevelWarn && !s.warn.Allow() {
		level = slog.LevelDebug
	}
	s.cfg.Logger.Log(s.ctx, level, "refusing the connection of another node", "peer", nc.RemoteAddr().String(), "err", why)
	_ = c.Close()
}

// admit takes a place for a connection to a service.
func (s *Server) admit(at place) (*service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	svc := s.services[at]
	switch {
	case svc == nil:
		return nil, NotOwner
	case s.open >= s.cfg.MaxConnections:
		return nil, Full
	}
	s.open++
	return svc, nil
}

func (s *Server) released() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// SetMaxConnections changes Config.MaxConnections. Connections above a lower limit stay open.
func (s *Server) SetMaxConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.MaxConnections = n
}

// Open returns how many connections of other nodes are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Service returns a listener of the connections that other nodes forward to a service of a
// partition of this node. While it is open the node is the owner; its Close ends that, and
// connections that were not accepted. A second one for a service replaces the first.
func (s *Server) Service(name string, partition int) net.Listener {
	ctx, stop := context.WithCancel(s.ctx)
	at := place{name, uint32(partition)}
	svc := &service{server: s, at: at, ctx: ctx, stop: stop, conns: make(chan *conn)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.services[at]; old != nil {
		old.stop()
	}
	s.services[at] = svc
	return svc
}

// Close ends the server and every handshake. Connections that a service has accepted stay.
func (s *Server) Close() error {
	s.stop()
	err := s.ln.Close()
	s.wg.Wait()
	return err
}

// service is the listener of one service.
type service struct {
	server *Server
	at     place
	ctx    context.Context
	stop   context.CancelFunc
	conns  chan *conn
}

// Accept implements net.Listener.
func (l *service) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *service) Close() error {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.services[l.at] == l {
		delete(s.services, l.at)
	}
	l.stop()
	return nil
}

// Addr implements net.Listener.
func (l *service) Addr() net.Addr { return l.server.ln.Addr() }

// conn is the connection of a client that another node forwards.
type conn struct {
	net.Conn
	raw    net.Conn // below TLS
	in     io.Reader
	client net.Addr
	once   sync.Once
	closed func()
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// RemoteAddr returns the address of the client at the other node.
func (c *conn) RemoteAddr() net.Addr { return c.client }

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.raw }

// CloseWrite ends the sending direction.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.closed)
	return err
}

// address is one that came as text.
type address string

// Network implements net.Addr.
func (address) Network() string { return "forwarded" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

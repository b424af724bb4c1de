// Package reactor owns connections on event loops and moves bytes between their sockets and
// connection.Sessions. It is the only importer of gnet, of which it uses the loops and nothing
// else: no listener, no outbound buffer, no timer, no asynchronous call per request.
//
// A turn is one read, one Feed, one write:
//
//	epoll ─► read(2) ─► Session.Feed(in, out) ─► write(2)
//	                        │ rest of a frame
//	                        ▼
//	                      carry (pooled)
//
// and a round serves everything that did not come from a socket, started by one byte on the loop's
// bell (a socketpair):
//
//	Port.Wake ─► inbox ─┐
//	Yield, more ────────┼─► ready list ─► Pump, Feed(carry), write(2), each connection once
//	ticker ─────────────┘   timers, drain
//
// A loop never waits. A connection that cannot be served without waiting leaves: its descriptor is
// duplicated and handed to engine/stream with everything known of it, for good. It leaves when the
// socket does not take a write whole, when its peer half-closed with answers outstanding, and when
// unread bytes pile up, for gnet cannot pause reading. So output is never buffered here, and
// nothing pending is lost at close.
//
// Everything about a connection and its loop belongs to the loop's goroutine; only the inbox, the
// bell and the orders (timers, drain) may be touched from elsewhere.
package reactor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"trunkline/engine/connection"
	"trunkline/engine/internal/bufpool"
	"trunkline/engine/stream"
)

// readBuffer is how much one read takes: the size of each loop's one buffer.
const readBuffer = 64 << 10

// carries returns the pool of buffers for unread bytes. Where they are charged to a budget, it
// keeps none that would be charged to a connection with little in it.
func carries(l *connection.Limits) *bufpool.Pool {
	if l.Input == nil {
		return bufpool.New(0)
	}
	return bufpool.New(connection.OwnInput)
}

// Config is what a Server needs.
type Config struct {
	stream.Config
	// Loops is the number of event loops; zero stands for half the processors, at least one: the
	// rest is for the other goroutines of the process and for its clients.
	Loops int
}

// Server runs the event loops. Its methods may be called from any goroutine.
type Server struct {
	limits connection.Limits
	log    *slog.Logger
	now    func() connection.Instant
	gate   *stream.Gate
	stats  *stream.Stats
	host   *stream.Host // connections that are not on a loop
	carry  *bufpool.Pool

	client *gnet.Client
	loops  []*loop

	joining  sync.WaitGroup // goroutines that bring connections to their loops
	lent     chan struct{}  // how many of them there may be
	stopping atomic.Bool    // the loops are to end
	shutdown sync.Once
	ended    error
	listing  sync.Mutex // held by Connections
	dropping sync.Mutex // held by Drop

	fatalMu sync.Mutex
	fatal   chan error // one slot; closed only with stopping set
}

// New starts the loops. gnet keeps one logger for the whole process, for what it cannot attribute
// to a server: the last Server started gets those lines.
func New(cfg Config) (*Server, error) {
	if cfg.Open == nil {
		return nil, errors.New("cannot start event loops: no session opener")
	}
	cfg.Loops = cmp.Or(max(cfg.Loops, 0), max(1, runtime.GOMAXPROCS(0)/2))
	cfg.Config = cfg.WithDefaults()
	s := &Server{
		limits: cfg.Limits, log: cfg.Logger, now: cfg.Now, carry: carries(&cfg.Limits),
		lent: make(chan struct{}, cfg.Files.Share(joinsInFlight)), fatal: make(chan error, 1),
	}
	if err := s.startLoops(cfg.Loops); err != nil {
		return nil, err
	}
	ready := make(chan struct{}) // the host's clock ticks before NewHost returns
	cfg.OnTick = func() { <-ready; s.order(dueScan) }
	s.host = stream.NewHost(cfg.Config)
	s.gate, s.stats = s.host.Gate, s.host.Stats
	close(ready)
	return s, nil
}

// startLoops starts gnet without any listener. Its client engine is the part of gnet that runs that
// way and that hands out its loops: each enrolled connection goes to the loop with the fewest, so
// as many bells as loops land on one loop each.
func (s *Server) startLoops(n int) error {
	var err error
	s.client, err = gnet.NewClient(&handler{},
		gnet.WithNumEventLoop(n), gnet.WithReadBufferCap(readBuffer), gnet.WithLogger(gnetLogger{s.log}))
	if err == nil {
		err = s.client.Start()
	}
	if err != nil {
		return fmt.Errorf("cannot start event loops: %w", err)
	}
	seen := make(map[gnet.EventLoop]bool)
	for range n {
		l, err := newLoop(s)
		if err == nil && seen[l.el] {
			err = errors.New("two bells on one loop")
		}
		if err != nil {
			s.stopLoops()
			return fmt.Errorf("cannot start event loops: %w", err)
		}
		seen[l.el] = true
		s.loops = append(s.loops, l)
	}
	return nil
}

func (s *Server) stopLoops() {
	s.stopping.Store(true)
	_ = s.client.Stop()
	for _, l := range s.loops {
		l.retire()
	}
}

// Serve accepts TCP and unix connections and serves them on the loops until Shutdown, which closes
// ln; then it returns nil. Several may be served at once. Errors of ln never end it.
func (s *Server) Serve(ln net.Listener) error {
	from := s.host.Listener(ln)
	return s.host.Accept(ln, func(nc net.Conn) { s.join(nc, from) })
}

// ServeStreams serves a listener by goroutines, as TLS needs it, under the same limits.
func (s *Server) ServeStreams(ln net.Listener) error { return s.host.ServeListener(ln) }

// Stats reads the counters.
func (s *Server) Stats() stream.Snapshot { return s.host.Snapshot() }

// Totals returns how many connections are open, and the bytes read and written by all there were.
func (s *Server) Totals() (open, in, out int64) { return s.host.Totals() }

// Open returns how many connections are open, on loops and off.
func (s *Server) Open() int { return s.gate.Open() }

// SetMaxConnections changes Config.MaxConnections, as Gate.SetMax does.
func (s *Server) SetMaxConnections(n int) { s.gate.SetMax(n) }

// Probe returns nil once every loop has come round since the call, or an error that names the first
// one that has not when ctx ends. One caller at a time.
func (s *Server) Probe(ctx context.Context) error {
	for _, l := range s.loops {
		select {
		case <-l.echo: // of a probe that was not waited for
		default:
		}
	}
	s.order(dueEcho)
	for i, l := range s.loops {
		select {
		case <-l.echo:
		case <-ctx.Done():
			return fmt.Errorf("event loop %d of %d does not come round: %w", i+1, len(s.loops), ctx.Err())
		}
	}
	return nil
}

// closeFatal ends the wait for Done.
func (s *Server) closeFatal() {
	s.fatalMu.Lock()
	defer s.fatalMu.Unlock()
	s.stopping.Store(true)
	close(s.fatal)
}

// Done yields an error if a loop ends without being asked to, and is closed by Shutdown.
func (s *Server) Done() <-chan error { return s.fatal }

// Shutdown drains (kernel-ipc §2.7): it stops accepting, drains every session, and closes each
// connection when its session is done and its output sent; after Limits.DrainWithin, or when ctx
// ends, what is left is closed. It returns when no goroutine is left, or with ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.shutdown.Do(func() { s.ended = s.drain(ctx) })
	return s.ended
}

func (s *Server) drain(ctx context.Context) error {
	defer s.closeFatal()
	s.host.Drain()
	s.order(dueDrain)
	grace, cancel := context.WithTimeout(ctx, time.Duration(s.limits.DrainWithin))
	defer cancel()
	s.gate.AwaitRest(grace, s.limits.DrainWithin)
	s.order(dueFinish)
	_ = s.gate.Wait(grace)
	s.order(dueForce)
	stopped := make(chan struct{})
	go func() {
		s.joining.Wait()
		s.stopLoops()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
	}
	return s.host.Close(ctx)
}

func (s *Server) order(what uint32) {
	for _, l := range s.loops {
		l.order(what)
	}
}

// loopEnded is called by a loop whose bell was closed.
func (s *Server) loopEnded(err error) {
	s.fatalMu.Lock()
	defer s.fatalMu.Unlock()
	if s.stopping.Load() {
		return
	}
	select {
	case s.fatal <- fmt.Errorf("cannot go on: an event loop ended: %w", err):
	default:
	}
}

// gnetLogger logs gnet's lines one level lower: gnet warns of what is ordinary here, such as an
// event of a connection that the same round has closed.
type gnetLogger struct{ log *slog.Logger }

func (g gnetLogger) put(l slog.Level, format string, args []any) {
	if g.log.Enabled(context.Background(), l) {
		g.log.Log(context.Background(), l, "gnet: "+fmt.Sprintf(format, args...))
	}
}

func (g gnetLogger) Debugf(string, ...any)             {}
func (g gnetLogger) Infof(string, ...any)              {}
func (g gnetLogger) Warnf(format string, args ...any)  { g.put(slog.LevelDebug, format, args) }
func (g gnetLogger) Errorf(format string, args ...any) { g.put(slog.LevelWarn, format, args) }
func (g gnetLogger) Fatalf(format string, args ...any) { g.put(slog.LevelError, format, args) }

package toolhost

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/idem"
	"trunkline/engine/link"
	"trunkline/engine/stream"
	"trunkline/handlers/toolhost/selector"
)

// Defaults of Config (toolhost §6).
const (
	DefaultToolTimeout = 30 * time.Second
	MaxToolTimeout     = 600 * time.Second
	defaultQueue       = 1024
	minExecutors       = 4
	specVersion        = "1.4.2"
)

// Config is what a Server is made of. Registry is needed; the zero value of the rest means the defaults.
type Config struct {
	Registry *Registry
	// ToolTimeout bounds a call of a tool that sets no limit of its own.
	ToolTimeout time.Duration
	// IdempotencyTTL is how long an outcome is kept. 0: 60 s.
	IdempotencyTTL time.Duration
	// Queue bounds the calls that wait for the executor or run on it; further ones are refused as overloaded.
	Queue int
	// Executors is how many built-in tools that block run at a time, and half as many more that
	// work long. 0: two for each CPU, at least four.
	Executors int
	// Files counts the descriptors of connections: with a low limit of open files fewer calls wait with files open. nil: no limit is known.
	Files *stream.Files
	// maxLine is the longest request line of a connection, without its end. 0: maxLine.
	MaxLine int
	// Unfinished bounds what all connections together hold of unfinished lines, in bytes. 0: defaultUnfinished.
	Unfinished int
	// Keys is the idempotency table, whose changes a journal may keep. nil: one that dies with the server.
	Keys *idem.Table
	// Journal is that journal; counts only beside Keys.
	Journal Journal
	// APIToken, if not empty, is asked of TCP connections; OperatorToken of those who issue leases.
	APIToken, OperatorToken string
	// EnforceLeases is where a tool above tier 0 needs a lease (toolhost §4.4).
	EnforceLeases Enforcement
	// Policy chooses tools for runs that want one. nil: the heuristic does.
	Policy *selector.Policy
	// Now reads the clocks. nil: the owner's.
	Now func() link.Instant
	// Events gets what happened (toolhost §4.12). nil: none. It is called from any goroutine and must be quick.
	Events func(Event)
	// EventsWanted reports whether a subscriber would see an event of that name now; where not, Events is not called and nothing is built for
	// it. It is asked several times in a call, so it must cost next to nothing and not allocate. nil: always.
	EventsWanted func(name string) bool
	// Logger gets crashes. nil: none.
	Logger *slog.Logger
}

// Enforcement is where leases are asked for.
type Enforcement uint8

// The settings of Config.EnforceLeases.
const (
	EnforceTCP Enforcement = iota // unset: on TCP connections
	EnforceOn
	EnforceOff
)

func (e Enforcement) on(via Transport) bool { return e == EnforceOn || e == EnforceTCP && via == TCP }

// Transport is how a session's bytes come.
type Transport uint8

// The transports (toolhost §2.3).
const (
	Stdin Transport = iota
	Unix
	TCP
)

// Server is what all sessions share. Its methods may be called from any goroutine.
type Server struct {
	cfg    Config
	idem   *idem.Table
	leases leases
	exec   executor
	calls  sync.Pool // of *call: idle sessions hold none
	drains drains
	clock  func() time.Time // of timestamps
	ctx    context.Context  // ended by Close
	cancel context.CancelFunc

	unfinished *link.Budget // of all its connections

	sessions atomic.Int64
	counts   []toolCounts // by Entry.index
}

// New makes a server. Close ends it.
func New(cfg Config) *Server {
	setDefault(&cfg.ToolTimeout, DefaultToolTimeout)
	setDefault(&cfg.Queue, defaultQueue)
	setDefault(&cfg.Executors, max(2*runtime.GOMAXPROCS(0), minExecutors))
	setDefault(&cfg.MaxLine, maxLine)
	cfg.MaxLine = min(cfg.MaxLine, maxLine)
	setDefault(&cfg.Unfinished, defaultUnfinished)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, counts: make([]toolCounts, cfg.Registry.len()), unfinished: link.NewBudget(cfg.Unfinished)}
	s.clock = s.wall
	s.calls.New = func() any { return new(call) }
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.exec = newExecutor(cfg.Queue, cfg.Executors, cfg.Files.Share(maxWaits))
	if s.idem = cfg.Keys; s.idem == nil {
		s.cfg.Journal = nil
		s.idem = idem.New(idem.Config{TTL: cfg.IdempotencyTTL, Now: s.mono})
	}
	return s
}

// setDefault sets what is not positive to its default.
func setDefault[T int | time.Duration](value *T, without T) {
	if *value <= 0 {
		*value = without
	}
}

// now returns the owner's reading of the clocks, or the test's.
func (s *Server) now(owner link.Instant) link.Instant {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return owner
}

// mono reads the monotonic clock, ns.
func (s *Server) mono() int64 {
	if s.cfg.Now != nil {
		return s.cfg.Now().Mono
	}
	return link.Mono()
}

// closeWithin is how long Close waits for tools that were asked to end: one that hangs in the system must not keep the server.
const closeWithin = 2 * time.Second

// Drain waits until no tool runs off the loops, for any caller, or until ctx ends (toolhost §2.3).
// Sessions must have ended, or refuse what is new.
func (s *Server) Drain(ctx context.Context) {
	idle, stop := context.WithCancel(ctx)
	defer stop()
	s.drains.wait(idle, stop)
	defer s.drains.leave(idle)
	if !s.drains.idle() {
		<-idle.Done()
	}
}

// Close ends the tools that run, and those that are closed as well (workers): what they did is not
// known then, see Drain. Sessions must have ended before.
func (s *Server) Close() error {
	s.cancel()
	if !s.exec.wait(closeWithin) {
		s.cfg.Logger.Warn("tools do not end and are left", "calls", s.exec.pending.Load())
	}
	for _, e := range s.cfg.Registry.sorted {
		if c, ok := e.Tool.(io.Closer); ok {
			_ = c.Close()
		}
	}
	return nil
}

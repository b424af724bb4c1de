// Package ipc serves the kernel protocol (kernel-ipc): length-prefixed MessagePack frames.
//
// A Service is one endpoint over the runtime of the process; Open makes the session of one
// connection. methods.txt is the method table. Each group of methods has a file: process.go,
// quota.go, list.go, status.go (service kernel), publish.go, query.go, streams.go (commbus),
// engine.go, orchestration.go. session.go moves bytes, turn.go takes a request to its handler,
// args.go has the typing rules of request bodies.
//
// A handler runs on the goroutine that read the request and never waits. What must wait comes back
// through the session's mailbox: an answered query, a long listing.
package ipc

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/orchestration"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/engine/stream"
	"trunkline/handlers/ipc/message"
)

// Config holds the settings of one endpoint (kernel-ipc §6) beside those of its runtime. Zero
// fields take the defaults.
type Config struct {
	MaxConnections          int // only named in the refusal; the owner of connections counts them
	DefaultQueryTimeout     time.Duration
	MaxQueryTimeout         time.Duration
	MaxStreamsPerConnection int
	MaxEventTypes           int // of one stream, and as many patterns
	UnsentBytes             int // as in connection.Limits
	// AnswerBufferBytes bounds the answers to queries that wait for callers who do not read;
	// further ones become errors.
	AnswerBufferBytes        int64
	TurnBytes, FramesPerTurn int
	// Version is the program's, and ReadTimeout the owner's idle and frame timer: Ping shows both.
	Version     string
	ReadTimeout time.Duration
	// Recorder gets the latencies of the methods; nil: they are not kept.
	Recorder *obs.Recorder
}

// Defaults of Config (kernel-ipc §6), and of who owns the connections.
const (
	DefaultQueryTimeout    = 5 * time.Second
	DefaultMaxQueryTimeout = 30 * time.Second
	DefaultMaxStreams      = 32 // of a connection
	DefaultMaxEventTypes   = 256
	DefaultReadTimeout     = 30 * time.Second
	DefaultWriteTimeout    = 10 * time.Second
	DefaultShutdownGrace   = 5 * time.Second
	// defaultAnswerBytes is what a stream may have waiting.
	defaultAnswerBytes = 16 << 20
)

// DefaultFramesPerTurn is how many frames of one connection are executed before others get their
// turn (kernel-ipc §2.5).
const DefaultFramesPerTurn = 256

func (c Config) withDefaults() Config {
	c.MaxConnections = cmp.Or(c.MaxConnections, stream.DefaultMaxConnections)
	c.DefaultQueryTimeout = cmp.Or(c.DefaultQueryTimeout, DefaultQueryTimeout)
	c.MaxQueryTimeout = cmp.Or(c.MaxQueryTimeout, DefaultMaxQueryTimeout)
	c.MaxStreamsPerConnection = cmp.Or(c.MaxStreamsPerConnection, DefaultMaxStreams)
	c.MaxEventTypes = cmp.Or(c.MaxEventTypes, DefaultMaxEventTypes)
	c.UnsentBytes = cmp.Or(c.UnsentBytes, connection.DefaultUnsentBytes)
	c.TurnBytes = cmp.Or(c.TurnBytes, connection.DefaultTurnBytes)
	c.FramesPerTurn = cmp.Or(c.FramesPerTurn, DefaultFramesPerTurn)
	c.AnswerBufferBytes = cmp.Or(c.AnswerBufferBytes, defaultAnswerBytes)
	return c
}

// Service is one kernel endpoint: the protocol over the runtime of the process, and what the
// connections share. Its methods are safe for concurrent use.
type Service struct {
	cfg      Config
	rt       *runtime.Runtime
	kernel   *kernel.Kernel // those of rt
	bus      *bus.Bus
	orch     *orchestration.Engine
	requests *idem.Table
	store    *store.Store
	maxFrame int
	log      *slog.Logger
	routes   *routes
	pong     message.Pong // without the payload
	limits   atomic.Pointer[Limits]
	calls    []callCounters // by method, as in the method table; the last one counts what reached no method
	turns    sync.Pool

	walking atomic.Int64  // listings that run beside the loop, waiting ones included
	walkers chan struct{} // bounds the ones that run at a time
	meter   *obs.Meter    // rows as in calls
}

// NewService returns the endpoint of rt, which its owner starts and closes.
func NewService(cfg Config, rt *runtime.Runtime) *Service {
	cfg = cfg.withDefaults()
	s := &Service{
		cfg: cfg, rt: rt, kernel: rt.Kernel, bus: rt.Bus, orch: rt.Orchestration, requests: rt.Requests, store: rt.Store,
		maxFrame: rt.Config.MaxFrameBytes, log: rt.Config.Logger,
		routes:  newRoutes(methods),
		calls:   make([]callCounters, len(methods)+1),
		meter:   cfg.Recorder.Meter("ipc", meterNames()),
		walkers: make(chan struct{}, maxWalkers),
	}
	s.pong = newPong(s)
	s.SetLimits(cfg.limits())
	s.turns.New = func() any { return newTurn(s) }
	return s
}

// Runtime returns the state that the endpoint serves.
func (s *Service) Runtime() *runtime.Runtime { return s.rt }

// Open makes the session of a new connection; it is a connection.Opener.
func (s *Service) Open(p *connection.Port) connection.Session {
	return &session{svc: s, port: p}
}

// AppendRefusal appends the frame for a connection beyond the limit (kernel-ipc §2.6).
func (s *Service) AppendRefusal(dst []byte) []byte {
	start := len(dst)
	dst = frame.Begin(dst, frame.Error)
	dst = mpack.AppendError(dst, nil, wire.ResourceExhausted.String(), "Connection limit reached; try again later",
		mpack.Extras{Retryable: true, MaxConnections: s.limits.Load().MaxConnections})
	frame.Finish(dst, start)
	return dst
}

// now returns the owner's reading of the clocks, or the test's.
func (s *Service) now(owner connection.Instant) connection.Instant { return s.rt.Now(owner) }

// Limits are the fields of Config that a running service can change.
type Limits struct {
	MaxConnections                       int
	DefaultQueryTimeout, MaxQueryTimeout time.Duration
	MaxStreamsPerConnection              int
	MaxEventTypes                        int
}

// SetLimits changes the limits for what is asked from now on. None is zero.
func (s *Service) SetLimits(l Limits) { s.limits.Store(&l) }

// limits returns those of c.
func (c *Config) limits() Limits {
	return Limits{
		MaxConnections: c.MaxConnections, DefaultQueryTimeout: c.DefaultQueryTimeout, MaxQueryTimeout: c.MaxQueryTimeout,
		MaxStreamsPerConnection: c.MaxStreamsPerConnection, MaxEventTypes: c.MaxEventTypes,
	}
}

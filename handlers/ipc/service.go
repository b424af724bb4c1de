package ipc

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/idem"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/engine/obs"
	"trunkline/engine/orchestration"
	"trunkline/engine/store"
	"trunkline/handlers/ipc/message"
)

// Config holds the settings of one endpoint (kernel-ipc §6). Zero fields take the defaults.
type Config struct {
	MaxFrameBytes           int
	MaxConnections          int // only named in the refusal; the owner of connections counts them
	KernelQueueCapacity     int
	DefaultQueryTimeout     time.Duration
	MaxQueryTimeout         time.Duration
	StreamBufferEvents      int
	StreamBufferBytes       int64
	StreamBufferTotalBytes  int64
	SubscriptionNameBytes   int64
	MaxStreamsPerConnection int
	MaxEventTypes           int // of one stream, and as many patterns
	MaxEventPatterns        int // of all streams together
	MaxProcesses            int
	SmallPages              bool // large tables do not ask for huge pages
	MaxRateLimitUsers       int
	DequeueLease            time.Duration // negative: no lease
	CleanupInterval         time.Duration
	ProcessRetention        time.Duration
	MaxEnvelopes            int
	MaxEnvelopeBytes        int64 // of all stored envelopes together
	EnvelopeRetention       time.Duration
	MaxSessions             int
	MaxSessionBytes         int64 // of all sessions together
	SessionRetention        time.Duration
	UnsentBytes             int // as in link.Limits
	// MaxEventPatternsPerConnection bounds those of MaxEventPatterns that one connection has.
	MaxEventPatternsPerConnection int
	// AnswerBufferBytes bounds the answers to queries that wait for callers who do not read;
	// further ones become errors.
	AnswerBufferBytes        int64
	TurnBytes, FramesPerTurn int
	// Journaled has every change recorded in the journal that Recover brings, and replies wait for
	// it.
	Journaled bool
	// IdempotencyTTL is how long an outcome stays in the table that Keys returns. 0: idem's
	// default.
	IdempotencyTTL time.Duration
	// IdempotencyWindow is for how long the answer to a request with an idempotency_key is kept,
	// MaxIdempotencyKeys how many there are, and MaxIdempotencyBytes what they have together.
	IdempotencyWindow   time.Duration
	MaxIdempotencyKeys  int
	MaxIdempotencyBytes int64
	// Partitions is how many services of a cluster share the keys, and Partition which of them this
	// one is: what it names itself, it also owns. 0 or 1: there is no other.
	Partition, Partitions int
	// Machines are those of other protocols in the same process: there is one journal for all.
	Machines []store.Machine
	// A snapshot is taken when the journal has grown by SnapshotBytes since the last one, and by as
	// much as that one was, or after SnapshotInterval if anything changed.
	SnapshotBytes    int64
	SnapshotInterval time.Duration
	// Version is the program's, and ReadTimeout the owner's idle and frame timer: Ping shows both.
	Version     string
	ReadTimeout time.Duration
	// Recorder gets the latencies of the methods; nil: they are not kept.
	Recorder *obs.Recorder
	// Now overrides the clock that the connection's owner reads, for tests.
	Now    func() link.Instant
	Logger *slog.Logger
}

// defaultAnswerBytes is the default of Config.AnswerBufferBytes: what a stream may have waiting.
const defaultAnswerBytes = 16 << 20

// DefaultFramesPerTurn is how many frames of one connection are executed before others get their
// turn (kernel-ipc §2.5).
const DefaultFramesPerTurn = 256

func (c Config) withDefaults() Config {
	setDefault(&c.MaxFrameBytes, wire.DefaultMaxFrame)
	setDefault(&c.MaxConnections, 1000)
	setDefault(&c.KernelQueueCapacity, 2048)
	setDefault(&c.DefaultQueryTimeout, 5*time.Second)
	setDefault(&c.MaxQueryTimeout, 30*time.Second)
	setDefault(&c.StreamBufferEvents, bus.DefaultStreamEvents)
	setDefault(&c.StreamBufferBytes, bus.DefaultStreamBytes)
	setDefault(&c.StreamBufferTotalBytes, bus.DefaultTotalBytes)
	setDefault(&c.SubscriptionNameBytes, bus.DefaultNameBytes)
	setDefault(&c.MaxStreamsPerConnection, 32)
	setDefault(&c.MaxEventTypes, 256)
	setDefault(&c.MaxEventPatterns, bus.DefaultPatterns)
	setDefault(&c.MaxEventPatternsPerConnection, bus.DefaultPortPatterns)
	setDefault(&c.MaxProcesses, 1_000_000)
	setDefault(&c.MaxRateLimitUsers, 100_000)
	setDefault(&c.DequeueLease, 30*time.Second)
	setDefault(&c.CleanupInterval, 300*time.Second)
	setDefault(&c.ProcessRetention, 86400*time.Second)
	setDefault(&c.IdempotencyWindow, 24*time.Hour)
	setDefault(&c.MaxIdempotencyKeys, 100_000)
	setDefault(&c.UnsentBytes, link.DefaultUnsentBytes)
	setDefault(&c.TurnBytes, link.DefaultTurnBytes)
	setDefault(&c.FramesPerTurn, DefaultFramesPerTurn)
	setDefault(&c.AnswerBufferBytes, defaultAnswerBytes)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.DequeueLease = max(c.DequeueLease, 0)
	return c
}

func setDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// Service is one kernel endpoint: the process table, the bus, the pipelines and what the
// connections share. Its methods are safe for concurrent use.
type Service struct {
	cfg      Config
	kernel   *kernel.Kernel
	bus      *bus.Bus
	orch     *orchestration.Engine
	routes   *routes
	pong     message.Pong // without the payload
	limits   atomic.Pointer[Limits]
	progress progress
	keys     *idem.Table // of other protocols; nil where nothing is journaled
	requests *idem.Table // of requests with an idempotency_key
	store    *store.Store
	calls    []callCounters // by method, as in the method table; the last one counts what reached no method
	turns    sync.Pool

	walking atomic.Int64  // listings that run beside the loop, waiting ones included
	walkers chan struct{} // bounds the ones that run at a time

	stop    chan struct{}
	stopped sync.WaitGroup
	meter   *obs.Meter // rows as in calls
}

// NewService returns an endpoint with an empty process table. Start begins its periodic work.
func NewService(cfg Config) *Service {
	cfg = cfg.withDefaults()
	s := &Service{
		cfg:     cfg,
		routes:  newRoutes(methods),
		calls:   make([]callCounters, len(methods)+1),
		meter:   cfg.Recorder.Meter("ipc", meterNames()),
		walkers: make(chan struct{}, maxWalkers),
		stop:    make(chan struct{}),
		pong:    newPong(&cfg),
	}
	s.SetLimits(cfg.limits())
	s.progress.gate.Journal = func() link.Journal {
		if log := s.store.Log(); log != nil {
			return log
		}
		return nil
	}
	s.bus = bus.New(bus.Config{
		StreamEvents:  cfg.StreamBufferEvents,
		StreamBytes:   cfg.StreamBufferBytes,
		TotalBytes:    cfg.StreamBufferTotalBytes,
		NameBytes:     cfg.SubscriptionNameBytes,
		Patterns:      cfg.MaxEventPatterns,
		PortPatterns:  cfg.MaxEventPatternsPerConnection,
		MaxBody:       cfg.MaxFrameBytes,
		QueryCapacity: 1 + cfg.KernelQueueCapacity,
		OwnsQuery:     cfg.ownsQuery(),
		GapBody:       s.appendGap,
		EventBody: func(dst []byte, eventType, source string, payload []byte) []byte {
			return mpack.AppendEvent(dst, eventType, payload, s.now(link.Now()).Wall, source)
		},
	})
	var kernelJournal func(*kernel.Change) uint64
	var orchJournal func(*orchestration.Change) uint64
	requests := idem.Config{TTL: cfg.IdempotencyWindow, MaxEntries: cfg.MaxIdempotencyKeys,
		MaxBytes:   cfg.MaxIdempotencyBytes,
		NoEviction: true, Now: s.mono}
	if cfg.Journaled {
		kernelJournal, orchJournal = s.kernelChange, s.orchestrationChange
		s.keys = idem.New(idem.Config{TTL: cfg.IdempotencyTTL, Now: s.mono, Journal: s.keyChange(idem.Tag)})
		requests.Journal = s.keyChange(idem.RequestTag)
	}
	s.requests = idem.New(requests)
	overloaded := func() bool { return s.store.Refuses() == store.Overloaded }
	s.orch = orchestration.New(orchestration.Config{
		Journal:           orchJournal,
		Overloaded:        overloaded,
		Owns:              cfg.ownsEnvelope(),
		MaxSessions:       cfg.MaxSessions,
		MaxSessionBytes:   cfg.MaxSessionBytes,
		SessionRetention:  cfg.SessionRetention,
		MaxEnvelopes:      cfg.MaxEnvelopes,
		MaxEnvelopeBytes:  cfg.MaxEnvelopeBytes,
		EnvelopeRetention: cfg.EnvelopeRetention,
		MaxReply:          max(cfg.MaxFrameBytes-orchestration.ReplyReserve, 1),
	})
	s.kernel = kernel.New(kernel.Config{
		MaxProcesses:      cfg.MaxProcesses,
		SmallPages:        cfg.SmallPages,
		MaxRateLimitUsers: cfg.MaxRateLimitUsers,
		DequeueLease:      cfg.DequeueLease,
		Retention:         cfg.ProcessRetention,
		Events:            lifecycle{s.bus},
		Journal:           kernelJournal,
		Overloaded:        overloaded,
		Partition:         uint64(cfg.Partition),
		Partitions:        uint64(cfg.Partitions),
		Ended:             s.orch.Cancel,
		Removed:           s.orch.ProcessRemoved,
	})
	machines := append([]store.Machine{
		s.kernel.Machine(s.orch.CancelBefore),
		s.orch.Machine(func() link.Instant { return s.now(link.Now()) }),
	}, cfg.Machines...)
	if s.keys != nil {
		machines = append(machines, s.keys.Machine(idem.Tag), s.requests.Machine(idem.RequestTag))
	}
	s.store = store.New(store.Config{
		Machines:         machines,
		SnapshotBytes:    cfg.SnapshotBytes,
		SnapshotInterval: cfg.SnapshotInterval,
		Now:              s.mono,
		Logger:           cfg.Logger,
	})
	s.turns.New = func() any { return newTurn(s) }
	return s
}

// Start begins the periodic garbage collection (kernel-ipc §5.3) and the snapshots of a journal.
func (s *Service) Start() {
	s.store.Start()
	s.stopped.Add(1)
	go func() {
		defer s.stopped.Done()
		tick := time.NewTicker(s.cfg.CleanupInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.Sweep()
			case <-s.stop:
				return
			}
		}
	}()
}

// Sweep runs one garbage collection.
func (s *Service) Sweep() {
	if s.store.Refuses() == store.Overloaded {
		return // what is dropped is written too; the next sweep finds it
	}
	defer s.store.Leave(s.store.Enter())
	now := s.now(link.Now())
	zombied, removed, logs := s.kernel.Sweep(now)
	sessions, envelopes := s.orch.Sweep(now)
	s.cfg.Logger.Debug("swept the tables", "zombied", zombied, "removed", removed, "rate_logs", logs,
		"sessions", sessions, "envelopes", envelopes, "idempotency_keys", s.requests.Sweep())
}

// Close stops the periodic work and cancels pending queries. Owners close their sessions before or
// after.
func (s *Service) Close() {
	close(s.stop)
	s.stopped.Wait()
	s.store.Close()
	s.bus.Close()
}

// Open makes the session of a new connection; it is a link.Opener.
func (s *Service) Open(p *link.Port) link.Session {
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
func (s *Service) now(owner link.Instant) link.Instant {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	owner.Mono += s.store.Base()
	return owner
}

func (s *Service) mono() int64 { return s.now(link.Now()).Mono }

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

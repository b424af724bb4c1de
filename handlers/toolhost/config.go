// Package toolhost is the tool server (toolhost §1): a caller names a tool by its action id, passes
// a JSON input and a small state, and gets one JSON line back.
//
//	line ──► steps 1–6 (request.go) ──► idempotency, breaker, lease (call.go) ──► tool ──► reply
//
// A Server holds what all callers share: tools, leases, breakers and the idempotency table. A
// session is one caller's stream of lines; it is a connection.Session. It serves one line at a
// time: tools that may block run on the executor, and the session takes no line until the reply is
// made. Only its owner touches its state and its run; a call takes copies along.
//
// The single-shot modes are in single.go; they share the parsing, the tools and the replies.
package toolhost

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/handlers/toolhost/selector"
	"trunkline/handlers/toolhost/tool"
)

// Defaults of Config (toolhost §6).
const (
	DefaultToolTimeout = 30 * time.Second
	MaxToolTimeout     = 600 * time.Second
	DefaultQueue       = 1024
	minExecutors       = 4
	specVersion        = "1.4.2"
)

// Config is what a Server is made of. Registry is needed; zero values mean the defaults.
type Config struct {
	Registry *Registry
	// ToolTimeout bounds a call of a tool that sets no limit of its own.
	ToolTimeout time.Duration
	// IdempotencyTTL is how long an outcome is kept. 0: 60 s.
	IdempotencyTTL time.Duration
	// Queue bounds the calls that wait for the executor or run on it; more are overloaded.
	Queue int
	// Executors is how many tools may block at a time, half as many of them long. 0: 2 per CPU.
	Executors int
	// Files counts the descriptors of connections and lowers how many calls wait. nil: no limit.
	Files *stream.Files
	// MaxLineBytes is the longest request line of a connection, without its end. 0: MaxLine.
	MaxLineBytes int
	// UnfinishedLinesBytes bounds the bytes of unfinished lines of all connections. 0:
	// DefaultUnfinished.
	UnfinishedLinesBytes int
	// Keys is the idempotency table, which a journal may keep. nil: one that dies with the server.
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
	Now func() connection.Instant
	// Events gets what happened (toolhost §4.12), from any goroutine, and must be quick. nil: none.
	Events func(Event)
	// EventsWanted reports whether an event of that name has a subscriber; without one it is not
	// built. It is asked several times in a call: it must be quick and not allocate. nil: always.
	EventsWanted func(name string) bool
	// Recorder gets the latencies. nil: they are not kept.
	Recorder *obs.Recorder
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
	memo   *idem.Memo
	leases leases
	exec   executor
	calls  sync.Pool // of *call: idle sessions hold none
	drains drains
	clock  func() time.Time // of timestamps
	ctx    context.Context  // ended by Close
	cancel context.CancelFunc

	unfinished *connection.Budget // of all its connections

	sessions atomic.Int64
	counts   []toolCounts // by Entry.index
	meter    *obs.Meter
	invalid  int // its row for what is no request
	steps    *obs.Meter
}

// New makes a server. Close ends it.
func New(cfg Config) *Server {
	cfg.ToolTimeout = cmp.Or(max(cfg.ToolTimeout, 0), DefaultToolTimeout)
	cfg.Queue = cmp.Or(max(cfg.Queue, 0), DefaultQueue)
	cfg.Executors = cmp.Or(max(cfg.Executors, 0), max(2*runtime.GOMAXPROCS(0), minExecutors))
	cfg.MaxLineBytes = cmp.Or(max(cfg.MaxLineBytes, 0), MaxLine)
	cfg.MaxLineBytes = min(cfg.MaxLineBytes, MaxLine)
	cfg.UnfinishedLinesBytes = cmp.Or(max(cfg.UnfinishedLinesBytes, 0), DefaultUnfinished)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Server{
		cfg:        cfg,
		counts:     make([]toolCounts, cfg.Registry.len()),
		unfinished: connection.NewBudget(cfg.UnfinishedLinesBytes),
	}
	s.meters(cfg.Recorder)
	s.clock, s.memo = s.wall, idem.NewMemo()
	s.calls.New = func() any { return new(call) }
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.exec = newExecutor(cfg.Queue, cfg.Executors, cfg.Files.Share(maxWaits))
	if s.idem = cfg.Keys; s.idem == nil {
		s.cfg.Journal = nil
		s.idem = idem.New(idem.Config{TTL: cfg.IdempotencyTTL, Now: s.mono})
	}
	return s
}

// now returns the owner's reading of the clocks, or the test's.
func (s *Server) now(owner connection.Instant) connection.Instant {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return owner
}

func (s *Server) mono() int64 {
	if s.cfg.Now != nil {
		return s.cfg.Now().Mono
	}
	return connection.Mono()
}

// closeWithin is how long Close waits for tools: one that hangs must not keep the server.
const closeWithin = 2 * time.Second

// Drain waits until no tool runs off the loops, or ctx ends. Sessions take nothing new (§2.3).
func (s *Server) Drain(ctx context.Context) {
	idle, stop := context.WithCancel(ctx)
	defer stop()
	s.drains.wait(idle, stop)
	defer s.drains.leave(idle)
	if !s.drains.idle() {
		<-idle.Done()
	}
}

// Close ends the tools, whose effect is not known then (see Drain). Sessions must have ended.
func (s *Server) Close() error {
	s.cancel()
	if !tool.EndWithin(&s.exec.running, closeWithin) {
		s.cfg.Logger.Warn("tools do not end and are left", "calls", s.exec.pending.Load())
	}
	for _, e := range s.cfg.Registry.sorted {
		if c, ok := e.Tool.(io.Closer); ok {
			_ = c.Close()
		}
	}
	return nil
}

// Limits of sockets (toolhost §2.2, §2.3).
const (
	DefaultConnections = 4096
	lineWithin         = 30 * time.Second
	sendWithin         = 30 * time.Second
	idleAfter          = 900 * time.Second
	drainWithin        = 10 * time.Second
	unsentBytes        = 8 << 20
	heldBytes          = 16 << 20
	heldLines          = 1024
)

// DefaultUnfinished is how many bytes of unfinished lines, and of lines read ahead, all connections
// of a server may hold together, beside connection.OwnInput bytes each.
const DefaultUnfinished = 256 << 20

var lineEnd = []byte{'\n'}

// SocketLimits are those of TCP and unix sockets, of which the latter may be idle.
func (s *Server) SocketLimits() connection.Limits {
	l := StdinLimits()
	l.IdleAfter, l.FrameWithin, l.SendWithin = int64(idleAfter), int64(lineWithin), int64(sendWithin)
	l.LateFrame = func(dst []byte) []byte { return appendFault(dst, "read timeout", requestID{}) }
	l.Input, l.NoRoom = s.unfinished, func(dst []byte) []byte { return appendFault(dst, errOverloaded, requestID{}) }
	return l
}

// StdinLimits are those of a session over stdin and stdout: it waits for as long as it takes.
func StdinLimits() connection.Limits {
	return connection.Limits{
		DrainWithin: int64(drainWithin),
		UnsentBytes: unsentBytes,
		AheadBytes:  heldBytes,
		AheadFrames: heldLines,
		FramesIn:    func(b []byte) int { return bytes.Count(b, lineEnd) },
		ChunkBytes:  connection.DefaultChunkBytes,
		FrameBytes:  MaxLine + len("\r\n"),
		EndOfInput:  "\n",
	}
}

// AppendRefusal appends what a connection gets that is one too many.
func AppendRefusal(dst []byte) []byte { return appendFault(dst, "too many connections", requestID{}) }

// OpenSocket is a connection.Opener. Idempotency keys belong to the principal (toolhost §2.3).
func (s *Server) OpenSocket(p *connection.Port) connection.Session {
	switch {
	case strings.HasPrefix(p.Remote(), stream.UnixPeer):
		return s.open(p, Unix, p.Remote())
	case s.cfg.APIToken != "":
		return s.open(p, TCP, "token")
	}
	return s.open(p, TCP, "anon")
}

// OpenStdin makes the session over stdin and stdout; it is a connection.Opener.
func (s *Server) OpenStdin(p *connection.Port) connection.Session { return s.open(p, Stdin, "stdin") }

func (s *Server) open(p *connection.Port, via Transport, principal string) *session {
	s.sessions.Add(1)
	o := &session{srv: s, port: p, via: via, principal: []byte(principal)}
	if via == TCP && s.cfg.APIToken != "" {
		o.until = s.mono() + int64(guestWithin)
	}
	return o
}

// Entry is one tool as a server is given it.
type Entry struct {
	tool.Descriptor
	tool.Tool
	// Timeout bounds a call; 0: the server's.
	Timeout time.Duration
	// Breaker keeps calls from a tool that fails again and again. nil: a built-in has none.
	Breaker *tool.Breaker

	index int // in the registry's list: what a server has for each tool is found without a search
	// head is how nearly all clients begin a line that names the tool; nil if it must not be used.
	head []byte
	// repeatable means that the tool only computes. The table keeps that with the key: a manifest
	// that changes before a restart does not make an execution repeatable.
	repeatable bool
}

// Registry is the set of tools that can be run. It does not change; any goroutine may read it.
type Registry struct {
	byAID  map[string]*Entry
	sorted []*Entry // by AID
}

// NewRegistry fails for a repeated AID (toolhost §4.10) and raises tiers to those of TierOf (§4.4).
func NewRegistry(entries []Entry) (*Registry, error) {
	r := &Registry{byAID: make(map[string]*Entry, len(entries))}
	for i := range entries {
		e := entries[i]
		if r.byAID[e.AID] != nil {
			return nil, fmt.Errorf("duplicate aid in registry: %s", e.AID)
		}
		e.Tier = max(e.Tier, tool.TierOf(e.AID, e.SideEffects))
		e.head = headOf(e.AID)
		e.repeatable = tool.TierOf("", e.SideEffects) == 0 && (e.Deterministic || e.Tier == 0)
		r.byAID[e.AID] = &e
		r.sorted = append(r.sorted, &e)
	}
	slices.SortFunc(r.sorted, func(a, b *Entry) int { return strings.Compare(a.AID, b.AID) })
	for i, e := range r.sorted {
		e.index = i
	}
	return r, nil
}

func (r *Registry) find(aid []byte) *Entry { return r.byAID[string(aid)] }

func (r *Registry) len() int { return len(r.sorted) }

// Descriptors returns the descriptors of the tools, sorted by AID.
func (r *Registry) Descriptors() []tool.Descriptor {
	list := make([]tool.Descriptor, len(r.sorted))
	for i, e := range r.sorted {
		list[i] = e.Descriptor
	}
	return list
}

// Unusable is a tool that a manifest declares and that cannot be run now.
type Unusable struct{ AID, Why string }

// appendList appends the list reply (toolhost §4.1), but for its closing brace and without's tools.
func (r *Registry) appendList(dst []byte, tiers bool, without []Unusable) []byte {
	dst = append(jsonx.Build(dst).Bool("ok", true).Name("tools"), '[')
	for _, e := range r.sorted {
		if slices.ContainsFunc(without, func(u Unusable) bool { return u.AID == e.AID }) {
			continue
		}
		b := jsonx.Build(jsonx.AppendComma(dst)).Text("aid", e.AID).Text("name", e.Name).
			Bool("deterministic", e.Deterministic).Texts("tags", e.Tags).
			Texts("side_effects", e.SideEffects).Texts("replay_inputs", e.ReplayInputs)
		if tiers {
			b = b.Int("tier", int64(e.Tier))
		}
		dst = b.End()
	}
	return append(dst, ']')
}

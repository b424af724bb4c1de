// Package lines is agent threads over lines of JSON, the protocol threads/1 (threads §2.4): a
// connection.Session for each connection.
//
//	line ──► id, method, params ──► method.Dispatcher ──► reply, held until it is durable
//
// A session answers its requests in their order. Methods that may wait for a disk run on a
// goroutine of their own; meanwhile the session takes no line. So do verifications of tokens, which
// may wait for a key set.
package lines

import (
	"bytes"
	"cmp"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// Limits of connections (threads §2.4).
const (
	maxLine       = 1 << 20
	maxUnanswered = 1024
	maxUndecoded  = 16 // in a row
	unsentBytes   = 8 << 20
	aheadBytes    = 1 << 20
	idleAfter     = 300 * time.Second
	sendWithin    = 30 * time.Second
	// unfinished bounds the unfinished lines of all connections together.
	unfinished = 256 << 20
	// maxAway is how many calls may run off the loops at a time; further ones wait.
	maxAway = 256
)

// Limits of a connection before a token was shown, which hold wherever its auth line is read.
const (
	// MaxGuestLine bounds the line: an auth line of the longest token.
	MaxGuestLine = 16 << 10
	// AuthWithin is how long it may take.
	AuthWithin = 10 * time.Second
)

// Verifier verifies tokens.
type Verifier interface {
	// Verify may wait for a key set.
	Verify(text string) (*token.Claims, error)
	// VerifyKnown never waits.
	VerifyKnown(text string) (*token.Claims, error)
	// Generation changes when a verified token has to be verified again.
	Generation() uint64
}

// Config is what a Server is made of.
type Config struct {
	Dispatcher method.Dispatcher
	Verifier   Verifier
	// Peers counts failed authentications.
	Peers *token.Peers
	// Gate is where replies wait for the journal.
	Gate *connection.Gate
	// Skew is added to the end of a token's life, in seconds.
	Skew float64
	// Lookup returns the row of a method, nil if there is none.
	Lookup func(name []byte) *method.Row
	// Follow has the waits and streams of all surfaces.
	Follow *follow.Server
	// NewRequestID appends an identifier for a request that the client did not name.
	NewRequestID func(dst []byte) []byte
	// Meter gets the latencies; nil: they are not kept.
	Meter  *obs.Meter
	Logger *slog.Logger
}

// Server is what all sessions share. Its methods may be called from any goroutine.
type Server struct {
	cfg    Config
	budget *connection.Budget
	away   chan struct{}
	inputs sync.Pool // of *method.Input, of subscriptions
	counts Counts
}

// Counts are the counters of a Server.
type Counts struct {
	Sessions, Requests, Faults, Refused atomic.Int64
}

// New returns a server.
func New(cfg Config) *Server {
	cfg.Meter = cmp.Or(cfg.Meter, method.NewMeter(nil))
	s := &Server{cfg: cfg, budget: connection.NewBudget(unfinished), away: make(chan struct{}, maxAway)}
	s.inputs.New = func() any { return new(method.Input) }
	return s
}

// Counts returns the server's counters.
func (s *Server) Counts() *Counts { return &s.counts }

// Limits are those of the connections.
func (s *Server) Limits() connection.Limits {
	return connection.Limits{
		IdleAfter: int64(idleAfter), FrameWithin: int64(idleAfter), SendWithin: int64(sendWithin), DrainWithin: int64(AuthWithin),
		UnsentBytes: unsentBytes, AheadBytes: aheadBytes, AheadFrames: maxUnanswered,
		FramesIn:   func(b []byte) int { return bytes.Count(b, lineEnd) },
		ChunkBytes: connection.DefaultChunkBytes, FrameBytes: maxLine + len("\r\n"),
		LateFrame: func(dst []byte) []byte {
			return appendFault(dst, nil, &method.Fault{Condition: method.Invalid, Message: "the line did not end in time"},
				s.cfg.NewRequestID(nil))
		},
		Input:  s.budget,
		NoRoom: s.AppendRefusal,
	}
}

var lineEnd = []byte("\n")

// AppendRefusal appends what a connection gets that is one too many.
func (s *Server) AppendRefusal(dst []byte) []byte {
	return AppendUnavailable(dst, "too many connections", s.cfg.NewRequestID(nil))
}

// AppendUnavailable appends the answer to a connection that is not served now.
func AppendUnavailable(dst []byte, message string, requestID []byte) []byte {
	return appendFault(dst, nil, &method.Fault{Condition: method.Unavailable, Message: message}, requestID)
}

// Open makes the session of a new connection; it is a connection.Opener.
func (s *Server) Open(p *connection.Port) connection.Session {
	s.counts.Sessions.Add(1)
	return &session{srv: s, port: p, until: connection.Mono() + int64(AuthWithin)}
}

// run calls f on a goroutine of its own, and done after it; a panic in f is logged.
func (s *Server) run(f, done func()) {
	go func() {
		s.away <- struct{}{}
		defer func() {
			<-s.away
			if r := recover(); r != nil {
				s.cfg.Logger.Error("a call panicked", "panic", r, "stack", string(debug.Stack()))
			}
			done()
		}()
		f()
	}()
}

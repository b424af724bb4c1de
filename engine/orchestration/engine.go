// Package orchestration runs pipelines of agents: it keeps envelopes and sessions, instructs
// workers what to run next, takes their results and reports why a session stopped (envelope §4.5 to
// §4.13, §5.2, §5.3). It runs no agent itself.
//
//	Pipeline   a validated configuration, names resolved to indexes, shared by sessions
//	Engine     the nine methods of two services, over two bounded tables: sessions and envelopes
//	Call       one request's scratch: clock reading, refusal, buffers
//
// # A session
//
// A session holds its envelope as the bytes a reply shows, and beside them what the next request
// decides by: the stage, the state, the counters of its edges. Asking what to run copies those
// bytes. A report decodes them, overlays what changed and encodes them again; nothing of the
// session changes before that has succeeded.
//
// # Locks
//
// Each session has its own mutex, so that requests about one process take effect one after the
// other and never wait for another process. Order: the lock of an envelope's identifier, then a
// session's, then a table's shard, then the index of waiting sessions. A table reports evictions
// with no lock held, and may do so while a session is locked: what it calls back marks the session
// and locks only the index.
package orchestration

import (
	"cmp"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
	"trunkline/engine/table"
)

// Defaults of Config (envelope §6). The bounds in bytes are this server's own: the counts alone
// would allow as much as a frame for each entry.
const (
	DefaultMaxSessions       = 10_000
	DefaultMaxSessionBytes   = 1 << 30
	DefaultSessionRetention  = time.Hour
	DefaultMaxEnvelopes      = 10_000
	DefaultMaxEnvelopeBytes  = 512 << 20
	DefaultEnvelopeRetention = 24 * time.Hour
)

// evictableAfter is how long an envelope that has not ended must have been untouched before a new
// one may take its place.
const evictableAfter = time.Hour

// ReplyReserve is what a reply has beside its body, at most: the size rule of envelope §4.5 leaves
// it free of every frame.
const ReplyReserve = 4096

// Config holds the settings of an Engine. Zero fields take the defaults.
type Config struct {
	MaxSessions      int
	MaxSessionBytes  int64 // of all sessions together
	SessionRetention time.Duration

	MaxEnvelopes      int
	MaxEnvelopeBytes  int64 // of all stored envelopes together
	EnvelopeRetention time.Duration

	// MaxReply is the largest body of a reply in bytes: max_frame_bytes less ReplyReserve.
	MaxReply int
	// Journal is shown every change under the lock that decided it, before its request is answered,
	// and returns its index; may be nil. It is called from several goroutines at once and must
	// neither block for long nor call the engine.
	Journal func(*Change) (index uint64)
	// Overloaded reports that Journal should get no changes that can wait: Sweep then ends early.
	// nil: never.
	Overloaded func() bool
	// NewID makes identifiers; nil: envelope.RandomID.
	NewID envelope.IDSource
	// Owns reports whether a new envelope may have an identifier: in a cluster of several
	// partitions only those of the own one. nil: any.
	Owns func(id []byte) bool
}

// Engine is the state of the services engine and orchestration. It is safe for concurrent use.
type Engine struct {
	cfg       Config
	sessions  *table.Table[session]
	envelopes *table.Table[stored]
	waiting   waitIndex

	seq  atomic.Uint64 // of the last session
	seed maphash.Seed
	ids  [64]sync.Mutex // by envelope identifier: an update and what it resolves are one step
}

// New returns an engine without sessions and envelopes.
func New(cfg Config) *Engine {
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, DefaultMaxSessions)
	cfg.MaxSessionBytes = cmp.Or(cfg.MaxSessionBytes, DefaultMaxSessionBytes)
	cfg.SessionRetention = cmp.Or(cfg.SessionRetention, DefaultSessionRetention)
	cfg.MaxEnvelopes = cmp.Or(cfg.MaxEnvelopes, DefaultMaxEnvelopes)
	cfg.MaxEnvelopeBytes = cmp.Or(cfg.MaxEnvelopeBytes, DefaultMaxEnvelopeBytes)
	cfg.EnvelopeRetention = cmp.Or(cfg.EnvelopeRetention, DefaultEnvelopeRetention)
	cfg.MaxReply = cmp.Or(cfg.MaxReply, wire.DefaultMaxFrame-ReplyReserve)
	if cfg.NewID == nil {
		cfg.NewID = envelope.RandomID
	}
	if cfg.Owns == nil {
		cfg.Owns = func([]byte) bool { return true }
	}
	if cfg.Overloaded == nil {
		cfg.Overloaded = func() bool { return false }
	}
	o := &Engine{cfg: cfg, seed: maphash.MakeSeed()}
	o.sessions = table.New(table.Config[session]{MaxEntries: cfg.MaxSessions, MaxBytes: cfg.MaxSessionBytes,
		OnEvict: func(_ string, s *session) { o.forget(s) }})
	o.envelopes = table.New(table.Config[stored]{MaxEntries: cfg.MaxEnvelopes, MaxBytes: cfg.MaxEnvelopeBytes,
		OnEvict: func(id string, v *stored) { o.bury(&v.history, &Change{Kind: ChangeEnvelopeDrop, ID: []byte(id)}) }})
	return o
}

// Call is the scratch of one request: it is reused, by one request at a time.
type Call struct {
	// Now is the reading of the clocks that the request sees.
	Now connection.Instant
	// Msg is the text of a refusal; what stood there before is overwritten.
	Msg []byte
	// Retryable means that the request may simply be repeated.
	Retryable bool
	// Work grows by the bytes that were decoded and encoded: what requests cost beside their own
	// bytes and those of their replies.
	Work int

	// replaying means that the changes come from the journal.
	replaying bool

	scan    mpack.Scanner
	change  Change // scratch, so that recording allocates nothing
	env     envelope.Env
	levels  int    // of containers in what env was decoded from; 0: not counted
	buf     []byte // the envelope encoded again
	text    []byte // JSON text turned into MessagePack
	output  []byte
	failure []byte
}

// keptScratch bounds what an idle Call holds of a large request, in bytes.
const keptScratch = 256 << 10

// Release lets go of everything lent to the call and of what it outgrew.
func (c *Call) Release() {
	c.env.Release()
	c.change = Change{Waiting: c.change.Waiting[:0]}
	clear(c.change.Waiting[:cap(c.change.Waiting)])
	for _, b := range [...]*[]byte{&c.buf, &c.text, &c.output, &c.failure, &c.Msg} {
		if cap(*b) > keptScratch {
			*b = nil
		}
	}
}

func (c *Call) wall() time.Time { return time.UnixMilli(c.Now.Wall).UTC() }

// refuse sets the text of a refusal from its parts.
func (c *Call) refuse(code wire.Code, before string, what []byte, after string) wire.Code {
	c.Msg = append(append(append(c.Msg[:0], before...), what...), after...)
	c.Retryable = false
	return code
}

func (c *Call) invalid(text string) wire.Code { return c.refuse(wire.InvalidArgument, text, nil, "") }

func (c *Call) full(text string) wire.Code {
	c.refuse(wire.ResourceExhausted, text, nil, "")
	c.Retryable = true
	return wire.ResourceExhausted
}

// The refusals of envelope §4.5 and §5.3.
const (
	tooLarge   = "Envelope too large"
	storeFull  = "Envelope store is full"
	tableFull  = "Session table is full"
	alreadyEnd = "Session already terminated"
)

func (c *Call) tooLarge() wire.Code { return c.refuse(wire.ResourceExhausted, tooLarge, nil, "") }

// lockID takes the lock of an envelope's identifier.
func (o *Engine) lockID(id []byte) *sync.Mutex {
	m := &o.ids[maphash.Bytes(o.seed, id)%uint64(len(o.ids))]
	m.Lock()
	return m
}

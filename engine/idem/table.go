package idem

import (
	"cmp"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
)

// Limits of a table where Config gives none (toolhost §6), and of its shards.
const (
	DefaultTTL        = 60 * time.Second
	DefaultMaxEntries = 1024
	DefaultMaxBytes   = 64 << 20
	// defaultMaxWaiters is far above the connections of a server, each with one request that waits.
	defaultMaxWaiters = 65536
	DefaultShards     = 16
	maxShards         = 256
)

// Config is what a Table is built with.
type Config struct {
	// TTL is for how long an outcome is valid from its completion; below 1: DefaultTTL.
	TTL time.Duration
	// MaxEntries is the most entries, those in flight included; below 1: DefaultMaxEntries.
	MaxEntries int
	// MaxBytes is the most bytes of all stored outcomes; below 1: DefaultMaxBytes.
	MaxBytes int64
	// MaxWaiters is the most waiters registered at a time; below 1: defaultMaxWaiters.
	MaxWaiters int
	// NoEviction has Begin refuse a new key (Full) where MaxEntries or MaxBytes is reached, rather
	// than drop an outcome that is still valid. The outcomes of what is in flight are kept then,
	// too: they may exceed MaxBytes, as may those of a replay under lower limits than before.
	NoEviction bool
	// Shards is rounded up to a power of two and cut to maxShards; below 1: DefaultShards.
	Shards int
	// Now reads the monotonic clock in nanoseconds, never negative; it is called from any
	// goroutine, with no lock held. It goes on where the journal ended. nil: connection.Now.
	Now func() int64
	// Journal gets every change and returns its index, which grows; 0: there are no indexes. It is
	// called with a shard locked: it must not block and not use the table. The change is lent. nil:
	// no journal.
	Journal func(*Change) uint64
}

// Table is an idempotency table, safe for concurrent use; New makes one.
type Table struct {
	now        func() int64
	journal    func(*Change) uint64
	ttl        int64
	maxEntries int64
	maxBytes   int64
	maxWaiters int64
	noEviction bool
	mask       uint64
	shards     []shard
	// replaying silences the journal; head is the index up to which changes are in the table. Both
	// belong to the replay.
	replaying bool
	head      uint64

	_ [64]byte // what every request writes does not share a cache line with what it only reads
	// ticks orders uses: readings of a clock could be equal.
	ticks atomic.Int64
	_     [56]byte
	// due is no later than the earliest expiry in the table.
	due      atomic.Int64
	entries  atomic.Int64
	inFlight atomic.Int64
	bytes    atomic.Int64
	waiting  atomic.Int64
}

// none is the rank of the head of an empty list, and the expiry of nothing.
const none = math.MaxInt64

// New returns an empty table.
func New(cfg Config) *Table {
	t := &Table{now: cfg.Now, journal: cfg.Journal, noEviction: cfg.NoEviction,
		ttl:        int64(cmp.Or(max(cfg.TTL, 0), DefaultTTL)),
		maxEntries: int64(cmp.Or(max(cfg.MaxEntries, 0), DefaultMaxEntries)),
		maxBytes:   cmp.Or(max(cfg.MaxBytes, 0), DefaultMaxBytes),
		maxWaiters: int64(cmp.Or(max(cfg.MaxWaiters, 0), defaultMaxWaiters)),
	}
	if t.now == nil {
		t.now = func() int64 { return connection.Now().Mono }
	}
	n := 1 << bits.Len(uint(min(cmp.Or(max(cfg.Shards, 0), DefaultShards), maxShards)-1))
	t.mask = uint64(n - 1)
	t.shards = make([]shard, n)
	for i := range t.shards {
		t.shards[i].init(t)
	}
	t.due.Store(none)
	return t
}

func (t *Table) shardOf(k *Key) *shard { return &t.shards[k.shard()&t.mask] }

// tick returns the rank of a use that is later than all before it.
func (t *Table) tick() int64 { return t.ticks.Add(1) }

// expiry returns the reading from which an outcome completed at the given one is no longer valid.
func (t *Table) expiry(at int64) int64 {
	if at > none-t.ttl {
		return none
	}
	return at + t.ttl
}

// Len returns the number of entries, in flight and expired ones included. It takes no lock.
func (t *Table) Len() int { return int(t.entries.Load()) }

// InFlight returns the number of entries in flight. It takes no lock.
func (t *Table) InFlight() int { return int(t.inFlight.Load()) }

// Bytes returns the sum of the sizes of all stored outcomes. It takes no lock.
func (t *Table) Bytes() int64 { return t.bytes.Load() }

// Waiting returns the number of registered waiters. It takes no lock.
func (t *Table) Waiting() int { return int(t.waiting.Load()) }

// Hits returns how many requests got a stored outcome, waiters included. It locks the shards in
// turn.
func (t *Table) Hits() (n uint64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.hits
		s.mu.Unlock()
	}
	return n
}

// shard is one independently locked part of a table. All methods need mu, except where noted.
type shard struct {
	mu      sync.Mutex
	entries map[Key]*entry
	lists   [numOrders]list
	hits    uint64
	// last is the index of the last change recorded or applied here.
	last uint64
	// change is lent to the journal, so that a record does not allocate.
	change Change
	table  *Table
	// first is the rank of the least recently used entry that is not running.
	first atomic.Int64
	_     [64]byte // neighbours do not share a cache line
}

func (s *shard) init(t *Table) {
	s.table, s.entries = t, make(map[Key]*entry)
	s.first.Store(none)
}

// record gives the journal a change of e at a reading of the clock.
func (s *shard) record(kind ChangeKind, e *entry, at int64) {
	t := s.table
	if t.journal == nil || t.replaying {
		return
	}
	s.change = Change{Kind: kind, At: at, Key: e.key, Input: e.input, Attempt: e.attempt, Repeatable: e.repeatable}
	if kind == ChangeFinished {
		s.change.Result = *e.result
	}
	e.index = t.journal(&s.change)
	s.change = Change{}
	s.last = max(s.last, e.index)
}

// expired reports whether e is no longer valid at now.
func (s *shard) expired(e *entry, now int64) bool {
	return e.state != running && now >= s.table.expiry(e.at)
}

// find returns the entry of k that is valid at now, or nil. An expired one is dropped.
func (s *shard) find(k *Key, now int64) *entry {
	e := s.entries[*k]
	if e != nil && s.expired(e, now) {
		s.drop(e, ChangeDropped, now)
		return nil
	}
	return e
}

// touch makes e, which is not running, the most recently used.
func (s *shard) touch(e *entry) {
	if e == s.lists[byUse].tail { // it stays there
		e.use = s.table.tick()
		s.noteFirst()
		return
	}
	s.unlink(byUse, e)
	e.use = s.table.tick()
	s.link(byUse, e)
}

// start adds an entry in flight, for which room is reserved.
func (s *shard) start(k *Key, input *[32]byte, now int64, repeatable bool) {
	e := &entry{key: *k, input: *input, attempt: 1, repeatable: repeatable, at: now, use: s.table.tick()}
	s.entries[*k] = e
	s.table.inFlight.Add(1)
	s.record(ChangeStarted, e, now)
}

// restart puts e, which is unknown, in flight.
func (s *shard) restart(e *entry, now int64) {
	s.unlink(byUse, e)
	s.unlink(byEnd, e)
	e.state, e.at, e.use = running, now, s.table.tick()
	e.attempt++
	s.table.inFlight.Add(1)
	s.record(ChangeStarted, e, now)
}

// settle makes e, in flight or unknown, st from now on, with r, whose bytes are reserved.
func (s *shard) settle(e *entry, st state, r *Stored, now int64) {
	was := e.state
	if was != running {
		s.unlink(byUse, e)
		s.unlink(byEnd, e)
	}
	e.state, e.result, e.at, e.use = st, r, now, s.table.tick()
	s.link(byUse, e)
	s.link(byEnd, e)
	s.table.noteDue(s.table.expiry(now))
	if was == running {
		s.table.inFlight.Add(-1)
	}
}

// drop removes e and records that before its room can be used again.
func (s *shard) drop(e *entry, kind ChangeKind, now int64) {
	t := s.table
	if e.state != running {
		s.unlink(byUse, e)
		s.unlink(byEnd, e)
	}
	delete(s.entries, e.key)
	s.record(kind, e, now)
	if e.state == running {
		t.inFlight.Add(-1)
	}
	t.bytes.Add(-e.size())
	t.entries.Add(-1)
}

// detach returns those who wait for e; they wait no longer. r is what they are going to get.
func (s *shard) detach(e *entry, r *Stored) (gone []Waiter) {
	gone, e.waiters = e.waiters, nil
	s.table.waiting.Add(-int64(len(gone)))
	if r != nil {
		s.hits += uint64(len(gone))
	}
	return gone
}

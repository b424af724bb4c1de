// Package threadstore is the state of agent threads (threads §3.3, §4, §5): threads, messages,
// cursors, sessions and the audit log. It decides, records and remembers; it knows no protocol, no
// token and no clock.
//
//	Create, Get, Post, Read, Ack, SetStatus    one method each, atomic per thread
//	SetParticipants, Threads                   membership, lists
//	Watch                                      notifications of durable changes
//	Heartbeat                                  the registry of runtimes
//	SetWebhooks, TakeDelivery, FinishDelivery  what goes to other servers
//	Machine                                    the state in a journal (engine/store)
//
// # Where things are
//
//	memory    threads without their messages, cursors, sessions; the latest messages of all
//	          threads, in segments of fixed size, as many as Config.HotBytes allow
//	rows      every durable message, idempotency keys, the audit log (engine/store/rows)
//	journal   every change; rows are written after it, and are replayed from it
//
// A message has three states. Appended: it has a number, and its record is in the journal. Durable:
// the journal has reached its record, and readers see it (threads §2.5). Stored: it is in a row,
// and its segment may be dropped. Messages of one thread that are stored together are one row
// (history.go). Their keys are found by an index of sorted runs (keyindex), not by rows of their
// own. Rows and index may have messages that a lost end of the journal took: a thread's first row
// after a start cuts off what is behind it, and a key counts only if its message has it.
//
// # Several nodes
//
// Nodes that follow one journal each have rows of their own, and store them as they replay. Where
// an owner purges the journal, others find the rows in an archive, which has the records behind
// them: the owner extends it before each snapshot, and records that (archive.go).
// A start brings the rows of its node to where the archive of the snapshot ends (restore.go).
//
// # Locks
//
// Each thread has one mutex: its serial writer. Under it the engine takes hot.mu, which gives
// records and rows one order. No lock is held while a disk is waited for, but for the look-up of a
// key or message that is not in memory any more.
package threadstore

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/store"
	"trunkline/engine/threadstore/keyindex"
)

// Defaults of Config.
const (
	DefaultHotBytes    = 64 << 20
	DefaultMaxThreads  = 1_000_000
	DefaultMaxSessions = 100_000
	DefaultMaxTimers   = 10_000
	defaultMaxCursors  = 1024
)

// Config is what an Engine is made of. Zero fields take the defaults.
type Config struct {
	// HotBytes bounds the memory of the latest messages.
	HotBytes int
	// MaxThreads and MaxSessions bound the tables, MaxCursors those of one thread, MaxTimers
	// schedules and deferred messages together.
	MaxThreads, MaxSessions, MaxCursors, MaxTimers int
	// KeyWindow is how long an idempotency key is known, in milliseconds; 0: for ever.
	KeyWindow int64
	// PostsPerAgent and PostsPerThread bound the posts of a minute; 0: they are not bounded.
	PostsPerAgent, PostsPerThread int
	// Retention is how long messages are kept, in milliseconds; 0: for ever.
	Retention int64
	// Triggers is how agents are woken; its zero value means DefaultTriggers.
	Triggers TriggerConfig
	// Failed is called when rows cannot be written any more: the process must end. nil: it is not.
	Failed func(error)
	// Now is the wall clock in milliseconds since 1970, for what no request asks for. nil:
	// time.Now.
	Now func() int64

	segment  int // bytes of a segment of memory; for tests
	setBytes int // archiveSetBytes; for tests
	padBytes int // streamPadBytes; for tests
}

// Engine is the state of all threads. Its methods may be called from any goroutine.
type Engine struct {
	cfg   Config
	store *store.Store // nil until Join
	ids   *ids
	seed  maphash.Seed

	shards   [shards]shard
	sessions sessions
	quotas   quotas
	rates    atomic.Pointer[PostRates]
	hot      hot
	posted   atomic.Uint64
	events   uint64 // audit events where nothing is journaled, guarded by hot.mu

	rejections rejections
	jobs       jobs
	timers     timers
	rows       sync.Pool     // of *[]byte, in which rows are made
	runs       sync.Pool     // of *[]byte, into which runs are read
	storing    sync.Mutex    // one at a time stores
	stored     atomic.Uint64 // index up to which all rows are stored
	storer     storer

	archive   archive
	retention retention
	erasures  erasures
	loading   map[uint64]*thread // by number, while the engine recovers
	disk      Rows               // what memory does not keep
	keys      *keyindex.Index    // of what is in disk
	expirers  map[byte]*expirer  // by the kind of row, guarded by storing

	numbers   numbers
	directory directory
	watches   watches
	webhooks  webhooks

	windows chan struct{} // one for each that is in memory

	stop    chan struct{}
	ctx     context.Context // ends then, too
	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// numbers is what a new thread is decided by.
type numbers struct {
	sync.Mutex
	last uint64              // number of a thread
	made map[keyHash]*thread // by the key of its request
	list []*thread           // all of them, by number once a recovery is over
}

// shards is a power of two: more than the cores that decide at a time.
const shards = 64

type shard struct {
	mu      sync.RWMutex
	threads map[string]*thread
}

// New returns an engine without threads. Join comes before the first request.
func New(cfg Config) *Engine {
	cfg.HotBytes = cmp.Or(cfg.HotBytes, DefaultHotBytes)
	cfg.MaxThreads = cmp.Or(cfg.MaxThreads, DefaultMaxThreads)
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, DefaultMaxSessions)
	cfg.MaxCursors = cmp.Or(cfg.MaxCursors, defaultMaxCursors)
	cfg.MaxTimers = cmp.Or(cfg.MaxTimers, DefaultMaxTimers)
	cfg.segment = cmp.Or(cfg.segment, segmentBytes)
	cfg.setBytes = cmp.Or(cfg.setBytes, archiveSetBytes)
	cfg.padBytes = cmp.Or(cfg.padBytes, streamPadBytes)
	cfg.Triggers = cmp.Or(cfg.Triggers, DefaultTriggers)
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if cfg.Failed == nil {
		cfg.Failed = func(error) {}
	}
	e := &Engine{cfg: cfg, ids: newIDs(), seed: maphash.MakeSeed(), stop: make(chan struct{}), windows: make(chan struct{}, maxWindows)}
	e.storer.e, e.keys = e, keyindex.New(rowKey)
	e.expirers = map[byte]*expirer{rowJob: {}, rowJobKey: {}}
	e.hot.size = cfg.segment
	e.numbers.made = map[keyHash]*thread{}
	for i := range e.shards {
		e.shards[i].threads = map[string]*thread{}
	}
	e.sessions.init()
	e.quotas.init()
	e.rejections.callers = map[agentKey]*rejecting{}
	e.erasures.wake = make(chan struct{}, 1)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.SetPostRates(PostRates{cfg.PostsPerAgent, cfg.PostsPerThread})
	e.jobs.init()
	e.directory.workspaces = map[string]*workspace{}
	e.watches.workspaces, e.watches.ready = map[string]*watched{}, make(chan struct{}, 1)
	e.webhooks.work = make(chan struct{}, 1)
	e.timers.all, e.timers.keys, e.timers.used = map[string]*timer{}, map[keyHash]*timer{}, map[agentKey]int{}
	e.timers.wake = make(chan struct{}, 1)
	return e
}

// SetRows has rows go to r. It comes before the first record and the first request.
func (e *Engine) SetRows(r Rows) error {
	e.disk = r
	return e.keys.Load(r)
}

// Join has changes go to s, which has the engine's Machine.
func (e *Engine) Join(s *store.Store) { e.store = s }

// Start begins to store rows and to fire timers; Close ends that.
func (e *Engine) Start() {
	e.stopped.Go(e.keepStoring)
	e.stopped.Go(e.keepSessions)
	e.stopped.Go(e.keepWaking)
	e.stopped.Go(e.keepTimers)
	e.stopped.Go(e.keepErasing)
}

// Close ends what Start began. Rows that wait are in the journal.
func (e *Engine) Close() {
	close(e.stop)
	e.cancel()
	e.stopped.Wait()
}

// safe returns the index up to which nothing can be lost any more.
func (e *Engine) safe() journal.Index {
	if log := e.store.Log(); log != nil {
		return log.Durable()
	}
	return ^journal.Index(0)
}

// Confirm returns the index that has to be durable before anything is shown that was read before
// the call, as that of the store does.
func (e *Engine) Confirm() journal.Index { return e.store.Confirm() }

// refuses reports that no change may be begun now.
func (e *Engine) refuses() bool {
	return e.store.Saturated() || e.hot.unstored.Load() > maxUnstored
}

// find returns a thread, nil if there is none.
func (e *Engine) find(id []byte) *thread {
	s := &e.shards[maphash.Bytes(e.seed, id)%shards]
	s.mu.RLock()
	t := s.threads[string(id)]
	s.mu.RUnlock()
	return t
}

// numbered returns the thread with a number, nil if there is none.
func (e *Engine) numbered(number uint64) *thread {
	if e.loading != nil {
		return e.loading[number]
	}
	if list := e.numbers.after(number-1, 1); number > 0 && len(list) > 0 && list[0].made.Number == number {
		return list[0]
	}
	return nil
}

// open returns a thread that the actor may use, locked.
func (e *Engine) open(a *Actor, id []byte, member bool) (*thread, Code) {
	var t *thread
	if last := a.Last; last != nil && last.t != nil && last.t.made.ID == string(id) {
		t = last.t
	} else if t = e.find(id); last != nil {
		last.t = t
	}
	switch {
	case t == nil:
		return nil, NoThread
	case t.made.Workspace != a.Workspace:
		return nil, OtherWorkspace
	}
	t.mu.Lock()
	if member && !t.member(a.Agent) {
		t.mu.Unlock()
		return nil, NotMember
	}
	return t, OK
}

// marshaler is a record.
type marshaler interface {
	MarshalMsg(dst []byte) ([]byte, error)
}

// record writes a record that has no row. Caller holds the lock that decided it.
func (e *Engine) record(kind byte, rec marshaler) journal.Index {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	return e.append(kind, rec)
}

// append is record where the caller holds hot.mu.
func (e *Engine) append(kind byte, rec marshaler) journal.Index {
	return e.store.Append(Tag, func(dst []byte) []byte {
		dst, _ = rec.MarshalMsg(append(dst, kind)) // it does not fail
		return dst
	})
}

// Stats are the numbers that an operator asks for.
type Stats struct {
	Threads, Sessions, OpenJobs int
	// Unacknowledged counts the deliveries without a sign of their target in time.
	Unacknowledged uint64
	// Posted counts the messages of this process.
	Posted uint64
	// HotBytes is the memory of the latest messages, UnstoredBytes what of them is no row yet.
	HotBytes, UnstoredBytes int64
	// Keys counts the idempotency keys that are remembered, about; KeyBytes is the memory of their
	// filters.
	Keys, KeyBytes int
}

// Stats returns the numbers. It takes one lock after the other.
func (e *Engine) Stats() (s Stats) {
	e.numbers.Lock()
	s.Threads = len(e.numbers.list)
	e.numbers.Unlock()
	e.sessions.mu.Lock()
	s.Sessions = len(e.sessions.agents)
	e.sessions.mu.Unlock()
	e.jobs.mu.Lock()
	s.OpenJobs, s.Unacknowledged = len(e.jobs.open), e.jobs.unacked
	e.jobs.mu.Unlock()
	e.hot.mu.Lock()
	s.HotBytes = int64(e.hot.bytes)
	e.hot.mu.Unlock()
	keys := e.keys.Stats()
	s.Keys, s.KeyBytes = keys.Entries+keys.Recent, keys.FilterBytes
	s.Posted, s.UnstoredBytes = e.posted.Load(), e.hot.unstored.Load()
	return s
}

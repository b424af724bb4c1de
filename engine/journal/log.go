package journal

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Log is one journal: one order of records, one writer. Any goroutine may call its methods.
type Log struct {
	store Store
	cfg   Config

	mu        sync.Mutex    // guards what follows, up to the next blank line
	work      chan struct{} // the committer waits here; one slot
	queue     queue
	linger    linger
	asked     Index // records up to it are to be written
	phase     phase
	requests  int           // between Begin and End
	midway    bool          // one of them has appended something
	idle      bool          // the committer waits
	late      int           // requests that have begun while it waited for the ones ahead of them
	overtaken sync.Cond     // late has fallen
	stopCause error         // why the committer has to stop, before it did
	closes    bool          // whether Close was called
	dropped   bool          // a record was not taken, so none behind it is
	progress  chan struct{} // closed when Durable rises or the journal stops; nil without waiters

	appended atomic.Uint64
	durable  atomic.Uint64
	full     atomic.Bool
	failure  atomic.Pointer[error]
	done     chan struct{} // closed when the committer has ended

	single    bool // the store writes one block at a time
	tail      tail // owned by Open and Replay, then by the committer
	time      atomic.Int64
	clock     clock // the tail's owner's
	epoch     atomic.Uint64
	snapshots snapshots // snapshots, guarded by upkeep

	// upkeep is a lock that Replay, LoadSnapshot, WriteSnapshot and the end of Close hold by
	// filling it. It is a channel because it is held for as long as a disk takes.
	upkeep   chan struct{}
	closed   chan struct{} // closed when Close has ended
	closeErr error

	counters counters
}

// phase is where a Log is in its life.
type phase uint8

const (
	replaying phase = iota // Open was called, Replay has not ended
	open                   // records are taken
	closing                // records are taken no more; what waits is written
	ended                  // the committer is gone, after Close or a failure
)

// tail is the end of the log, from which the next block goes on.
type tail struct {
	last  Index
	epoch uint64
	chain uint64
	// cut is the first index of what is to be forgotten before the claim, 0 for nothing.
	cut Index
}

// Open takes over a store: it reads the end of the log and the list of snapshots, and changes
// nothing. Call LoadSnapshot, then Replay from its index to the end, which verifies the log and
// writes the claim, and only then Append. After an error the caller still owns the store. Otherwise
// Close closes it.
//
// Errors: *ErrModeMismatch, *DamageError, or that of the store.
func Open(store Store, cfg Config) (*Log, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	l := &Log{store: store, cfg: cfg, work: make(chan struct{}, 1), done: make(chan struct{}), upkeep: make(chan struct{}, 1), closed: make(chan struct{})}
	l.overtaken.L = &l.mu
	l.queue.limit = cfg.MaxBlockBytes
	l.linger.timer = time.NewTimer(MaxLinger)
	if err := l.findTail(); err != nil {
		return nil, err
	}
	if err := l.listSnapshots(); err != nil {
		return nil, err
	}
	l.appended.Store(l.tail.last)
	l.durable.Store(l.tail.last)
	p, ok := l.store.(Pipelined)
	l.single = !ok || p.InFlight() == 1
	go l.commit(p)
	return l, nil
}

// Append adds a copy of rec to the log and returns its index. The caller holds the lock under which
// it decided rec, so the order of the log is the order of the decisions. It never blocks and never
// fails: when the journal has stopped or is closed, it returns an index that never becomes durable.
// It allocates only a new group while several wait.
//
// It stops the journal when rec is longer than MaxRecordBytes, when Replay has not ended, and when
// the queue is full to twice its limits. All three are faults of the caller.
func (l *Log) Append(rec []byte) Index {
	l.mu.Lock()
	i := l.add(rec)
	l.ask(i)
	l.mu.Unlock()
	return i
}

// Enqueue is Append of a record without a waiter yet. Flush, Append, Barrier, a full block or the
// end has it written. So the records of one turn share a group.
func (l *Log) Enqueue(rec []byte) Index {
	l.mu.Lock()
	i := l.add(rec)
	l.mu.Unlock()
	return i
}

// Begin puts every record that is appended before End into one block, so that a crash keeps all of
// them or none. Requests overlap: while one is open, no block ends, so it must be brief. The caller
// holds no lock that another request may need: Begin waits where more than MaxOverlap requests have
// begun since a block is to be written.
//
// Requests that overlap and append more than MaxStoredBlock together are the exception: their block
// ends there.
func (l *Log) Begin() {
	l.mu.Lock()
	for l.late >= MaxOverlap {
		l.overtaken.Wait()
	}
	if l.idle && (l.phase >= closing || l.asks()) {
		l.late++
	}
	l.requests++
	l.mu.Unlock()
}

// End is called once for each Begin, also after a panic.
func (l *Log) End() {
	l.mu.Lock()
	if l.requests--; l.requests == 0 {
		l.midway = false
		if l.due() || l.phase >= closing {
			l.signal()
		}
	}
	l.mu.Unlock()
}

// Bounds of a Flush that is worth waiting for.
const (
	// quickWrite is the longest that writes have taken recently, smoothed.
	quickWrite = time.Millisecond
	// quickBytes is how much is written at most: more takes longer to copy than to sync.
	quickBytes = 128 << 10
)

// Flush has everything written that was appended before the call. It does not wait. It reports
// whether that is worth waiting for: its write begins now, alone, and is quick.
func (l *Log) Flush() (soon bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ask(l.appended.Load())
	return l.single && l.idle && l.due() && l.queue.bytes <= quickBytes && l.linger.took <= quickWrite
}

// FlushNext is Flush while the next group lingers for more records than there are: the appended
// ones are part of it. Else it reports false, and does nothing.
func (l *Log) FlushNext() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.idle || l.queue.records >= l.linger.target {
		return false
	}
	l.ask(l.appended.Load())
	return true
}

// add gives a record its index and puts it into the open group. The caller holds mu.
func (l *Log) add(rec []byte) Index {
	i := l.appended.Load() + 1
	l.appended.Store(i)
	if l.dropped || l.phase > open && (l.phase == ended || l.requests == 0) || l.stopCause != nil {
		l.dropped = true // a later record has no place in the log: its index would be another
		return i         // what a request has begun is written whole
	}
	q, n := &l.queue, int64(recordBytes(len(rec)))
	switch {
	case l.phase == replaying:
		l.fail(ErrNotReplayed)
	case len(rec) > MaxRecordBytes:
		l.fail(fmt.Errorf("cannot append record: %d bytes, at most %d", len(rec), MaxRecordBytes))
	case q.bytes+n > 2*l.cfg.MaxQueueBytes || q.records+1 > 2*int64(l.cfg.MaxQueueRecords):
		l.fail(fmt.Errorf("cannot append record of %d bytes: %d records of %d bytes wait, which is twice the limit", len(rec), q.records, q.bytes))
	default:
		if q.add(i, rec, n, l.midway) && q.head != q.tail {
			l.signal()
		}
		l.midway = l.requests > 0
		if q.bytes >= l.cfg.MaxQueueBytes || q.records >= int64(l.cfg.MaxQueueRecords) {
			l.full.Store(true)
			l.ask(i)
		}
	}
	return i
}

// ask has the committer write up to an index. The caller holds mu.
func (l *Log) ask(upTo Index) {
	if upTo <= l.asked {
		return
	}
	l.asked = upTo
	if g := l.queue.tail; g != nil && upTo >= g.first && g.asked.IsZero() {
		g.asked = l.cfg.Now()
	}
	if l.due() {
		l.signal()
	}
}

// due reports whether the oldest group is to be written: it is asked for, or it is full. The caller
// holds mu.
func (l *Log) due() bool {
	g := l.queue.head
	return g != nil && (g != l.queue.tail || l.requests == 0 && l.asks())
}

// asks reports whether the oldest group was asked for and does not linger. The caller holds mu.
func (l *Log) asks() bool {
	q := &l.queue
	return q.head != nil && l.asked >= q.head.first && q.records >= l.linger.target
}

// fail has the committer stop with err. The caller holds mu.
func (l *Log) fail(err error) {
	if l.stopCause == nil {
		l.stopCause = err
		l.full.Store(true)
		l.signal()
	}
}

// Overloaded reports whether a request that would append must be refused: the queue is at its
// limit, or the journal takes no more records. Ask before the request is decided. It is one atomic
// load.
func (l *Log) Overloaded() bool { return l.full.Load() }

// Appended returns the index of the last record that was appended.
func (l *Log) Appended() Index { return l.appended.Load() }

// Durable returns the index up to which every record is acknowledged.
func (l *Log) Durable() Index { return l.durable.Load() }

// Epoch returns the epoch of this owner, which is higher than any before. It is 0 before the end of
// Replay.
func (l *Log) Epoch() uint64 { return l.epoch.Load() }

// LogTime returns the time of the last block in nanoseconds since 1970. It never goes back, and
// never jumps by more than maxClockStep while the log is owned. After Replay an owner that chooses
// times for its records starts from it.
func (l *Log) LogTime() int64 { return l.time.Load() }

// Err returns nil while the journal works, an ErrFailed with its cause when it has stopped, and
// ErrClosed when it was closed.
func (l *Log) Err() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase >= closing {
		return ErrClosed
	}
	return nil
}

// Close writes what waits, ends the committer and closes the store. It returns why the journal had
// stopped, if it had. A second call returns what the first did. It waits for a running Replay,
// LoadSnapshot or WriteSnapshot.
func (l *Log) Close() error {
	l.mu.Lock()
	again := l.closes
	l.closes = true
	if l.phase < closing {
		l.phase = closing
	}
	l.full.Store(true)
	l.signal()
	l.mu.Unlock()
	if again {
		<-l.closed
		return l.closeErr
	}
	<-l.done
	defer l.maintain()()
	l.closeErr = l.store.Close()
	if err := l.failure.Load(); err != nil {
		l.closeErr = *err
	}
	close(l.closed)
	return l.closeErr
}

// maintain takes the upkeep lock and returns what gives it back.
func (l *Log) maintain() (release func()) {
	l.upkeep <- struct{}{}
	return func() { <-l.upkeep }
}

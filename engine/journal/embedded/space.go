package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Why nothing new should be written. Each is a bit of space.why.
const (
	spaceLow          = 1 << iota // less free than MinFreeBytes, and not yet twice as much again
	flushFailing                  // the last flush ended with an error
	compactionFailing             // the last compaction did
	stalled                       // pebble has held up a write for stallGrace: less than that is the common wait for a flush
)

const stallGrace = time.Second

// space knows whether the disk is full. Pebble shows it late: it repeats a flush without room for
// ever, and writes hang once memory is full.
type space struct {
	why  atomic.Uint32
	free func() (uint64, error)
	log  *slog.Logger

	freeBytes  atomic.Uint64
	cause      atomic.Pointer[error] // of the last flushFailing or compactionFailing
	compaction atomic.Bool           // a compaction has failed, whose error is still to come
	stallSince atomic.Int64          // unix nanoseconds, 0: no stall
	unreadable bool                  // of look: the free space could not be read, which was logged
}

func (s *space) init(free func() (uint64, error), log *slog.Logger) { s.free, s.log = free, log }

func (s *space) full() bool { return s.why.Load() != 0 }

func (s *space) is(bit uint32) bool { return s.why.Load()&bit != 0 }

// broken reports whether files cannot be written for another reason than a full disk.
func (s *space) broken() bool {
	p := s.cause.Load()
	why := s.why.Load()
	return why != 0 && why&^(flushFailing|compactionFailing) == 0 && p != nil && !errors.Is(typed(*p), ErrFull)
}

// flushError is why the last flush failed.
func (s *space) flushError() error {
	if p := s.cause.Load(); p != nil {
		return fmt.Errorf("a file of the database could not be written: %w", typed(*p))
	}
	return nil
}

// set and clear may run under locks of pebble. They log a change once, not each repetition of a
// flush.
func (s *space) set(bit uint32, cause any) {
	if s.why.Or(bit)&bit == 0 {
		what := "journal is full: nothing new is accepted"
		if err, ok := cause.(error); ok && !errors.Is(typed(err), ErrFull) {
			what = "journal cannot write its files: nothing new is accepted"
		}
		s.log.Error(what, "cause", cause, "free_bytes", s.freeBytes.Load())
	}
}

func (s *space) clear(bit uint32) {
	if old := s.why.And(^bit); old == bit {
		s.log.Info("journal accepts changes again", "free_bytes", s.freeBytes.Load())
	}
}

func (s *space) stallBegins(reason string) {
	s.stallSince.Store(time.Now().UnixNano())
	s.log.Debug("journal waits for room in memory", "reason", reason)
}

func (s *space) stallEnds() {
	s.stallSince.Store(0)
	s.clear(stalled)
}

// look reads the free space, and how long a stall lasts. It is called by one goroutine.
func (s *space) look(now time.Time) {
	if since := s.stallSince.Load(); since != 0 && now.UnixNano()-since >= int64(stallGrace) {
		s.set(stalled, "writes are held up")
		if s.stallSince.Load() == 0 { // it ended meanwhile
			s.clear(stalled)
		}
	}
	free, err := s.free()
	if err != nil {
		if !s.unreadable {
			s.unreadable = true
			s.log.Warn("journal cannot watch the free space", "err", err)
		}
		return
	}
	s.unreadable = false
	s.freeBytes.Store(free)
	switch {
	case free < MinFreeBytes:
		s.set(spaceLow, "low free space")
	case free >= 2*MinFreeBytes:
		s.clear(spaceLow)
	}
}

// slowDiskAfter is how long one write or sync may take before the log has a line about it.
const slowDiskAfter = 5 * time.Second

// The operations of a disk that are watched.
const (
	opWrite = "write"
	opSync  = "sync"
)

// diskWatch knows which operations the disk has not answered.
type diskWatch struct {
	log *slog.Logger

	mu  sync.Mutex
	ops []*diskOp
	old []*diskOp // to be used again
}

// diskOp is a write or a sync of a file that runs.
type diskOp struct {
	what, file string
	since      time.Time
	logged     bool
}

// begin is called before an operation, and end after it. They do not allocate in steady state.
func (d *diskWatch) begin(what, file string) *diskOp {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var op *diskOp
	if n := len(d.old); n > 0 {
		op, d.old = d.old[n-1], d.old[:n-1]
	} else {
		op = new(diskOp)
	}
	*op = diskOp{what: what, file: file, since: now}
	d.ops = append(d.ops, op)
	return op
}

func (d *diskWatch) end(op *diskOp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, o := range d.ops {
		if o == op {
			last := len(d.ops) - 1
			d.ops[i], d.ops = d.ops[last], d.ops[:last]
			break
		}
	}
	if op.logged {
		d.log.Warn("the disk has answered", "operation", op.what, "file", op.file, "secs", time.Since(op.since).Seconds())
	}
	d.old = append(d.old, op)
}

// look logs every operation that takes too long, once.
func (d *diskWatch) look(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range d.ops {
		if took := now.Sub(op.since); took >= slowDiskAfter && !op.logged {
			op.logged = true
			d.log.Warn("journal waits for a slow disk", "operation", op.what, "file", op.file, "secs", took.Seconds())
		}
	}
}

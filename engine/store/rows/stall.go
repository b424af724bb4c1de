package rows

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// What is wrong with the files. Each is a bit of room.why.
const (
	flushFailing = 1 << iota // the last flush ended with an error
	mergeFailing             // the last merge did
	rotten                   // a merge met damage; it stays until the next opening
)

// room knows whether files can be written. Pebble repeats a flush without room for ever, and a
// commit hangs in it once memory is full.
type room struct {
	log   *slog.Logger
	why   atomic.Uint32
	cause atomic.Pointer[error]
	merge atomic.Bool // a merge has failed, whose error is still to come
}

func (r *room) is(bits uint32) bool { return r.why.Load()&bits != 0 }

// set and clear may run under locks of pebble. They log a change once, not each repetition.
func (r *room) set(bit uint32, err error) {
	r.cause.Store(&err)
	if r.why.Or(bit)&bit == 0 {
		r.log.Error("rows cannot write their files", "err", err)
	}
}

func (r *room) clear(bit uint32) {
	if r.why.And(^bit)&bit != 0 {
		r.log.Info("rows write their files again")
	}
}

func (r *room) err() error {
	if p := r.cause.Load(); p != nil {
		return fmt.Errorf("a file could not be written: %w", typed(*p))
	}
	return nil
}

// Full reports whether nothing new should be put, because files cannot be written or are damaged.
// It is one atomic load. What is put nevertheless stays in memory while there is room.
func (d *DB) Full() bool { return d.room.is(flushFailing | rotten) }

// Broken reports whether Full has another cause than a full disk. The cause is in the log.
func (d *DB) Broken() bool { return d.Full() && !errors.Is(d.room.err(), errFull) }

// stall ends a batch's wait in pebble for files that cannot be written: pebble would go on for
// ever, and Close with it.
type stall struct {
	mu    sync.Mutex
	timer *time.Timer // nil: nothing waits
}

// stallBegins and stallEnds run under locks of pebble.
func (d *DB) stallBegins() {
	d.stall.mu.Lock()
	defer d.stall.mu.Unlock()
	d.stall.timer = time.AfterFunc(d.cfg.StallTimeout, d.stalled)
}

func (d *DB) stallEnds() {
	d.stall.mu.Lock()
	defer d.stall.mu.Unlock()
	d.stall.timer.Stop()
	d.stall.timer = nil
}

// stalled ends the rows if their files fail. If not, the disk is slow, and so are the batches.
func (d *DB) stalled() {
	d.stall.mu.Lock()
	defer d.stall.mu.Unlock()
	switch {
	case d.stall.timer == nil:
	case d.room.is(flushFailing | mergeFailing | rotten):
		d.fail(fmt.Errorf("memory is full for %v: %w", d.cfg.StallTimeout, d.room.err()))
	default:
		d.stall.timer.Reset(d.cfg.StallTimeout)
	}
}

const flushPause = 100 * time.Millisecond

// beforeTable delays files that follow a failed one: pebble repeats a flush at once, and would use
// a core to fill a full disk. And it keeps rows behind the journal.
func (d *DB) beforeTable(flush bool) error {
	if d.room.is(flushFailing | mergeFailing) {
		select {
		case <-time.After(flushPause):
		case <-d.ctx.Done():
		}
	}
	if flush {
		return d.cfg.Barrier(d.ctx)
	}
	return nil
}

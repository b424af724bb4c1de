package embedded

import (
	"log/slog"
	"sync"
	"time"
)

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

package journal

import (
	"sync/atomic"
	"time"

	"trunkline/engine/internal/poison"
)

// keptGroups is how many empty groups wait for use: one to write, one open, and some for a burst.
const keptGroups = 4

// group is a block in the making: room for the header, then records.
type group struct {
	buf   []byte
	first Index
	count uint32
	asked time.Time // when it was first asked for; zero: it was not
	next  *group
}

// waited returns how long the group waited since it was first asked for; less than zero if it was
// not.
func (g *group) waited(now time.Time) time.Duration {
	if g.asked.IsZero() {
		return -1
	}
	return max(now.Sub(g.asked), 0)
}

// queue holds the groups that wait, oldest first; the newest is open for more records. Log.mu
// guards it.
//
// A group is as large as a block may be, so a queue takes at most about twice its bytes (a record
// with its own group can leave the group before it half empty), and the kept groups.
type queue struct {
	limit      int // bytes of a block
	head, tail *group
	free       *group
	kept       int
	bytes      int64 // of all records that are not acknowledged, in a group here or with the committer
	records    int64
}

// add copies a record, which takes n bytes, into the open group, and reports whether it opened one.
// In the middle of a request a group ends only where no store would take it.
func (q *queue) add(i Index, rec []byte, n int64, midway bool) (opened bool) {
	g, limit := q.tail, q.limit
	if midway {
		limit = MaxStoredBlock
	}
	if g == nil || len(g.buf)+int(n)+trailerBytes > limit {
		g = q.open(i, int(n))
		opened = true
	}
	g.buf = appendRecord(g.buf, rec)
	g.count++
	q.bytes += n
	q.records++
	return opened
}

// open starts a group at index i for a record of n bytes.
func (q *queue) open(i Index, n int) *group {
	g := q.free
	if g != nil && n+frameBytes <= q.limit {
		q.free, q.kept = g.next, q.kept-1
	} else {
		g = &group{buf: make([]byte, headerBytes, max(q.limit, n+frameBytes))}
	}
	g.first, g.count, g.asked, g.next = i, 0, time.Time{}, nil
	if q.tail == nil {
		q.head = g
	} else {
		q.tail.next = g
	}
	q.tail = g
	return g
}

// take removes the oldest group. Its records still count as waiting.
func (q *queue) take() *group {
	g := q.head
	if g == nil {
		return nil
	}
	if q.head = g.next; q.head == nil {
		q.tail = nil
	}
	g.next = nil
	return g
}

// release takes a written group back; its records took n bytes.
func (q *queue) release(g *group, n int64) {
	q.bytes -= n
	q.records -= int64(g.count)
	poison.Fill(g.buf)
	if q.kept < keptGroups && cap(g.buf) <= q.limit {
		g.buf = g.buf[:headerBytes]
		g.next, q.free = q.free, g
		q.kept++
	}
}

// drop forgets everything that waits.
func (q *queue) drop() { *q = queue{limit: q.limit} }

// Stats is what a Log has done since Open, and what waits now.
type Stats struct {
	// QueueBytes and QueueRecords wait for their acknowledgement, including the group being
	// written.
	QueueBytes, QueueRecords int64
	// Groups, Records and Bytes were acknowledged. Bytes are those of blocks. Groups counts writes.
	Groups, Records, Bytes uint64
	// LastGroup is the number of records in the last group.
	LastGroup uint64
	// Snapshots and SnapshotBytes were written and verified.
	Snapshots, SnapshotBytes uint64
}

// counters are written by the committer and, for snapshots, under upkeep.
type counters struct {
	groups, records, bytes, lastGroup atomic.Uint64
	snapshots, snapshotBytes          atomic.Uint64
}

func (c *counters) group(records uint32, bytes int) {
	c.groups.Add(1)
	c.records.Add(uint64(records))
	c.bytes.Add(uint64(bytes))
	c.lastGroup.Store(uint64(records))
}

// Stats returns the counters. Each is exact; together they are not of one moment. It does not
// allocate.
func (l *Log) Stats() Stats {
	c := &l.counters
	s := Stats{
		Groups:        c.groups.Load(),
		Records:       c.records.Load(),
		Bytes:         c.bytes.Load(),
		LastGroup:     c.lastGroup.Load(),
		Snapshots:     c.snapshots.Load(),
		SnapshotBytes: c.snapshotBytes.Load(),
	}
	l.mu.Lock()
	s.QueueBytes, s.QueueRecords = l.queue.bytes, l.queue.records
	l.mu.Unlock()
	return s
}

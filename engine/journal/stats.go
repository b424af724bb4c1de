package journal

import "sync/atomic"

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

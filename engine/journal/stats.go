package journal

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// LatencyBuckets is the number of buckets in Stats.Latency. Bucket i counts what took less than
// LatencyBound(i) and not less than the bound before. The last one counts the rest.
const LatencyBuckets = 20

// shortestLatency is the bound of bucket 0. The one before the last is 4.2 s.
const shortestLatency = 16 * time.Microsecond

// LatencyBound returns the upper bound of bucket i, exclusive. The last bucket has none and gives
// 0.
func LatencyBound(i int) time.Duration {
	if i >= LatencyBuckets-1 {
		return 0
	}
	return shortestLatency << i
}

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
	// Latency counts groups by how long the store took, LatencySum is all of it.
	Latency    [LatencyBuckets]uint64
	LatencySum time.Duration
}

// counters are written by the committer and, for snapshots, under upkeep.
type counters struct {
	groups, records, bytes, lastGroup atomic.Uint64
	snapshots, snapshotBytes          atomic.Uint64
	latency                           [LatencyBuckets]atomic.Uint64
	latencySum                        atomic.Int64
}

func (c *counters) group(records uint32, bytes int, took time.Duration) {
	c.groups.Add(1)
	c.records.Add(uint64(records))
	c.bytes.Add(uint64(bytes))
	c.lastGroup.Store(uint64(records))
	c.latency[latencyBucket(took)].Add(1)
	c.latencySum.Add(int64(took))
}

func latencyBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0)/shortestLatency)), LatencyBuckets-1)
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
		LatencySum:    time.Duration(c.latencySum.Load()),
	}
	for i := range s.Latency {
		s.Latency[i] = c.latency[i].Load()
	}
	l.mu.Lock()
	s.QueueBytes, s.QueueRecords = l.queue.bytes, l.queue.records
	l.mu.Unlock()
	return s
}

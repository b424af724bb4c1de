package kernel

import (
	"hash/crc64"

	"trunkline/engine/store"
)

// DigestShards is into how many parts ShardDigests divides processes and users: by a hash of their
// names that is the same in every kernel, unlike that of the table's own shards.
const DigestShards = 16

// ShardDigests condenses the state in parts that two kernels with the same state share:
// DigestShards of processes, by pid, and rate logs, by user, and then one of the sequences and the
// default quota.
//
// Others may use the kernel meanwhile, for the scheduling lock and a shard's are held for a batch
// of rows at a time; then every row is of the moment at which it was looked at. stop is asked
// between the batches; once it returns true, the result is nil. It may be nil.
func (k *Kernel) ShardDigests(stop func() bool) []uint64 {
	d := shardDigests{sums: make([]uint64, DigestShards+1), table: crc64.MakeTable(crc64.ECMA)}
	for i := range k.shards {
		for from, more := uint32(0), true; more; from += snapshotBatch {
			more = k.digestRows(&d, &k.shards[i], from)
			if d.flush(); stop != nil && stop() {
				return nil
			}
		}
	}
	for i := range k.rates.shards {
		for from, more := uint32(0), true; more; {
			from, more = k.rates.shards[i].digestLogs(&d, from)
			if d.flush(); stop != nil && stop() {
				return nil
			}
		}
	}
	d.sums[DigestShards] = k.digestGlobals(&d)
	return d.sums
}

// Digest condenses ShardDigests into one number.
func (k *Kernel) Digest() (sum uint64) {
	for i, part := range k.ShardDigests(nil) {
		sum += part * uint64(2*i+1)
	}
	return sum
}

// shardDigests collects names and records of a batch under the locks, and condenses them without.
// Sums do not depend on the order.
type shardDigests struct {
	sums       []uint64
	table      *crc64.Table
	buf        []byte
	keys, ends []int // of the names and of the records behind them in buf
}

func (d *shardDigests) flush() {
	start := 0
	for i, key := range d.keys {
		shard := d.hash(d.buf[start:key]) % DigestShards
		d.sums[shard] += d.hash(d.buf[key:d.ends[i]])
		start = d.ends[i]
	}
	d.buf, d.keys, d.ends = d.buf[:0], d.keys[:0], d.ends[:0]
}

// hash is a checksum with a mixer behind it, so that sums of it distinguish more.
func (d *shardDigests) hash(b []byte) uint64 {
	return store.Mix(crc64.Checksum(b, d.table))
}

// digestRows takes snapshotBatch slots of sh from the given one on; more: further slots follow.
func (k *Kernel) digestRows(d *shardDigests, sh *shard, from uint32) (more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	end := min(from+snapshotBatch, sh.used)
	for slot := from; slot < end; slot++ {
		r := sh.row(slot)
		if r.created == 0 {
			continue
		}
		n := k.sched.nodes.at(r.node).canonical()
		d.buf = append(d.buf, sh.pid(r)...)
		d.keys = append(d.keys, len(d.buf))
		d.buf = appendSnapshotRow(d.buf, sh, r, &n, 0)
		d.ends = append(d.ends, len(d.buf))
	}
	return end < sh.used
}

// canonical returns the node without what depends on the way to its state: a returned entry and a
// queued one differ only in where they are kept, and the index of a completion's record is 0 where
// nothing is recorded.
func (n *node) canonical() node {
	c := *n
	switch n.where {
	case returned:
		c.where = queued
	case completed:
		c.ready = 0
	}
	return c
}

// digestLogs takes logs from the given slot on and returns the slot to go on with, if there are
// more.
func (s *rateShard) digestLogs(d *shardDigests, from uint32) (next uint32, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(from+snapshotBatch, s.used)
	for next = from; next < end && len(d.buf) < snapshotBytes; next++ {
		if g := s.log(next); g.live {
			d.buf = append(d.buf, s.user(g)...)
			d.keys = append(d.keys, len(d.buf))
			d.buf = appendSnapshotLog(d.buf, s.user(g), g, 0)
			d.ends = append(d.ends, len(d.buf))
		}
	}
	return next, next < s.used
}

func (k *Kernel) digestGlobals(d *shardDigests) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return d.hash(appendSnapshotBegin(d.buf, &snapshotGlobals{created: k.created, readied: k.readied, defaults: *k.defaults.Load()}))
}

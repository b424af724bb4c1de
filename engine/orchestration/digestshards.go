package orchestration

import (
	"hash/crc64"

	"trunkline/codec/wire"
	"trunkline/engine/store"
)

// DigestShards is into how many parts ShardDigests divides what is held: by a hash of the names
// that is the same in every engine.
const DigestShards = 16

// ShardDigests condenses the state in parts that two engines share that hold the same: envelopes by
// their ids, sessions by their processes. c brings the time: a session whose process has ended, and
// that no request has asked for since, ends now. Requests may go on meanwhile, for only a shard of
// the table or a session is locked at a time; then every entry is of the moment at which it was
// looked at. stop is asked before each entry; once it returns true, the result is nil. It may be
// nil.
func (o *Engine) ShardDigests(c *Call, stop func() bool) []uint64 {
	d := shardDigests{sums: make([]uint64, DigestShards), table: crc64.MakeTable(crc64.ECMA)}
	for _, e := range o.listEnvelopes() {
		if stop != nil && stop() {
			return nil
		}
		if e.v.life.Load() != dead {
			d.add('e', []byte(e.id), e.v.encoded)
		}
	}
	for _, pid := range o.listSessions() {
		if stop != nil && stop() {
			return nil
		}
		s, code := o.find(c, pid, false)
		if code != wire.OK {
			continue // it is gone by now
		}
		c.output = s.appendState(c.output[:0])
		s.mu.Unlock()
		d.add('s', pid, c.output)
	}
	return d.sums
}

// Digest condenses ShardDigests into one number.
func (o *Engine) Digest(c *Call) (sum uint64) {
	for i, part := range o.ShardDigests(c, nil) {
		sum += part * uint64(2*i+1)
	}
	return sum
}

// shardDigests are sums, which do not depend on the order.
type shardDigests struct {
	sums  []uint64
	table *crc64.Table
	buf   []byte
}

// add counts the state of the entry with a key.
func (d *shardDigests) add(kind byte, key, state []byte) {
	d.buf = append(append(d.buf[:0], kind), key...)
	h := crc64.Checksum(d.buf, d.table)
	d.sums[store.Mix(h)%DigestShards] += store.Mix(crc64.Update(h, d.table, state))
}

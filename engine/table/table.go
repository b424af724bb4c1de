// Package table is a bounded, lock-sharded table keyed by text: the envelope store and the session
// table of envelope §5.3 and §6. It has no clock, goroutine or I/O; readings of the monotonic clock
// come from the caller.
//
// Every entry has a size in bytes, the reading at which it was last touched, and a class, Live or
// Ended. A table holds at most Config.MaxEntries entries of at most Config.MaxBytes bytes together,
// at every moment: room is reserved before an entry is linked. What makes room when there is none
// is the Policy of the call.
//
// # Access
//
//	Get, Touch, Remove             one step
//	Acquire ... Release, Do        several steps on one entry, atomic
//	Insert, Put, MakeRoom          may evict, see below
//	Sweep                          drops what is idle and expired; fresher entries cost nothing
//	Walk                           visits everything
//
// # Locks
//
// Each shard has one mutex, and no operation holds two of them. Acquire keeps the shard of its key
// locked until Release; the callbacks of Do, Walk and Sweep run with it locked. A caller that has a
// shard locked may use the methods of Entry and Len and Bytes, which take no lock, and must not
// call any other method of the same table. Config.OnEvict is called with no lock held and may do
// anything.
//
// A *V that Get returned is not protected by any lock: it is for values that are replaced as a
// whole and never written.
//
// # Order
//
// Entries of one class in one shard form a list in order of touch, and the reading at its head is
// kept in an atomic, so that the longest untouched entry of the table is found by one load per
// shard and without waiting for a locked one. A touch costs a few pointer writes. An entry that
// enters a list late (a class change without a touch, a reading from a loop whose clock is behind)
// is moved to its place from the fresh end, in as many steps as there are fresher entries.
//
// Eviction takes Ended entries first, then Live ones, each longest untouched first and only from
// the idle age the Policy gives.
package table

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// Limits of a table where Config gives none (envelope §6), and of its shards.
const (
	defaultMaxEntries = 10_000
	defaultMaxBytes   = 256 << 20
	defaultShards     = 64
	maxShards         = 4096
)

// Config is what a table is built with.
type Config[V any] struct {
	// MaxEntries is the most entries the table holds; below 1: defaultMaxEntries.
	MaxEntries int
	// MaxBytes is the most bytes the sizes of all entries add up to; below 1: defaultMaxBytes. Keys
	// and the table's own overhead count only as far as the caller includes them in the sizes.
	MaxBytes int64
	// Shards is rounded up to a power of two and cut to maxShards; below 1: defaultShards.
	Shards int
	// OnEvict, if set, is called for every entry that Insert, Put and MakeRoom evicted or Sweep
	// dropped, after it is gone and without a lock. The key may have been inserted again in
	// between: an owner of an index beside the table compares v. It is called from several
	// goroutines at once.
	OnEvict func(key string, v *V)
}

// Table maps keys to *V. It is safe for concurrent use; New makes one.
type Table[V any] struct {
	entries atomic.Int64
	bytes   atomic.Int64
	// ended is the part of bytes of Ended entries: it shows a hopeless eviction before anything is
	// dropped.
	ended atomic.Int64

	maxEntries int64
	maxBytes   int64
	onEvict    func(key string, v *V)
	seed       maphash.Seed
	mask       uint64
	shards     []shard[V]
}

// New returns an empty table.
func New[V any](cfg Config[V]) *Table[V] {
	t := &Table[V]{onEvict: cfg.OnEvict, seed: maphash.MakeSeed()}
	t.SetLimits(cfg.MaxEntries, cfg.MaxBytes)
	n := 1 << bits.Len(uint(min(cmp.Or(max(cfg.Shards, 0), defaultShards), maxShards)-1))
	t.mask = uint64(n - 1)
	t.shards = make([]shard[V], n)
	for i := range t.shards {
		t.shards[i].init(t)
	}
	return t
}

// SetLimits changes MaxEntries and MaxBytes from now on; it evicts nothing. A table that holds more
// takes new entries once there is room. No other goroutine may use the table meanwhile.
func (t *Table[V]) SetLimits(maxEntries int, maxBytes int64) {
	maxEntries = cmp.Or(max(maxEntries, 0), defaultMaxEntries)
	maxBytes = cmp.Or(max(maxBytes, 0), defaultMaxBytes)
	t.maxEntries, t.maxBytes = int64(maxEntries), maxBytes
}

func (t *Table[V]) shardOf(key []byte) *shard[V] {
	return &t.shards[maphash.Bytes(t.seed, key)&t.mask]
}

// Len returns the number of entries, those included whose insertion is under way. It takes no lock.
func (t *Table[V]) Len() int { return int(t.entries.Load()) }

// Bytes returns the sum of all entries' sizes. It takes no lock.
func (t *Table[V]) Bytes() int64 { return t.bytes.Load() }

// Get returns the value of key. It does not count as a touch, does not keep key and does not
// allocate. The value is not protected by a lock once Get has returned.
func (t *Table[V]) Get(key []byte) (v *V, ok bool) {
	s := t.shardOf(key)
	s.mu.Lock()
	e := s.entries[string(key)]
	if e == nil {
		s.mu.Unlock()
		return nil, false
	}
	v = e.value
	s.mu.Unlock()
	return v, true
}

// Touch marks key as used at now and reports whether it is there. It does not allocate.
func (t *Table[V]) Touch(key []byte, now int64) bool {
	e := t.Acquire(key)
	if e == nil {
		return false
	}
	e.Touch(now)
	e.Release()
	return true
}

// Acquire returns the entry of key with its shard locked, or nil with nothing locked. The caller
// ends with Entry.Release, without another call of the table. It does not keep key and does not
// allocate.
func (t *Table[V]) Acquire(key []byte) *Entry[V] {
	s := t.shardOf(key)
	s.mu.Lock()
	e := s.entries[string(key)]
	if e == nil {
		s.mu.Unlock()
	}
	return e
}

// Remove deletes key without OnEvict, returns its value and reports whether it was there.
func (t *Table[V]) Remove(key []byte) (v *V, ok bool) {
	e := t.Acquire(key)
	if e == nil {
		return nil, false
	}
	v = e.value
	e.remove()
	e.Release()
	return v, true
}

// Walk calls f once for every entry, shard by shard, each under its shard's lock. f may use all
// methods of the entry but Release (Remove included), and none of the table's. Entries inserted or
// removed meanwhile in other shards may or may not be seen; the order is undefined.
func (t *Table[V]) Walk(f func(e *Entry[V])) {
	for i := range t.shards {
		t.shards[i].walk(f)
	}
}

// Sweep drops the expired entries last touched at or before cutoff, calls OnEvict for each, and
// returns their number. expired runs under the lock of the entry's shard and may only read its
// arguments; it sees the longest untouched of a shard and class first. Entries fresher than cutoff
// cost nothing.
func (t *Table[V]) Sweep(cutoff int64, expired func(v *V, class Class, touched int64) bool) (dropped int) {
	for i := range t.shards {
		for class := range numClasses {
			gone := t.shards[i].sweep(class, cutoff, expired)
			for ; gone != nil; gone = gone.next {
				t.evicted(gone)
				dropped++
			}
		}
	}
	return dropped
}

// evicted calls OnEvict for e, which is no longer in the table. Caller holds no lock.
func (t *Table[V]) evicted(e *Entry[V]) {
	if t.onEvict != nil {
		t.onEvict(e.key, e.value)
	}
}

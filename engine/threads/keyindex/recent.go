package keyindex

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// recent is the entries that are in no run. Those that are frozen go into the next one.
type recent struct {
	count  atomic.Int64
	shards [recentShards]recentShard
}

// recentShards is a power of two: more than the goroutines that add at a time.
const recentShards = 64

type recentShard struct {
	mu             sync.Mutex
	active, frozen map[Hash]uint64
	newest         int64 // of active
}

func (r *recent) init() {
	for i := range r.shards {
		r.shards[i].active, r.shards[i].frozen = map[Hash]uint64{}, map[Hash]uint64{}
	}
}

func (r *recent) shard(h *Hash) *recentShard {
	return &r.shards[binary.LittleEndian.Uint64(h[8:])&(recentShards-1)]
}

func (r *recent) add(h *Hash, number uint64, at int64) {
	s := r.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.active)
	s.active[*h], s.newest = number, max(s.newest, at)
	r.count.Add(int64(len(s.active) - n))
}

// find calls f with the numbers of a hash, the latest first, until it returns false.
func (r *recent) find(h *Hash, f func(number uint64) bool) (more bool) {
	s := r.shard(h)
	s.mu.Lock()
	active, isActive := s.active[*h]
	frozen, isFrozen := s.frozen[*h]
	s.mu.Unlock()
	return (!isActive || f(active)) && (!isFrozen || f(frozen))
}

// freeze appends all entries, which are found as before until drop.
func (r *recent) freeze(all []entry) (_ []entry, newest int64) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.active, s.frozen = s.frozen, s.active
		newest, s.newest = max(newest, s.newest), 0
		frozen := s.frozen
		s.mu.Unlock()
		for h, number := range frozen {
			all = append(all, newEntry(&h, number))
		}
	}
	r.count.Add(-int64(len(all)))
	return all, newest
}

// drop forgets what is frozen: it is in a run.
func (r *recent) drop() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		clear(s.frozen)
		s.mu.Unlock()
	}
}

package keyindex

import (
	"slices"
	"sync"
	"sync/atomic"
)

// recent is the entries that are in no run. Those that are frozen go into the next one.
type recent struct {
	count  atomic.Int64
	shards [1 << recentBits]recentShard // by the first bits of the hash: they are in its order
}

// recentBits make more shards than there are goroutines that add at a time.
const recentBits = 6

type recentShard struct {
	mu             sync.Mutex
	active, frozen table
	newest         int64 // of active
}

func (r *recent) shard(e *entry) *recentShard { return &r.shards[e.high>>(64-recentBits)] }

func (r *recent) add(e *entry, at int64) {
	s := r.shard(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, at)
	if s.active.add(e) {
		r.count.Add(1)
	}
}

// find calls f with the numbers of a hash, the latest first, until it returns false.
func (r *recent) find(e *entry, f func(number uint64) bool) (more bool) {
	s := r.shard(e)
	s.mu.Lock()
	active, frozen := s.active.find(e), s.frozen.find(e)
	s.mu.Unlock()
	return (active == 0 || f(active)) && (frozen == 0 || f(frozen))
}

// freeze appends all entries in the order of their hashes. They are found as before until drop.
func (r *recent) freeze(all []entry) (_ []entry, newest int64) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.active, s.frozen = s.frozen, s.active
		newest, s.newest = max(newest, s.newest), 0
		frozen := s.frozen.places
		s.mu.Unlock()
		start := len(all)
		for k := range frozen {
			if frozen[k].number > 0 {
				all = append(all, frozen[k])
			}
		}
		slices.SortFunc(all[start:], compareHashes)
	}
	r.count.Add(-int64(len(all)))
	return all, newest
}

// drop forgets what is frozen: it is in a run.
func (r *recent) drop() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.frozen.clear()
		s.mu.Unlock()
	}
}

// table is entries in open addressing: a look-up of a new key and its addition touch one place. A
// place without a number is free.
type table struct {
	places []entry // a power of two, at most three quarters of them used
	used   int
}

// keptPlaces bounds what an empty table keeps.
const keptPlaces = 4 * sealAt >> recentBits

// place returns the place of a hash: its own, or the free one where it belongs.
func (t *table) place(e *entry) *entry {
	for i := int(e.low); ; i++ {
		p := &t.places[i&(len(t.places)-1)]
		if p.number == 0 || p.low == e.low && p.high == e.high {
			return p
		}
	}
}

func (t *table) find(e *entry) (number uint64) {
	if t.used == 0 {
		return 0
	}
	return t.place(e).number
}

// add sets the number of a hash and reports whether it is new.
func (t *table) add(e *entry) (added bool) {
	if t.used >= len(t.places)/4*3 {
		old := t.places
		t.places = make([]entry, max(16, 2*len(old)))
		for i := range old {
			if old[i].number > 0 {
				*t.place(&old[i]) = old[i]
			}
		}
	}
	p := t.place(e)
	if added = p.number == 0; added {
		t.used++
	}
	*p = *e
	return added
}

func (t *table) clear() {
	if t.used = 0; len(t.places) > keptPlaces {
		t.places = nil
	}
	clear(t.places)
}

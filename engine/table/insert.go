package table

import "sync/atomic"

// Policy is which entries may be evicted to make room. The zero value evicts nothing.
type Policy struct {
	Ended, Live         bool  // whether entries of the class may be evicted at all; Ended ones go first
	EndedIdle, LiveIdle int64 // for how long they must have been untouched, in units of the readings
}

// of returns the part of the policy for class.
func (p *Policy) of(class Class) (allowed bool, idle int64) {
	if class == Ended {
		return p.Ended, p.EndedIdle
	}
	return p.Live, p.LiveIdle
}

// Outcome is how an insertion went.
type Outcome uint8

// The outcomes of Insert and Put.
const (
	Full     Outcome = iota // refused: there is no room, and the policy allows no eviction that makes enough
	Inserted                // the key is new
	Replaced                // Put only: the key was there, it has the new value now
	Exists                  // Insert only: refused, the key is there
)

// String returns the name of the outcome in lower case.
func (o Outcome) String() string {
	return [...]string{"full", "inserted", "replaced", "exists"}[o&3]
}

// item is one insertion.
type item[V any] struct {
	key     []byte
	value   *V
	size    int64
	class   Class
	now     int64
	replace bool
}

// Insert adds key with value v, accounted with size bytes (negative ones as 0) and touched at now,
// if it is not there yet. To make room it evicts what p allows. It copies key. On Exists and Full
// the table keeps nothing of v. Caller holds no lock of this table.
func (t *Table[V]) Insert(key []byte, v *V, size int64, class Class, now int64, p Policy) Outcome {
	_, o := t.insert(&item[V]{key, v, max(size, 0), class, now, false}, &p)
	return o
}

// Put is Insert that replaces value, size, class and touch of an existing key, and returns its old
// value (nil unless Replaced). On Full an existing entry stays as it was; it is never evicted for
// its successor.
func (t *Table[V]) Put(key []byte, v *V, size int64, class Class, now int64, p Policy) (old *V, o Outcome) {
	return t.insert(&item[V]{key, v, max(size, 0), class, now, true}, &p)
}

// MakeRoom evicts what p allows, but never key, until bytes more bytes fit under MaxBytes, and
// reports whether they do. The room is not reserved. Caller holds no lock of this table.
func (t *Table[V]) MakeRoom(key []byte, bytes, now int64, p Policy) bool {
	bytes = max(bytes, 0)
	for t.bytes.Load() > t.maxBytes-bytes {
		if !t.evictOne(key, bytes, now, &p) {
			return false
		}
	}
	return true
}

func (t *Table[V]) insert(it *item[V], p *Policy) (old *V, o Outcome) {
	if it.class >= numClasses {
		it.class = Live
	}
	s := t.shardOf(it.key)
	for {
		old, o, lack := s.tryInsert(it)
		// Others may take the room of an eviction; then this repeats, and each round drops one
		// entry.
		if o != Full || !t.evictOne(it.key, lack, it.now, p) {
			return old, o
		}
	}
}

// tryInsert is insert without eviction. lack is the bytes it needs beyond those of the key.
func (s *shard[V]) tryInsert(it *item[V]) (old *V, o Outcome, lack int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[string(it.key)]; e != nil {
		return s.tryReplace(e, it)
	}
	t := s.table
	if !t.reserve(it.size) {
		return nil, Full, it.size
	}
	e := &Entry[V]{key: string(it.key), value: it.value, size: it.size, touched: it.now, class: it.class, shard: s}
	s.entries[e.key] = e
	s.link(e)
	t.account(e.class, e.size)
	return nil, Inserted, 0
}

// tryReplace overwrites e with it. Caller holds mu.
func (s *shard[V]) tryReplace(e *Entry[V], it *item[V]) (old *V, o Outcome, lack int64) {
	if !it.replace {
		return nil, Exists, 0
	}
	if !e.Resize(it.size) {
		return nil, Full, it.size - e.size
	}
	old = e.value
	e.value = it.value
	e.SetClass(it.class)
	e.Touch(it.now)
	return old, Replaced, 0
}

// evictOne drops one entry other than keep, so that bytes more may fit, and reports whether it did.
func (t *Table[V]) evictOne(keep []byte, bytes, now int64, p *Policy) bool {
	if t.hopeless(bytes, p) {
		return false
	}
	for _, class := range [...]Class{Ended, Live} {
		allowed, idle := p.of(class)
		for allowed {
			s, reading := t.longest(class, keep)
			if s == nil || now-reading < idle {
				break
			}
			if e := s.evict(class, keep, reading); e != nil {
				t.evicted(e)
				return true
			}
			// It was touched or taken since: look again.
		}
	}
	return false
}

// hopeless reports whether dropping all that p can allow would not make room for bytes more.
func (t *Table[V]) hopeless(bytes int64, p *Policy) bool {
	stays := t.bytes.Load()
	ended := min(t.ended.Load(), stays)
	if p.Live {
		stays = ended
	}
	if p.Ended {
		stays -= ended
	}
	return stays > t.maxBytes-bytes
}

// longest returns the shard with the longest untouched entry of class but keep, and its reading, or
// nil.
func (t *Table[V]) longest(class Class, keep []byte) (s *shard[V], reading int64) {
	home, reading := t.shardOf(keep), int64(none)
	for i := range t.shards {
		at := &t.shards[i]
		r := at.oldest(class)
		if at == home && r < reading {
			r = at.oldestBut(class, keep)
		}
		if r < reading {
			s, reading = at, r
		}
	}
	return s, reading
}

// evict removes and returns the longest untouched entry of class that is not keep, if it was
// touched no later than reading. Caller does not hold mu.
func (s *shard[V]) evict(class Class, keep []byte, reading int64) *Entry[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.victim(class, keep)
	if e == nil || e.touched > reading {
		return nil
	}
	e.remove()
	return e
}

// reserve takes room for one entry of size bytes. Reservations compare before they add: the
// counters never exceed the limits, not even for a moment.
func (t *Table[V]) reserve(size int64) bool {
	if !add(&t.entries, 1, t.maxEntries) {
		return false
	}
	if t.reserveBytes(size) {
		return true
	}
	t.entries.Add(-1)
	return false
}

// reserveBytes takes room for n bytes more; n <= 0 gives room back.
func (t *Table[V]) reserveBytes(n int64) bool { return add(&t.bytes, n, t.maxBytes) }

// account books n bytes on class.
func (t *Table[V]) account(class Class, n int64) {
	if class == Ended {
		t.ended.Add(n)
	}
}

// add adds n to counter unless it would exceed limit by growing.
func add(counter *atomic.Int64, n, limit int64) bool {
	if n <= 0 {
		counter.Add(n)
		return true
	}
	for {
		c := counter.Load()
		if c > limit-n {
			return false
		}
		if counter.CompareAndSwap(c, c+n) {
			return true
		}
	}
}

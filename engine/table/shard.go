package table

import (
	"math"
	"sync"
	"sync/atomic"
)

// none is the oldest reading of an empty list.
const none = math.MaxInt64

// shard is one independently locked part of a table. All methods but init and oldest need mu.
type shard[V any] struct {
	mu      sync.Mutex
	entries map[string]*Entry[V]
	lists   [numClasses]list[V]
	// first is the reading of each list's head, readable without mu: who looks for a victim does
	// not wait for a shard in which a large envelope is being worked on.
	first [numClasses]atomic.Int64
	table *Table[V]
	_     [64]byte // neighbours do not share a cache line
}

// list is the entries of one class in order of touch.
type list[V any] struct {
	head, tail *Entry[V] // longest and shortest untouched
}

func (s *shard[V]) init(t *Table[V]) {
	s.table, s.entries = t, make(map[string]*Entry[V])
	for class := range s.first {
		s.first[class].Store(none)
	}
}

// link puts e where its touch belongs in the list of its class, behind its equals.
func (s *shard[V]) link(e *Entry[V]) {
	l := &s.lists[e.class]
	at := l.tail
	for at != nil && at.touched > e.touched {
		at = at.prev
	}
	e.prev = at
	if at != nil {
		e.next, at.next = at.next, e
	} else {
		e.next, l.head = l.head, e
		s.first[e.class].Store(e.touched)
	}
	if e.next != nil {
		e.next.prev = e
	} else {
		l.tail = e
	}
}

// unlink takes e out of the list of its class.
func (s *shard[V]) unlink(e *Entry[V]) {
	l := &s.lists[e.class]
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
		s.noteFirst(e.class)
	}
	e.prev, e.next = nil, nil
}

func (s *shard[V]) noteFirst(class Class) {
	reading := int64(none)
	if head := s.lists[class].head; head != nil {
		reading = head.touched
	}
	s.first[class].Store(reading)
}

// victim returns the longest untouched entry of class whose key is not keep, or nil.
func (s *shard[V]) victim(class Class, keep []byte) *Entry[V] {
	e := s.lists[class].head
	if e != nil && e.key == string(keep) {
		e = e.next
	}
	return e
}

// oldest returns the reading of the longest untouched entry of class, or none. It needs no lock.
func (s *shard[V]) oldest(class Class) int64 { return s.first[class].Load() }

// oldestBut is oldest for the shard where keep lives. Caller does not hold mu.
func (s *shard[V]) oldestBut(class Class, keep []byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.victim(class, keep); e != nil {
		return e.touched
	}
	return none
}

// walk calls f for every entry. Caller does not hold mu.
func (s *shard[V]) walk(f func(e *Entry[V])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		f(e)
	}
}

// sweep removes the expired entries of class up to cutoff, chained by next. Caller does not hold
// mu.
func (s *shard[V]) sweep(class Class, cutoff int64, expired func(v *V, class Class, touched int64) bool) (gone *Entry[V]) {
	if s.oldest(class) > cutoff {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.lists[class].head; e != nil && e.touched <= cutoff; {
		next := e.next
		if expired(e.value, class, e.touched) {
			e.remove()
			e.next, gone = gone, e
		}
		e = next
	}
	return gone
}

// Class is whether an entry still takes part in something (envelope §5.3): eviction prefers Ended
// ones.
type Class uint8

// The classes of entries.
const (
	Live Class = iota
	Ended
	numClasses
)

// String returns the name of the class in lower case.
func (c Class) String() string {
	if c == Ended {
		return "ended"
	}
	return "live"
}

// Entry is one key of a table and its values. All methods need its shard locked, as it is from
// Acquire to Release and in callbacks; none locks or allocates. An entry must not be kept beyond
// that.
type Entry[V any] struct {
	key     string
	value   *V
	size    int64
	touched int64
	class   Class
	removed bool

	shard      *shard[V]
	prev, next *Entry[V] // towards the longer and the shorter untouched of the class
}

// Release unlocks the shard of an entry from Acquire, also after Remove. The entry is of no use
// then.
func (e *Entry[V]) Release() { e.shard.mu.Unlock() }

// Key returns the key; it may be kept.
func (e *Entry[V]) Key() string { return e.key }

// Value returns the value; it may be written to while the shard is locked.
func (e *Entry[V]) Value() *V { return e.value }

// SetValue replaces the value. The size stays as it is.
func (e *Entry[V]) SetValue(v *V) { e.value = v }

// Size returns the size in bytes that the entry is accounted with.
func (e *Entry[V]) Size() int64 { return e.size }

// Touched returns the reading of the last touch.
func (e *Entry[V]) Touched() int64 { return e.touched }

// Class returns the entry's class.
func (e *Entry[V]) Class() Class { return e.class }

// Resize accounts the entry with size bytes, negative ones as 0. It reports false, and nothing is
// changed, if the table would exceed MaxBytes by it, or if the entry was removed. To make room for
// the growth, release the entry, call MakeRoom and try again. Shrinking always succeeds.
func (e *Entry[V]) Resize(size int64) bool {
	t, size := e.shard.table, max(size, 0)
	if e.removed || !t.reserveBytes(size-e.size) {
		return false
	}
	t.account(e.class, size-e.size)
	e.size = size
	return true
}

// Touch marks the entry as used at now. Readings of different goroutines need not be in order: an
// earlier one than the last is ignored.
func (e *Entry[V]) Touch(now int64) {
	if e.removed || now <= e.touched {
		return
	}
	s := e.shard
	s.unlink(e)
	e.touched = now
	s.link(e)
}

// SetClass changes the class; it is not a touch.
func (e *Entry[V]) SetClass(c Class) {
	if e.removed || c == e.class || c >= numClasses {
		return
	}
	s := e.shard
	s.unlink(e)
	s.table.account(e.class, -e.size)
	e.class = c
	s.table.account(e.class, e.size)
	s.link(e)
}

// remove deletes the entry without OnEvict. Afterwards only Key, Value and Release have an effect.
func (e *Entry[V]) remove() {
	if e.removed {
		return
	}
	s, t := e.shard, e.shard.table
	s.unlink(e)
	delete(s.entries, e.key)
	e.removed = true
	t.account(e.class, -e.size)
	t.bytes.Add(-e.size)
	t.entries.Add(-1)
}

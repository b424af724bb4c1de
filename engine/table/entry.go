package table

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

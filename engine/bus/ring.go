package bus

import (
	"math/bits"
	"sync"
)

const (
	// firstSlots is the size of a ring's first array: 256 bytes, which a used stream keeps.
	firstSlots = 16
	// slotClasses is the number of pooled array sizes: 16, 32, … up to 2^20. Larger ones are not
	// pooled.
	slotClasses   = 17
	firstSlotBits = 4
)

// entry is one waiting message and the number of events lost just before it.
type entry struct {
	m    *Message
	lost uint64
}

// ring is a queue of entries that grows by doubling. Its owner bounds and locks it.
type ring struct {
	slots *slots // nil while nothing has been pushed or after a large ring was drained
	first int
	n     int
}

// slots is an array of 2^n entries. It is a struct so that pooling it does not allocate.
type slots struct{ entries []entry }

func (r *ring) len() int { return r.n }

// head returns the oldest entry, nil when empty; valid until the next push or pop.
func (r *ring) head() *entry {
	if r.n == 0 {
		return nil
	}
	return &r.slots.entries[r.first]
}

func (r *ring) push(e entry, pools *slotPools) {
	if r.slots == nil || r.n == len(r.slots.entries) {
		r.grow(pools)
	}
	r.slots.entries[(r.first+r.n)&(len(r.slots.entries)-1)] = e
	r.n++
}

func (r *ring) grow(pools *slotPools) {
	if r.slots == nil {
		r.slots = pools.get(firstSlots)
		return
	}
	old := r.slots
	r.slots = pools.get(2 * len(old.entries))
	k := copy(r.slots.entries, old.entries[r.first:])
	copy(r.slots.entries[k:], old.entries[:r.first])
	r.first = 0
	pools.put(old)
}

// pop takes the oldest message off a ring that is not empty. A drained ring gives its array back
// unless it is the smallest: an idle stream must not hold the memory of its largest burst.
func (r *ring) pop(pools *slotPools) *Message {
	m := r.slots.entries[r.first].m
	r.slots.entries[r.first] = entry{}
	r.first = (r.first + 1) & (len(r.slots.entries) - 1)
	r.n--
	if r.n == 0 && len(r.slots.entries) > firstSlots {
		pools.put(r.slots)
		r.slots, r.first = nil, 0
	}
	return m
}

// slotPools shares the arrays of all rings of a bus: bursts on a warm bus do not allocate.
type slotPools [slotClasses]sync.Pool

// get returns an array of n empty entries; n is a power of two.
func (p *slotPools) get(n int) *slots {
	if class := slotClass(n); class >= 0 {
		if s, ok := p[class].Get().(*slots); ok {
			return s
		}
	}
	return &slots{entries: make([]entry, n)}
}

func (p *slotPools) put(s *slots) {
	class := slotClass(len(s.entries))
	if class < 0 {
		return
	}
	// A pooled array must not keep messages alive, nor show them to its next owner.
	clear(s.entries)
	p[class].Put(s)
}

// slotClass returns the pool of arrays of n entries, a power of two; -1 when they are not pooled.
func slotClass(n int) int {
	class := bits.TrailingZeros(uint(n)) - firstSlotBits
	if class >= slotClasses {
		return -1
	}
	return class
}

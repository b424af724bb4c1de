package kernel

import (
	"cmp"
	"math/bits"
	"slices"
)

// ranked is a node or a reference with its place in an order.
type ranked struct {
	key uint64
	i   uint32
}

// digitBits is how much of a key one pass sorts by: its counters stay in the first-level cache.
const digitBits = 11

// digitFrom is the length from which on passes over all of it are faster than comparing.
const digitFrom = 1 << 12

// rank sorts by key and leaves equal ones in their order. There is nothing to do for what comes in
// order. Many are placed by their keys, if those are different and close together, as sequences
// mostly are, else sorted digit by digit, which needs as much memory again.
func rank(r []ranked, h *hugeAdvisor) []ranked {
	byKey := func(a, b ranked) int { return cmp.Compare(a.key, b.key) }
	switch {
	case slices.IsSortedFunc(r, byKey):
		return r
	case len(r) < digitFrom:
		slices.SortStableFunc(r, byKey)
		return r
	}
	low, high := r[0].key, r[0].key
	for i := range r {
		low, high = min(low, r[i].key), max(high, r[i].key)
	}
	if high-low < closeKeys*uint64(len(r)) && rankClose(r, hugeSlice[uint32](h, int(high-low)+1), low) {
		return r
	}
	return rankDigits(r, hugeSlice[ranked](h, len(r)), low, high)
}

// closeKeys is how many numbers there may be to a key where keys are placed: more would take longer
// to walk than the keys to sort.
const closeKeys = 4

// rankClose sorts r by way of places, one for each number from low on, which are 0. It returns
// false, with r as it was, where two keys are equal.
func rankClose(r []ranked, places []uint32, low uint64) bool {
	clear(places) // as newPiece writes
	for j := range r {
		at := &places[r[j].key-low]
		if *at != 0 || r[j].i == none {
			return false
		}
		*at = r[j].i + 1
	}
	n := 0
	for key, i := range places {
		if i != 0 {
			r[n] = ranked{low + uint64(key), i - 1}
			n++
		}
	}
	return true
}

// rankDigits sorts r, whose keys are from low to high, with the help of spare, of the same length,
// and returns the sorted one of them.
func rankDigits(r, spare []ranked, low, high uint64) []ranked {
	for shift := 0; shift < bits.Len64(high-low); shift += digitBits {
		var starts [1 << digitBits]uint32
		for i := range r {
			starts[digit(r[i].key-low, shift)]++
		}
		sum := uint32(0)
		for d, n := range starts {
			starts[d], sum = sum, sum+n
		}
		for i := range r {
			at := &starts[digit(r[i].key-low, shift)]
			spare[*at] = r[i]
			*at++
		}
		r, spare = spare, r
	}
	return r
}

func digit(v uint64, shift int) uint64 { return v >> shift & (1<<digitBits - 1) }

// byStamp makes a key of a stamp, which may be negative.
func byStamp(stamp int64) uint64 { return uint64(stamp) ^ 1<<63 }

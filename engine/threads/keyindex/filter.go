package keyindex

import (
	"encoding/binary"
	"math/bits"
)

// filter is a Bloom filter: an entry sets filterProbes bits of one line, so that a look-up touches
// one line of the processor's cache. nil has everything.
type filter []byte

const (
	filterLine   = 64 // bytes
	filterProbes = 7
	// filterBits is bits per entry: of 1,000 hashes that a run does not have, it has about one.
	filterBits = 18
	// filterPart is the size of a row with a part of a filter.
	filterPart = 64 << 10
)

func newFilter(entries int) filter {
	lines := (entries*filterBits + filterLine*8 - 1) / (filterLine * 8)
	return make(filter, max(1, lines)*filterLine)
}

// line returns the line of an entry. It uses the high half of the hash, so that a run, which comes
// in the order of the hashes, fills line after line. The bits in it are those of the low half.
func (f filter) line(e entry) []byte {
	at, _ := bits.Mul64(e.high, uint64(len(f)/filterLine))
	return f[at*filterLine:][:filterLine]
}

func (f filter) add(e entry) {
	line, b := f.line(e), e.low
	for range filterProbes {
		line[b>>3&(filterLine-1)] |= 1 << (b & 7)
		b >>= 9
	}
}

func (f filter) has(e entry) bool {
	if f == nil {
		return true
	}
	line, b := f.line(e), e.low
	for range filterProbes {
		if line[b>>3&(filterLine-1)]&(1<<(b&7)) == 0 {
			return false
		}
		b >>= 9
	}
	return true
}

// loadFilter reads the filter of a run, if there is room for it.
func (x *Index) loadFilter(r *run) error {
	f := newFilter(int(min(r.entries, uint64(x.budget))))
	if x.filters+len(f) > x.budget {
		return nil
	}
	lower, upper := x.appendPartKey(nil, rowFilter, r, 0), x.appendPartKey(nil, rowFilter, r, ^uint32(0))
	at := 0
	err := x.rows.Scan(lower, upper, false, func(key, value []byte) bool {
		if int(binary.BigEndian.Uint32(key[len(key)-4:]))*filterPart != at {
			return false
		}
		at += copy(f[at:], value)
		return true
	})
	if err != nil || at != len(f) {
		return err // without a filter a page is read
	}
	r.filter = f
	x.filters += len(f)
	return nil
}

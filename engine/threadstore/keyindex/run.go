package keyindex

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
)

// The kinds of rows.
const (
	rowFilter = 'f'
	rowPage   = 'p'
	rowRun    = 'r'
)

const (
	entryBytes = 8 + 8 + 8
	// pageEntries is how many entries a page has at most on the average: half as many at least.
	pageEntries = 256
	// maxPageBits bounds the number of pages of a run.
	maxPageBits = 31
)

// run is a sorted set of entries. Nothing is written after it is published.
type run struct {
	id       uint64
	live     bool
	level    uint8
	pageBits uint8
	newest   int64
	entries  uint64 // at most
	filter   filter // nil: none in memory
}

// pageBitsFor returns how many bits of a hash number the pages of a run of n entries.
func pageBitsFor(n int) uint8 {
	return uint8(min(maxPageBits, bits.Len(uint((n-1)/pageEntries))))
}

// compareRuns orders runs by the age of their entries, the oldest first: a merge takes the oldest
// runs of a level, so what a level has is older than what the levels below it have.
func compareRuns(a, b *run) int {
	return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.id, b.id))
}

// page returns the page of an entry.
func (r *run) page(e entry) uint32 { return uint32(e.high >> 1 >> (63 - r.pageBits)) }

func (r *run) pages() uint32 { return 1 << r.pageBits }

const runRow = 1 + 1 + 1 + 8 + 8

func (x *Index) appendRunKey(dst []byte, r *run) []byte {
	return binary.BigEndian.AppendUint64(append(dst, x.prefix, rowRun), r.id)
}

func (x *Index) appendPartKey(dst []byte, kind byte, r *run, n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(append(dst, x.prefix, kind), r.id), n)
}

func (r *run) appendRow(dst []byte) []byte {
	state := byte(0)
	if r.live {
		state = 1
	}
	dst = append(dst, state, r.level, r.pageBits)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(r.newest)), r.entries)
}

func parseRun(key, value []byte) (*run, error) {
	if len(key) != 2+8 || len(value) != runRow || value[0] > 1 || value[2] > maxPageBits {
		return nil, fmt.Errorf("%w: run %x", errBadRun, key)
	}
	return &run{id: binary.BigEndian.Uint64(key[2:]), live: value[0] == 1, level: value[1], pageBits: value[2],
		newest: int64(binary.BigEndian.Uint64(value[3:])), entries: binary.BigEndian.Uint64(value[11:])}, nil
}

// find returns the number of a hash.
func (r *run) find(x *Index, e entry) (number uint64, ok bool, err error) {
	buf, _ := x.pages.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer x.pages.Put(buf)
	var key [2 + 8 + 4]byte
	page, err := x.readPage((*buf)[:0], x.appendPartKey(key[:0], rowPage, r, r.page(e)))
	*buf = page
	if err != nil {
		return 0, false, err
	}
	n := len(page) / entryBytes
	i := sort.Search(n, func(i int) bool { return compareHashes(entryAt(page, i), e) >= 0 })
	if i == n {
		return 0, false, nil
	}
	got := entryAt(page, i)
	return got.number, compareHashes(got, e) == 0, nil
}

func (x *Index) readPage(dst, key []byte) ([]byte, error) {
	page, ok, err := x.rows.Get(dst, key)
	switch {
	case err != nil:
		return page, err
	case !ok:
		return page, errNoPage
	case len(page)%entryBytes != 0:
		return page, fmt.Errorf("%w: page %x", errBadRun, key)
	}
	return page, nil
}

func entryAt(page []byte, i int) entry {
	b := page[i*entryBytes:][:entryBytes]
	return entry{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
}

func appendEntry(dst []byte, e entry) []byte {
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, e.high), e.low)
	return binary.BigEndian.AppendUint64(dst, e.number)
}

// CheckRow returns an error for a row that no index has written.
func CheckRow(key, value []byte) error {
	const head = 2 + 8 // prefix, kind and run
	bad := fmt.Errorf("%w: row %x", errBadRun, key)
	switch {
	case len(key) == head && key[1] == rowRun:
		_, err := parseRun(key, value)
		return err
	case len(key) != head+4 || key[1] != rowPage && key[1] != rowFilter:
		return bad
	case key[1] == rowFilter:
		if len(value) == 0 || len(value) > filterPart {
			return bad
		}
		return nil
	case len(value)%entryBytes != 0:
		return bad
	}
	for i := 1; i*entryBytes < len(value); i++ {
		if compareHashes(entryAt(value, i-1), entryAt(value, i)) >= 0 {
			return bad
		}
	}
	return nil
}

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

package kernel

import (
	"encoding/binary"
	"sync"
	"unsafe"
)

// none is the nil of every 32-bit reference in this package.
const none = ^uint32(0)

const (
	// granule is the unit of block addresses: with 32-bit references an arena reaches 64 GiB.
	granule = 16
	// pageSize is a size class of the Go allocator, so that pages waste nothing.
	pageSize     = 8192
	pageGranules = pageSize / granule
	// sparePages is how many empty pages an arena keeps for the next demand; further ones go back
	// to the collector, pieces of a long run when the last one of the run does. It only has to
	// absorb churn around a page boundary.
	sparePages = 4
)

// blockSizes are the size classes in bytes: multiples of the granule that fill a page well, up to
// four identifiers of maxIDLen.
var blockSizes = [...]uint16{16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
	288, 320, 368, 416, 448, 512, 576, 672, 816, 1024, 1168, 1360, 1632, 2048, 2720, 4096}

const (
	numClasses = len(blockSizes)
	maxBlock   = 4 * maxIDLen
)

// classOf gives the class of a block of n granules.
var classOf = func() (t [maxBlock/granule + 1]uint8) {
	c := 0
	for n := range t {
		for int(blockSizes[c]) < n*granule {
			c++
		}
		t[n] = uint8(c)
	}
	return t
}()

// pageMeta describes one page, which serves one class until it is empty. Pages with room form a
// list.
type pageMeta struct {
	next, prev uint32
	live       uint16 // blocks handed out
	fresh      uint16 // blocks ever handed out since the page took its class
	free       uint16 // granule+1 of the first freed block, 0 if none; freed blocks are chained by their first two bytes
	class      uint8
	piece      bool // of a long run, of which it would keep all (see stock)
}

// arena hands out blocks of up to maxBlock bytes from pages without pointers. A reference is
// page*pageGranules + granule.
type arena struct {
	pages   []*[pageSize]byte
	meta    []pageMeta
	partial [numClasses]uint32 // pages with room
	spare   []uint32           // empty pages that kept their memory, at most sparePages
	bare    []uint32           // page numbers whose memory was given back
	huge    *hugeAdvisor       // nil: the arena stays small
}

// hugePages is from how many pages on an arena asks for huge ones: about what hugeFrom rows fill.
const hugePages = 16

// newPage returns the memory of page p.
func (a *arena) newPage(p uint32) *[pageSize]byte {
	return newPiece(a.huge, p >= hugePages, (*stocks).ofPages)
}

// loaded ends a load that took pages from runs.
func (a *arena) loaded() {
	for p := hugePages; p < len(a.meta); p++ {
		a.meta[p].piece = true
	}
}

func (a *arena) init() {
	for i := range a.partial {
		a.partial[i] = none
	}
}

// bytes returns the n bytes at ref, valid until the block is freed.
func (a *arena) bytes(ref uint32, n int) []byte {
	off := ref % pageGranules * granule
	return a.pages[ref/pageGranules][off : int(off)+n : int(off)+n]
}

// glance loads a word of the block at ref, to fetch it. Any other ref does no harm.
func (a *arena) glance(ref uint32) uint32 {
	if page := ref / pageGranules; int(page) < len(a.pages) && a.pages[page] != nil {
		return uint32(a.pages[page][ref%pageGranules*granule])
	}
	return 0
}

// holds reports whether the bytes at ref begin with want, which may be longer than the block.
func (a *arena) holds(ref uint32, want []byte) bool {
	off := int(ref % pageGranules * granule)
	return off+len(want) <= pageSize && string(a.pages[ref/pageGranules][off:off+len(want)]) == string(want)
}

// alloc returns a block of at least n bytes, 0 < n <= maxBlock, with undefined content.
func (a *arena) alloc(n int) uint32 {
	class := classOf[(n+granule-1)/granule]
	p := a.partial[class]
	if p == none {
		p = a.takePage(class)
	}
	m := &a.meta[p]
	var at uint32
	if m.free != 0 {
		at = uint32(m.free - 1)
		m.free = binary.LittleEndian.Uint16(a.pages[p][at*granule:])
	} else {
		at = uint32(m.fresh) * uint32(blockSizes[class]/granule)
		m.fresh++
	}
	m.live++
	if !m.room() {
		a.unlink(p)
	}
	return p*pageGranules + at
}

// release frees the block at ref.
func (a *arena) release(ref uint32) {
	p, at := ref/pageGranules, ref%pageGranules
	m := &a.meta[p]
	hadRoom := m.room()
	binary.LittleEndian.PutUint16(a.pages[p][at*granule:], m.free)
	m.free = uint16(at) + 1
	m.live--
	if !hadRoom {
		a.link(p)
	}
	if m.live == 0 {
		a.unlink(p)
		a.putPage(p)
	}
}

// room reports whether a block of the page's class is left.
func (m *pageMeta) room() bool {
	return m.free != 0 || int(m.fresh) < pageSize/int(blockSizes[m.class])
}

// takePage links an empty page as the one with room of class.
func (a *arena) takePage(class uint8) uint32 {
	var p uint32
	switch {
	case len(a.spare) > 0:
		p = a.spare[len(a.spare)-1]
		a.spare = a.spare[:len(a.spare)-1]
	case len(a.bare) > 0:
		p = a.bare[len(a.bare)-1]
		a.bare = a.bare[:len(a.bare)-1]
		a.pages[p] = a.newPage(p)
	default:
		p = uint32(len(a.pages))
		a.pages = append(a.pages, a.newPage(p))
		a.meta = append(a.meta, pageMeta{})
	}
	a.meta[p] = pageMeta{class: class}
	a.link(p)
	return p
}

func (a *arena) putPage(p uint32) {
	if len(a.spare) < sparePages && !a.meta[p].piece {
		a.spare = append(a.spare, p)
		return
	}
	a.pages[p] = nil
	a.bare = append(a.bare, p)
}

func (a *arena) link(p uint32) {
	m := &a.meta[p]
	m.prev, m.next = none, a.partial[m.class]
	if m.next != none {
		a.meta[m.next].prev = p
	}
	a.partial[m.class] = p
}

func (a *arena) unlink(p uint32) {
	m := &a.meta[p]
	if m.prev != none {
		a.meta[m.prev].next = m.next
	} else {
		a.partial[m.class] = m.next
	}
	if m.next != none {
		a.meta[m.next].prev = m.prev
	}
}

// stockRun is how much memory a stock gets at a time: two huge pages.
const stockRun = 4 << 20

// stock hands out the pieces of long runs of memory. While a table is loaded, all of it is memory
// that the process has not touched before, and a piece of its own that is asked for between others
// often lies in a huge page that has been begun in small ones. Clearing those one by one was a
// fifth of the time of a load. Goroutines may share it. A run is given back when no piece is left.
type stock[T any] struct {
	mu   sync.Mutex
	rest []T
}

func (s *stock[T]) take(h *hugeAdvisor) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		s.rest = hugeSlice[T](h, stockRun/int(unsafe.Sizeof(*new(T))))
	}
	p := &s.rest[0]
	s.rest = s.rest[1:]
	return p
}

// stocks are those of a kernel that is loaded.
type stocks struct {
	rows  stock[[rowChunk]row]
	pages stock[[pageSize]byte]
	nodes stock[[nodeChunk]node]
}

func (s *stocks) ofRows() *stock[[rowChunk]row]    { return &s.rows }
func (s *stocks) ofPages() *stock[[pageSize]byte]  { return &s.pages }
func (s *stocks) ofNodes() *stock[[nodeChunk]node] { return &s.nodes }

// newPiece returns a piece of a table: in a huge page, if the table is large and h is not nil. It
// is written here: the nil check of the first use would read it, and a page that is read first is a
// shared one, which the write then has to replace on all cores.
func newPiece[T any](h *hugeAdvisor, large bool, of func(*stocks) *stock[T]) (p *T) {
	if large && h != nil && h.loading != nil {
		p = of(h.loading).take(h)
	} else {
		p = new(T)
		if large && h != nil {
			adviseHuge(h, p, 1)
		}
	}
	*(*byte)(unsafe.Pointer(p)) = 0
	return p
}

// hugeSlice returns n values in huge pages, if they fill one and h is not nil. The advice comes
// before they are touched.
func hugeSlice[T any](h *hugeAdvisor, n int) []T {
	s := make([]T, n)
	if h != nil && n*int(unsafe.Sizeof(*new(T))) >= hugeSliceBytes {
		adviseHuge(h, &s[0], n)
	}
	return s
}

// hugeSliceBytes is the size of a slice from which on it is asked for in huge pages: an index of a
// table that is large.
const hugeSliceBytes = 192 << 10

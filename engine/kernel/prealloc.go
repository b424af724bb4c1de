package kernel

import (
	"sync"
	"unsafe"
)

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

package kernel

import (
	"sync"
	"testing"
	"unsafe"
)

// Every piece is given once, to one of those that ask at once, and is memory that was never used.
func TestStockGivesEachPieceOnce(t *testing.T) {
	const each = 2*stockRun/pageSize + 3 // some runs, and a part of one
	var s stock[[pageSize]byte]
	h := new(hugeAdvisor)
	var got [2][]*[pageSize]byte
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			for range each {
				p := s.take(h)
				if p[0] != 0 || p[pageSize-1] != 0 {
					t.Error("a piece was used before")
				}
				p[0], p[pageSize-1] = 1, 1
				got[i] = append(got[i], p)
			}
		})
	}
	all.Wait()
	seen := map[uintptr]bool{}
	for _, p := range append(got[0], got[1]...) {
		at := uintptr(unsafe.Pointer(p))
		if seen[at] {
			t.Fatalf("piece %x was given twice", at)
		}
		seen[at] = true
	}
}

// A load takes the chunks of a large table from runs, and what is added after it has chunks of its
// own.
func TestRecoveryTakesRuns(t *testing.T) {
	k := New(Config{})
	r := k.Recover(1)
	if k.huge.loading == nil {
		t.Fatal("there are no runs while it is loaded")
	}
	first := newPiece(k.huge, true, (*stocks).ofRows)
	second := newPiece(k.huge, true, (*stocks).ofRows)
	if d := uintptr(unsafe.Pointer(second)) - uintptr(unsafe.Pointer(first)); d != unsafe.Sizeof(*first) {
		t.Errorf("the second chunk is %d bytes behind the first", d)
	}
	if _, err := r.Finish(); err != nil || k.huge.loading != nil {
		t.Errorf("runs are kept after the load, error %v", err)
	}
}

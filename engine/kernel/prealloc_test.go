package kernel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
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

// TestRunsGoWithTheirPieces: what was loaded and has ended keeps no run, in whatever order it ends,
// and what comes after it has spare pages again.
func TestRunsGoWithTheirPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 2¹⁷ processes twice, and nothing at once")
	}
	const n = 1 << 17
	pid := func(i int) []byte { return fmt.Appendf(nil, "process-%028d", i) }
	cfg := Config{Defaults: unlimited(), Shards: minShards}
	from := New(cfg)
	for i := range n {
		from.Create(at(0), args(string(pid(i)), Normal), nil)
	}
	k := New(cfg)
	r := k.Recover(1)
	if err := from.WriteSnapshot(func(rec []byte) error {
		to, err := r.Route(rec, 0)
		if err == nil && to.Lane >= 0 {
			_, err = r.lanes[to.Lane].Take(rec, 0, to.Hash)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(); err != nil || k.Len() != n {
		t.Fatalf("%d processes, error %v", k.Len(), err)
	}
	empty := func() (pages, pieces int) {
		for i := range k.shards {
			for p, page := range k.shards[i].texts.pages {
				if page != nil && k.shards[i].texts.meta[p].piece {
					pieces++
				} else if page != nil {
					pages++
				}
			}
		}
		return pages, pieces
	}
	if _, pieces := empty(); pieces == 0 {
		t.Fatal("nothing was taken from runs")
	}
	now := at(0)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		now.Mono++
		k.Terminate(now, pid(i), nil, nil)
	}
	now.Mono += int64(time.Hour)
	k.Sweep(now)
	if pages, pieces := empty(); k.Len() != 0 || pieces != 0 || pages > minShards*sparePages {
		t.Errorf("%d processes, %d pages and %d pieces of runs are left", k.Len(), pages, pieces)
	}
	for _, c := range k.order.spare {
		if c.reserved {
			t.Error("a piece of the reserved order is kept")
			break
		}
	}
	for i := range n {
		k.Create(now, args(string(pid(i)), Normal), nil)
		k.Terminate(now, pid(i), nil, nil)
	}
	now.Mono += int64(time.Hour)
	k.Sweep(now)
	if pages, _ := empty(); pages != minShards*sparePages {
		t.Errorf("%d pages are kept for the next demand, want %d", pages, minShards*sparePages)
	}
}

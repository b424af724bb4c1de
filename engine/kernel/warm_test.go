//go:build !race

package kernel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestWarmBesideChanges: fetching ahead reads without locks what others are changing, and finds its
// way whatever it meets.
func TestWarmBesideChanges(t *testing.T) {
	const pids, most = 20000, 12000 // above warmFrom, and processes have to go
	k := New(Config{MaxProcesses: most, Defaults: unlimited(), MaxRateLimitUsers: 10})
	name := func(i int) []byte { return fmt.Appendf(nil, "00000000-0000-4000-8000-%012d", i) }
	var done atomic.Bool
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			rnd, batch := rand.New(rand.NewPCG(uint64(w), 7)), make([][]byte, 8)
			for !done.Load() {
				for i := range batch {
					batch[i] = name(rnd.IntN(pids))
				}
				k.Warm(batch, Need(rnd.IntN(4)))
			}
		})
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 60000 {
		pid := name(rnd.IntN(pids))
		now := at(0)
		now.Mono += int64(i) * nsPerMs
		if result, _ := k.Create(now, args(string(pid), Normal), nil); result == AlreadyExists || result == TableFull {
			k.Terminate(now, pid, nil, nil)
		}
	}
	done.Store(true)
	wg.Wait()
	if k.Len() == 0 || k.Len() > most {
		t.Errorf("%d processes", k.Len())
	}
}

// TestWarmDoesNotAllocate in a table that is large enough for it to do something.
func TestWarmDoesNotAllocate(t *testing.T) {
	k := New(Config{Defaults: unlimited()})
	for i := range 20000 {
		k.Create(at(time.Duration(i)), args(fmt.Sprint("p", i), Normal), nil)
	}
	batch := [][]byte{[]byte("p1"), []byte("p777"), []byte("nobody"), []byte("p19999")}
	var sum uint32
	if n := testing.AllocsPerRun(100, func() { sum += k.Warm(batch, NeedIDs|NeedQueue) }); n != 0 || sum == 0 {
		t.Errorf("%v allocations, sum %d", n, sum)
	}
}

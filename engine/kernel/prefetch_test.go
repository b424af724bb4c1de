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
// way whatever it meets; an operation gets the process that it asks for.
func TestWarmBesideChanges(t *testing.T) {
	const pids, most = 20000, 12000 // above warmFrom, and processes have to go
	k := New(Config{MaxProcesses: most, Defaults: unlimited(), MaxRateLimitUsers: 10})
	name := func(i int) []byte { return fmt.Appendf(nil, "00000000-0000-4000-8000-%012d", i) }
	var done atomic.Bool
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 7))
			var ahead [8]Ahead
			var pid [len(ahead)][]byte
			var out PCB
			for !done.Load() {
				for i := range ahead {
					pid[i] = name(rnd.IntN(pids))
					ahead[i].Begin(k, pid[i])
				}
				for i := range ahead {
					ahead[i].Row(Need(rnd.IntN(2)) * NeedIDs)
				}
				for i := range ahead {
					ahead[i].Node(k)
					ahead[i].Neighbours(k)
					if k.Get(pid[i], &ahead[i], &out) == OK && string(out.PID) != string(pid[i]) {
						t.Errorf("asked for %s, got %s", pid[i], out.PID)
					}
				}
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

// TestAheadFindsTheRow, its node and nothing of another process, in a table that is large enough
// for it to do something. Few rows are so far from home that it misses them. It does not allocate.
func TestAheadFindsTheRow(t *testing.T) {
	const pids = 20000
	k := New(Config{Defaults: unlimited()})
	name := func(i int) []byte { return fmt.Appendf(nil, "p%d", i) }
	for i := range pids {
		k.Create(at(time.Duration(i)), args(string(name(i)), Normal), nil)
	}
	var a Ahead
	var pid []byte
	steps := func() {
		a.Begin(k, pid)
		a.Row(NeedIDs)
		a.Node(k)
		a.Neighbours(k)
	}
	found := 0
	for i := range pids + 100 { // the last ones are not there
		pid = name(i)
		steps()
		at, ok := k.locate(pid)
		if a.r != nil && ok {
			found++
			if a.r != at.r || a.node != k.sched.nodes.at(at.r.node) {
				t.Errorf("process %s is at %p, found %p with node %p", pid, at.r, a.r, a.node)
			}
		}
		var out PCB
		if got := k.Get(pid, &a, &out); (got == OK) != ok || ok && string(out.PID) != string(pid) {
			t.Errorf("process %s: %v, got %s", pid, got, out.PID)
		}
	}
	if found < pids*9/10 {
		t.Errorf("found %d of %d", found, pids)
	}
	if n := testing.AllocsPerRun(100, steps); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAheadWhilePagesGo: texts that are fetched ahead may lie in pages that are given back.
func TestAheadWhilePagesGo(t *testing.T) {
	const pids = 20000
	k := New(Config{Defaults: unlimited(), MaxRateLimitUsers: 10})
	name := func(i int) []byte { return fmt.Appendf(nil, "00000000-0000-4000-8000-%012d", i) }
	var done atomic.Bool
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			var a Ahead
			for i := w; !done.Load(); i = (i + 7) % pids {
				a.Begin(k, name(i))
				a.Row(NeedIDs)
			}
		})
	}
	now := at(0)
	turns := 12
	if testing.Short() {
		turns = 3
	}
	for range turns {
		for i := range pids {
			k.Create(now, args(string(name(i)), Normal), nil)
		}
		for i := range pids {
			k.Terminate(now, name(i), nil, nil)
		}
		now.Mono += int64(time.Hour)
		k.Sweep(now)
	}
	done.Store(true)
	wg.Wait()
	if n := k.Len(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

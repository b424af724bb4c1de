package idem

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// churn does n random things with few keys, and moves the clock.
func (r *rig) churn(seed, n int) {
	rnd := rand.New(rand.NewPCG(uint64(seed), 7))
	for range n {
		key := k(fmt.Sprint(rnd.IntN(40)))
		r.clock.Add(int64(rnd.IntN(3)))
		w := &sleeper{}
		switch o, _ := r.Begin(r.Now(), key, in(fmt.Sprint(rnd.IntN(8)/7)), w); o {
		case Started:
			if rnd.IntN(4) == 0 {
				r.Release(key)
			} else {
				r.Finish(key, sized(rnd.IntN(30)))
			}
		case InFlight:
			r.Cancel(key, w)
		}
	}
}

// TestBoundsUnderLoad looks at all counters while others use the table; at the end nothing has
// leaked.
func TestBoundsUnderLoad(t *testing.T) {
	for _, limits := range []Config{{MaxEntries: 16, MaxBytes: 100, TTL: 50, Shards: 8}, {MaxEntries: 2, MaxBytes: 29, TTL: 5},
		{MaxEntries: 1, MaxBytes: 1, MaxWaiters: 1}} {
		r := newRig(t, limits)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() { r.churn(g, 1500) })
		}
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			default:
			}
			// The counters are the bound: what is in the shards never exceeds them, see check.
			if n, b := r.Len(), r.Bytes(); n > int(r.maxEntries) || b > r.maxBytes || r.Waiting() > int(r.maxWaiters) {
				t.Fatalf("%d entries, %d bytes", n, b)
			}
			if err := check(r.Table); err != nil {
				t.Fatal(err)
			}
		}
		r.counts(r.Len(), 0, r.Bytes(), 0)
		bytes := int64(0)
		for _, s := range r.snapshots() {
			bytes += (&entry{result: s.result}).size()
		}
		if len(r.snapshots()) != r.Len() || bytes != r.Bytes() {
			t.Fatalf("%d entries of %d bytes, counted as %d of %d", len(r.snapshots()), bytes, r.Len(), r.Bytes())
		}
	}
}

func (r *rig) snapshots() []snapshot {
	list, _ := r.moment()
	return list
}

// TestPrefixesKeepTheBounds replays a tape that was written under load step by step: it is never
// over a limit, so that nothing is evicted that the tape does not drop.
func TestPrefixesKeepTheBounds(t *testing.T) {
	r := newRig(t, Config{MaxEntries: 4, MaxBytes: 40, TTL: 30, Shards: 8})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { r.churn(g, 2000) })
	}
	wg.Wait()
	size, bytes, sizes := 0, int64(0), map[Key]int64{}
	var c Change
	for i, rec := range r.tape.records {
		if err := ParseChange(rec, &c); err != nil {
			t.Fatal(err)
		}
		had, there := sizes[c.Key]
		if there == (c.Kind == ChangeStarted) {
			t.Fatalf("record %d: %s of a key that is there: %v", i, c.Kind, there)
		}
		bytes -= had
		if delete(sizes, c.Key); c.Kind == ChangeStarted || c.Kind == ChangeFinished {
			sizes[c.Key] = c.Result.size()
			bytes += c.Result.size()
		}
		if size = len(sizes); size > 4 || bytes > 40 {
			t.Fatalf("after record %d there are %d entries of %d bytes", i, size, bytes)
		}
	}
	if size != r.Len() || bytes != r.Bytes() {
		t.Fatalf("%d entries of %d bytes, table %d of %d", size, bytes, r.Len(), r.Bytes())
	}
}

// job is the tool behind one key.
type job struct {
	running atomic.Int32
	mu      sync.Mutex
	runs    int
	ended   int64 // reading before the last Finish, -1 without
}

// execute is one execution: it must be alone, and no earlier than a window after the last one.
func (j *job) execute(r *rig, key Key, release bool) {
	if j.running.Add(1) != 1 {
		r.Error("two executions at a time")
	}
	j.mu.Lock()
	if now := r.clock.Load(); j.ended >= 0 && now < j.ended+r.ttl {
		r.Errorf("executed at %d, ended before at %d", now, j.ended)
	}
	j.runs++
	r.clock.Add(3)
	if !release {
		j.ended = r.clock.Load()
	}
	want := fmt.Sprint(j.runs)
	j.mu.Unlock()
	j.running.Add(-1)
	if release {
		r.Release(key)
	} else {
		r.Finish(key, out(want))
	}
}

// caller is a connection: it has one request at a time and a channel on which it is woken.
type caller chan *Stored

func (c caller) Wake(r *Stored) { c <- r }

// TestOneExecutionPerKeyAndWindow has callers insist on an outcome: no key is executed twice at a
// time or twice in a window, every waiter is woken once, and gets an outcome.
func TestOneExecutionPerKeyAndWindow(t *testing.T) {
	r := newRig(t, Config{TTL: 1000, Shards: 2})
	r.journal = nil
	jobs := make([]job, 6)
	for i := range jobs {
		jobs[i].ended = -1
	}
	var wg sync.WaitGroup
	var started, answers atomic.Int64
	for g := range 6 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			c := make(caller, 1)
			for range 2000 {
				i := rnd.IntN(len(jobs))
				ran, ok := r.insist(c, &jobs[i], k(fmt.Sprint(i)), rnd.IntN(5) == 0)
				if !ok || len(c) > 0 {
					t.Error("no outcome, or a second wake")
					return
				}
				if ran {
					started.Add(1)
				} else {
					answers.Add(1)
				}
			}
		})
	}
	wg.Wait()
	runs := 0
	for i := range jobs {
		runs += jobs[i].runs
	}
	if int64(runs) != started.Load() || uint64(answers.Load()) != r.Hits() || answers.Load() == 0 || started.Load() < int64(len(jobs)) {
		t.Fatalf("%d runs, %d started, %d answers, %d hits", runs, started.Load(), answers.Load(), r.Hits())
	}
	r.counts(r.Len(), 0, r.Bytes(), 0)
}

// insist asks until there is an outcome. ran reports that this caller executed the job or released
// it.
func (r *rig) insist(c caller, j *job, key Key, release bool) (ran, ok bool) {
	for {
		switch o, s := r.Begin(r.Now(), key, in(""), c); o {
		case Started:
			j.execute(r, key, release)
			return true, true
		case Done:
			return false, s != nil
		case InFlight:
			if s := <-c; s != nil {
				return false, strings.TrimSpace(string(s.Output)) != ""
			}
		default:
			r.Errorf("Begin = %v", o)
			return false, false
		}
	}
}

// TestCancelOrWake races them: a waiter is either taken back or woken.
func TestCancelOrWake(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 500 {
		key, w := k(fmt.Sprint(i)), &sleeper{}
		r.Begin(r.Now(), key, in(""), nil)
		r.Begin(r.Now(), key, in(""), w)
		var wg sync.WaitGroup
		var cancelled atomic.Bool
		wg.Go(func() { cancelled.Store(r.Cancel(key, w)) })
		wg.Go(func() { r.Finish(key, out("x")) })
		wg.Wait()
		if woken := w.woken.Load(); (woken == 1) == cancelled.Load() || woken > 1 {
			t.Fatalf("cancelled: %v, woken %d times", cancelled.Load(), woken)
		}
	}
}

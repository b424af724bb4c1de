package kernel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// together runs f(0..n-1) at once and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestOneOfManyStartsWins(t *testing.T) {
	k := New(Config{Defaults: unlimited()})
	for round := range 50 {
		pid := fmt.Sprint("p", round)
		k.Create(at(0), args(pid, Normal), nil)
		var won, lost atomic.Int32
		together(8, func(int) {
			switch k.Transition(at(0), []byte(pid), nil, Running, nil, nil) {
			case OK:
				won.Add(1)
			case BadTransition:
				lost.Add(1)
			}
		})
		if won.Load() != 1 || lost.Load() != 7 {
			t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
		}
	}
}

func TestOneOfManyCreatesWins(t *testing.T) {
	k := New(Config{Defaults: unlimited(), MaxProcesses: 20})
	var made atomic.Int32
	together(8, func(int) {
		for p := range 40 {
			if res, _ := k.Create(at(0), args(fmt.Sprint("p", p), Normal), nil); res == OK {
				made.Add(1)
			}
		}
	})
	if made.Load() != 20 || k.Len() != 20 {
		t.Errorf("%d made, %d held", made.Load(), k.Len())
	}
}

// TestExactlyLimitPass is kernel-ipc §4.9: for N concurrent callers exactly limit succeed, creates
// included.
func TestExactlyLimitPass(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitBurst] = 25
	k := New(Config{Defaults: q})
	var passed atomic.Int32
	together(8, func(i int) {
		for n := range 10 {
			if i%2 == 0 {
				if k.CheckRate(at(0), []byte("u"), true).Allowed {
					passed.Add(1)
				}
			} else if res, _ := k.Create(at(0), args(fmt.Sprintf("p%d.%d/u", i, n), Normal), nil); res == OK {
				passed.Add(1)
			}
		}
	})
	if passed.Load() != 25 {
		t.Errorf("%d passed", passed.Load())
	}
}

// TestManyNewUsers: the number of logs stays within its limit while everyone is new.
func TestManyNewUsers(t *testing.T) {
	k := New(Config{MaxRateLimitUsers: 3})
	var over atomic.Bool
	together(8, func(i int) {
		for n := range 300 {
			k.CheckRate(at(0), []byte(fmt.Sprint(i, n%7)), true)
			if k.rates.live.Load() > 3 {
				over.Store(true)
			}
			if n%50 == 0 {
				k.Sweep(at(time.Duration(n) * time.Minute))
			}
		}
	})
	if over.Load() {
		t.Error("too many logs")
	}
}

func TestNextHandsEachOutOnce(t *testing.T) {
	k := New(Config{Defaults: unlimited()})
	const n = 400
	for i := range n {
		k.Create(at(0), args(fmt.Sprint("p", i), Priority(i%NumPriorities)), nil)
	}
	var taken sync.Map
	var handed atomic.Int32
	together(8, func(i int) {
		var out PCB
		for k.Next(at(0), i%2 == 0, &out) == OK {
			handed.Add(1)
			if _, twice := taken.LoadOrStore(string(out.PID), true); twice {
				t.Errorf("%s handed out twice", out.PID)
			}
		}
	})
	if handed.Load() != n {
		t.Errorf("%d handed out", handed.Load())
	}
}

// TestEverythingAtOnce runs all operations against each other; afterwards the table still adds up
// and the journal, with the records of one lock in order, replays to the same state.
func TestEverythingAtOnce(t *testing.T) {
	var mu sync.Mutex
	var journal []byte
	cfg := Config{
		Shards:            minShards,
		MaxProcesses:      30,
		MaxRateLimitUsers: 5,
		DequeueLease:      20 * time.Millisecond,
		ProcessRetention:  30 * time.Millisecond,
		Defaults:          unlimited(),
		Events:            checkingEvents{},
	}
	records := uint64(0)
	cfg.Journal = func(c *Change) uint64 {
		mu.Lock()
		defer mu.Unlock()
		journal = AppendChange(journal, c)
		records++
		return records
	}
	k := New(cfg)
	together(6, func(i int) {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		var out PCB
		var check QuotaCheck
		for n := range 1500 {
			now := at(time.Duration(n) * time.Millisecond / 4)
			pid := fmt.Appendf(nil, "p%d", rnd.IntN(40))
			switch rnd.IntN(12) {
			case 0, 1, 2:
				k.Create(now, args(fmt.Sprintf("%s/u%d", pid, rnd.IntN(9)), Priority(rnd.IntN(NumPriorities))), &out)
			case 3:
				k.Next(now, rnd.IntN(2) == 0, &out)
			case 4, 5:
				k.Transition(now, pid, nil, State(rnd.IntN(NumStates)), []byte("r"), &out)
			case 6:
				k.Terminate(now, pid, nil, &out)
			case 7:
				k.RecordUsage(now, pid, nil, &Usage{LLMCalls: 30}, nil)
				k.CheckQuota(now, pid, nil, &check)
			case 8:
				k.CheckRate(now, fmt.Appendf(nil, "u%d", rnd.IntN(9)), rnd.IntN(2) == 0)
			case 9:
				k.List(&ListFilter{}, func(p *PCB) bool { return p.Created != 0 })
			case 10:
				k.Schedule(now, pid, &out)
				k.Sweep(now)
				k.SetDefaults(now, &QuotaPatch{Set: 1, Values: Quota{int32(rnd.IntN(99))}})
			case 11:
				k.Get(pid, nil, &out)
				if c := k.Counts(now); c.Total > 30 || c.QueueDepth > c.ByState[Ready] {
					t.Errorf("counts %+v", c)
				}
			}
		}
	})
	cfg.Journal = nil
	if (&rig{t: t, journal: journal}).replayed(cfg).stateDigest() != k.stateDigest() {
		t.Error("replay gives another state")
	}
	n := 0
	k.List(&ListFilter{}, func(*PCB) bool { n++; return true })
	if n != k.Len() {
		t.Errorf("%d listed of %d", n, k.Len())
	}
}

// checkingEvents reads every payload, for the race detector to see.
type checkingEvents struct{}

func (checkingEvents) Wanted(EventKind) bool { return true }

func (checkingEvents) Emit(kind EventKind, payload []byte, _ Instant) {
	if payload[0] != '{' || payload[len(payload)-1] != '}' {
		panic(fmt.Sprint(kind, string(payload)))
	}
}

//go:build !race

package kernel

import (
	"testing"
	"time"
)

// deafEvents counts and never wants a payload.
type deafEvents struct{ n int }

func (d *deafEvents) Wanted(EventKind) bool           { d.n++; return false }
func (d *deafEvents) Emit(EventKind, []byte, Instant) {}

func TestNoAllocs(t *testing.T) {
	q := unlimited()
	q[RateLimitRPH] = 50
	events := &deafEvents{}
	var journal []byte
	written := uint64(0)
	k := New(Config{Shards: minShards, MaxProcesses: 100, Defaults: q, DequeueLease: time.Minute, Events: events,
		Journal: func(c *Change) uint64 { journal = AppendChange(journal[:0], c); written++; return written }})
	now := at(0)
	var (
		out    PCB
		check  QuotaCheck
		total  Usage
		a      CreateArgs
		delta  = Usage{LLMCalls: 1, TokensIn: 5}
		pid    = []byte("p")
		user   = []byte("user")
		nobody = []byte("nobody")
		full   = []byte("full")
		reason = []byte("some reason")
		made   int
	)
	k.Create(now, args("p", Realtime), nil)
	k.Create(now, args("full", Normal), nil)
	k.RecordUsage(now, []byte("full"), nil, &Usage{TokensIn: 1 << 40}, nil)
	f := func(what string, op func()) {
		t.Helper()
		for range 5000 { // long enough to have used every shard
			op()
		}
		if n := testing.AllocsPerRun(500, op); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	want := func(res, want Result) {
		if res != want {
			t.Fatalf("got %v, want %v", res, want)
		}
	}
	f("Get", func() { want(k.Get(pid, nil, &out), OK) })
	f("RecordUsage", func() { want(k.RecordUsage(now, pid, nil, &delta, &total), OK) })
	f("CheckQuota exceeded", func() { want(k.CheckQuota(now, full, nil, &check), OK) })
	k.Create(now, args("q", Idle), nil)
	f("CheckQuota", func() { want(k.CheckQuota(now, []byte("q"), nil, &check), OK) })
	f("CheckRate", func() { now.Mono += int64(time.Minute); k.CheckRate(now, user, true) })
	f("CheckRate refused", func() { k.CheckRate(now, user, true) })
	f("CheckRate peek", func() { k.CheckRate(now, nobody, false) })
	f("Transition", func() {
		want(k.Transition(now, pid, nil, Running, nil, &out), OK)
		want(k.Transition(now, pid, nil, Blocked, reason, &out), OK)
		want(k.Transition(now, pid, nil, Ready, nil, &out), OK)
	})
	f("Next and Schedule", func() {
		want(k.Next(now, false, &out), OK)
		want(k.Schedule(now, pid, &out), OK)
		want(k.Next(now, true, &out), OK)
		want(k.Transition(now, pid, nil, Ready, nil, &out), OK)
	})
	f("lease end", func() {
		want(k.Next(now, false, &out), OK)
		now.Mono += int64(time.Minute)
		k.Counts(now)
	})
	f("Create and Terminate", func() {
		benchArgs(&a, made)
		made++
		now.Mono += int64(2 * time.Minute)
		res, _ := k.Create(now, &a, &out)
		want(res, OK)
		want(k.Terminate(now, a.PID, nil, &out), OK)
	})
	f("Sweep", func() { k.Sweep(now) })
	f("names", func() {
		_, _ = ParseState([]byte("running"))
		_, _ = ParsePriority([]byte("normal"))
		_ = Running.String()
	})
	buf := make([]byte, 0, 200)
	f("AppendReason", func() {
		check = QuotaCheck{Exceeded: true, Field: TimeoutSeconds, Used: 300500, Limit: 300}
		buf = check.AppendReason(buf[:0], pid)
		buf = RateDecision{Window: Hour, WindowLimit: 7}.AppendReason(buf[:0])
	})
	if events.n == 0 || len(journal) == 0 {
		t.Error("no events or no journal")
	}
}

// wantingEvents wants every payload and drops it.
type wantingEvents struct{}

func (wantingEvents) Wanted(EventKind) bool           { return true }
func (wantingEvents) Emit(EventKind, []byte, Instant) {}

func TestEventsDoNotAllocate(t *testing.T) {
	k := New(Config{Defaults: unlimited(), Events: wantingEvents{}})
	now := at(0)
	pid := []byte("p")
	k.Create(now, args("p", Normal), nil)
	k.RecordUsage(now, pid, nil, &Usage{LLMCalls: 101}, nil)
	var check QuotaCheck
	if n := testing.AllocsPerRun(500, func() {
		k.CheckQuota(now, pid, nil, &check)
		k.Transition(now, pid, nil, Running, nil, nil)
		k.Transition(now, pid, nil, Ready, nil, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

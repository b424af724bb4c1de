package kernel

import (
	"strings"
	"testing"
	"time"
)

func TestCreateShowsNewAndQueues(t *testing.T) {
	r := newRig(t, Config{})
	var out PCB
	res, d := r.k.Create(r.now, args("p1", High), &out)
	if res != OK || !d.Allowed || out.State != StateNew || out.Priority != High || out.Usage != (Usage{}) || out.Created != 1 {
		t.Errorf("got %v %+v %+v", res, d, out)
	}
	r.want("ids", strings.Join([]string{string(out.PID), string(out.RequestID), string(out.UserID), string(out.SessionID)}, " "), "p1 qp1 up1 sp1")
	r.want("state", r.state("p1"), "READY")
	r.want("counts", r.counts(), "READY:1 total:1 queue:1")
	r.want("next", r.next(false), "p1")
	r.want("next", r.next(false), "no runnable")
	r.want("counts", r.counts(), "READY:1 total:1 queue:0")
	r.to("p1", Running, OK)
}

func TestCreateNoSchedule(t *testing.T) {
	r := newRig(t, Config{})
	a := args("p", Normal)
	a.NoSchedule = true
	r.k.Create(r.now, a, nil)
	r.want("counts", r.counts(), "NEW:1 total:1 queue:0")
	var out PCB
	if res := r.k.Schedule(r.now, []byte("p"), &out); res != OK || out.State != Ready {
		t.Errorf("schedule: %v, state %v", res, out.State)
	}
	r.want("counts", r.counts(), "READY:1 total:1 queue:1")
}

// TestCreateErrorOrder: exists, then table full, then rate limit; a refused create uses no slot and
// evicts nothing.
func TestCreateErrorOrder(t *testing.T) {
	q := BuiltinQuota()
	q[RateLimitBurst] = 3
	r := newRig(t, Config{MaxProcesses: 3, Defaults: q})
	f := func(pid string, want Result) {
		t.Helper()
		if got := r.create(pid, Normal); got != want {
			t.Errorf("create %s: got %v, want %v", pid, got, want)
		}
	}
	f("a/x", OK)
	f("b/x", OK)
	f("a/x", AlreadyExists)
	f("c/y", OK)
	f("d/x", TableFull)
	f("a/x", AlreadyExists)
	r.to("a", Terminated, OK)
	f("a/x", AlreadyExists)
	r.k.CheckRate(r.now, []byte("x"), true)
	f("d/x", RateLimited)
	r.want("not evicted", r.state("a"), "TERMINATED")
	f("d/y", OK)
	r.want("evicted", r.state("a"), "not found")
	f("a/y", TableFull)
	if n := r.k.Len(); n != 3 {
		t.Errorf("%d processes", n)
	}
}

func TestEvictionTakesLongestCompleted(t *testing.T) {
	r := newRig(t, Config{MaxProcesses: 3, Defaults: unlimited()})
	r.mk("a")
	r.mk("b", Terminated)
	r.after(time.Second)
	r.mk("c", Terminated)
	r.to("b", Zombie, OK) // stays where it was among the completed
	r.takeEvents()
	r.mk("d")
	r.want("b", r.state("b"), "not found")
	r.mk("e")
	r.want("c", r.state("c"), "not found")
	if res := r.create("f", Normal); res != TableFull {
		t.Errorf("got %v", res)
	}
	if e := r.takeEvents(); strings.Contains(e, "zombie") || strings.Count(e, "\n") != 1 {
		t.Errorf("eviction emitted: %s", e)
	}
}

func TestCreateIdentifierBounds(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	f := func(n int, want Result) {
		t.Helper()
		long := []byte(strings.Repeat("x", n))
		a := &CreateArgs{PID: long, RequestID: long, UserID: long, SessionID: long}
		if got, _ := r.k.Create(r.now, a, nil); got != want {
			t.Errorf("%d bytes: got %v, want %v", n, got, want)
		}
	}
	f(maxIDLen, OK)
	f(maxIDLen+1, TableFull)
	f(0, TableFull)
	if got, _ := r.k.Create(r.now, &CreateArgs{PID: []byte("p"), Priority: NumPriorities}, nil); got != TableFull {
		t.Errorf("unknown priority: %v", got)
	}
	if got, _ := r.k.Create(r.now, &CreateArgs{PID: []byte("p")}, nil); got != OK {
		t.Errorf("empty other ids: %v", got)
	}
}

// TestStrictPriority is kernel-ipc §9.12.
func TestStrictPriority(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	for _, p := range []struct {
		pid string
		p   Priority
	}{{"a", Low}, {"b", High}, {"c", Normal}, {"d", High}, {"e", Realtime}, {"i", Idle}} {
		r.create(p.pid, p.p)
	}
	r.want("order", r.drain(), "e b d c a i")
}

func TestFIFOByEntryIntoReady(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("a")
	r.mk("b")
	r.mk("c")
	r.want("first", r.next(true), "a")
	r.to("a", Ready, OK) // preempted: to the tail
	r.want("order", r.drain(), "b c a")
	r.to("b", Waiting, OK)
	r.to("c", Blocked, OK)
	r.to("c", Ready, OK)
	r.to("b", Ready, OK)
	r.want("resumed", r.drain(), "c b")
}

func TestLeaseEndsAtOldPlace(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited(), DequeueLease: 30 * time.Second})
	for _, pid := range []string{"a", "b", "c", "d"} {
		r.mk(pid)
	}
	r.want("leased", r.next(false), "a")
	r.after(10 * time.Second)
	r.want("leased", r.next(false), "b")
	r.want("leased", r.next(false), "c")
	r.to("c", Terminated, OK) // leaves the leases
	r.after(20*time.Second - 1)
	r.want("before the end", r.counts(), "READY:3 TERMINATED:1 total:4 queue:1")
	r.after(1)
	r.want("a is back", r.counts(), "READY:3 TERMINATED:1 total:4 queue:2")
	r.after(10 * time.Second)
	r.want("order", r.drain(), "a b d")
}

func TestScheduleRequeuesHandedOut(t *testing.T) {
	for _, lease := range []time.Duration{0, time.Minute} {
		r := newRig(t, Config{Defaults: unlimited(), DequeueLease: lease})
		r.mk("a")
		r.mk("b")
		r.want("handed out", r.next(false), "a")
		r.after(59 * time.Second)
		r.want("others run first", r.next(true), "b")
		r.takeEvents()
		var out PCB
		for range 2 { // the second finds it queued
			if res := r.k.Schedule(r.now, []byte("a"), &out); res != OK || out.State != Ready {
				t.Errorf("schedule: %v %v", res, out.State)
			}
		}
		r.want("no event", r.takeEvents(), "")
		r.mk("c")
		r.want("old place", r.drain(), "a c")
		if res := r.k.Schedule(r.now, []byte("a"), &out); res != NotSchedulable || out.State != Running {
			t.Errorf("schedule RUNNING: %v %v", res, out.State)
		}
		if res := r.k.Schedule(r.now, []byte("nobody"), &out); res != NotFound {
			t.Errorf("schedule unknown: %v", res)
		}
	}
}

func TestNoLeaseNeverComesBack(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("a")
	r.want("handed out", r.next(false), "a")
	r.after(1000 * time.Hour)
	r.want("still out", r.next(false), "no runnable")
	r.to("a", Running, OK)
	r.want("counts", r.counts(), "RUNNING:1 total:1 queue:0")
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	r := newRig(t, Config{DequeueLease: time.Second})
	r.mk("a")
	r.next(false)
	r.after(time.Second)
	r.want("back", r.counts(), "READY:1 total:1 queue:1")
	r.now = at(0) // the turn of a loop with a slightly older clock
	r.next(false)
	r.now = at(time.Second)
	r.want("leased from the latest time seen", r.counts(), "READY:1 total:1 queue:0")
}

func TestTerminateIsIdempotent(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	paths := map[string][]State{"new": nil, "ready": {Ready}, "running": {Ready, Running}, "waiting": {Ready, Running, Waiting},
		"blocked": {Ready, Running, Blocked}}
	for pid, path := range paths {
		a := args(pid, Normal)
		a.NoSchedule = true
		r.k.Create(r.now, a, nil)
		for _, s := range path {
			r.to(pid, s, OK)
		}
		var out PCB
		if res := r.k.Terminate(r.now, []byte(pid), []byte("x"), &out); res != OK || out.State != Terminated {
			t.Errorf("%s: %v %v", pid, res, out.State)
		}
		r.takeEvents()
		r.k.Terminate(r.now, []byte(pid), []byte("x"), &out)
		r.to(pid, Zombie, OK)
		r.takeEvents()
		if res := r.k.Terminate(r.now, []byte(pid), nil, &out); res != OK || out.State != Zombie {
			t.Errorf("%s again: %v %v", pid, res, out.State)
		}
		r.want("events of repeats", r.takeEvents(), "")
	}
	r.want("counts", r.counts(), "ZOMBIE:5 total:5 queue:0")
	if res := r.k.Terminate(r.now, []byte("nobody"), nil, nil); res != NotFound {
		t.Errorf("unknown: %v", res)
	}
}

func TestBlockedReasonIsKeptWhileBlocked(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	r.mk("p", Running)
	f := func(reason, want string) {
		t.Helper()
		if res := r.k.Transition(r.now, []byte("p"), nil, Blocked, []byte(reason), nil); res != OK {
			t.Fatal(res)
		}
		got, _ := r.k.BlockedReason(nil, []byte("p"))
		r.want("reason", string(got), want)
		r.to("p", Ready, OK)
		got, _ = r.k.BlockedReason(nil, []byte("p"))
		r.want("resumed", string(got), "")
		r.to("p", Running, OK)
	}
	f("", "")
	f("needs approval", "needs approval")
	f(strings.Repeat("a", 1024), strings.Repeat("a", 1024))
	f(strings.Repeat("a", 1025), strings.Repeat("a", 1024))
	f(strings.Repeat("a", 1023)+"ü", strings.Repeat("a", 1023))
	f(strings.Repeat("a", 1021)+"🙂", strings.Repeat("a", 1021))
	f(strings.Repeat("a", 1020)+"🙂", strings.Repeat("a", 1020)+"🙂")
	if _, res := r.k.BlockedReason(nil, []byte("nobody")); res != NotFound {
		t.Error(res)
	}
}

func TestUnknownPID(t *testing.T) {
	r := newRig(t, Config{})
	ghost := []byte("ghost")
	for what, res := range map[string]Result{
		"get": r.k.Get(ghost, nil, nil), "transition": r.k.Transition(r.now, ghost, nil, Ready, nil, nil),
		"usage": r.k.RecordUsage(r.now, ghost, nil, &Usage{}, nil), "check": r.k.CheckQuota(r.now, ghost, nil, &QuotaCheck{}),
		"empty": r.k.Get(nil, nil, nil),
	} {
		if res != NotFound {
			t.Errorf("%s: %v", what, res)
		}
	}
}

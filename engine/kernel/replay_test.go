package kernel

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited(), DequeueLease: time.Minute})
	r.mk("ready")
	r.mk("running", Running)
	r.mk("done", Terminated)
	before := r.k.stateDigest()
	f := func(why string, c Change) {
		t.Helper()
		_, err := r.k.Apply(&c, 0)
		if !errors.Is(err, errNotApplicable) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: got %v, want %s", c.Kind, err, why)
		}
		if r.k.stateDigest() != before {
			t.Fatalf("%v changed something", c.Kind)
		}
	}
	ready, running, done := []byte("ready"), []byte("running"), []byte("done")
	long := make([]byte, maxIDLen+1)
	f("process exists", Change{Kind: ChangeCreate, PID: ready, Seq: 9})
	f("no room", Change{Kind: ChangeCreate, PID: long, Seq: 9})
	f("creation sequence", Change{Kind: ChangeCreate, PID: []byte("x"), Seq: 3})
	f("creation sequence", Change{Kind: ChangeCreate, PID: []byte("x"), Seq: ^uint64(0)})
	f("ready sequence", Change{Kind: ChangeCreate, PID: []byte("x"), Seq: 4, State: Ready, ReadySeq: 3})
	f("bad state", Change{Kind: ChangeCreate, PID: []byte("x"), Seq: 4, State: Zombie})
	f("no such process", Change{Kind: ChangeUsage, PID: []byte("x")})
	f("READY to WAITING", Change{Kind: ChangeTransition, PID: ready, State: Waiting})
	f("READY to UNKNOWN", Change{Kind: ChangeTransition, PID: ready, State: 77})
	f("ready sequence", Change{Kind: ChangeTransition, PID: running, State: Ready, ReadySeq: 1})
	f("reason too long", Change{Kind: ChangeTransition, PID: running, State: Blocked, Reason: long})
	f("not queued", Change{Kind: ChangeLease, PID: running})
	f("not handed out", Change{Kind: ChangeLeaseEnd, PID: ready})
	f("not handed out", Change{Kind: ChangeRequeue, PID: done})
	f("not terminal", Change{Kind: ChangeRemove, PID: ready})
	f("unknown kind", Change{Kind: 99, PID: ready})
	f("no such log", Change{Kind: ChangeRateDrop, UserID: []byte("x")})
	f("user too long", Change{Kind: ChangeRateStamp, UserID: long})
}

// TestDigestSeesEverything: each change shows in the digest, and replaying shows the same.
func TestDigestSeesEverything(t *testing.T) {
	r := newRig(
		t,
		Config{
			Defaults:          BuiltinQuota(),
			DequeueLease:      time.Minute,
			ProcessRetention:  time.Minute,
			MaxRateLimitUsers: 3,
		},
	)
	last := r.k.stateDigest()
	f := func(what string, do func()) {
		t.Helper()
		do()
		d := r.k.stateDigest()
		if d == last {
			t.Errorf("%s does not show", what)
		}
		last = d
		if got := r.replayed(Config{Shards: 512, DequeueLease: time.Second}).stateDigest(); got != d {
			t.Errorf("%s: replay gives %x, want %x", what, got, d)
		}
	}
	f("create", func() { r.mk("a") })
	f("create", func() { r.mk("b") })
	f("create NEW", func() { a := args("n", Low); a.NoSchedule = true; r.k.Create(r.now, a, nil) })
	f("lease", func() { r.next(false) })
	f("time of a lease", func() { r.after(time.Second); r.next(false) })
	f("schedule again", func() { r.k.Schedule(r.now, []byte("b"), nil) })
	f("schedule NEW", func() { r.k.Schedule(r.now, []byte("n"), nil) })
	f("lease end", func() { r.after(time.Minute); r.k.Counts(r.now) })
	f("start", func() { r.next(true) })
	f("block", func() { r.k.Transition(r.now, []byte("a"), nil, Blocked, []byte("why"), nil) })
	f("resume", func() { r.to("a", Ready, OK) })
	f("usage", func() { r.k.RecordUsage(r.now, []byte("a"), nil, &Usage{InferenceInputChars: 1}, nil) })
	f("defaults", func() { r.k.SetDefaults(r.now, &QuotaPatch{Set: 1, Values: Quota{7}}) })
	f("stamp", func() { r.k.CheckRate(r.now, []byte("ua"), true) })
	f("stamp of a new user", func() { r.k.CheckRate(r.now, []byte("new"), true) })
	f("terminate", func() { r.k.Terminate(r.now, []byte("a"), nil, nil) })
	f("zombie", func() { r.to("a", Zombie, OK) })
	f("sweep", func() { r.after(time.Hour); r.k.Sweep(r.now) })
	peek := r.k.stateDigest()
	r.k.CheckRate(r.now, []byte("new"), false)
	var c QuotaCheck
	r.k.CheckQuota(r.now, []byte("b"), nil, &c)
	if r.k.stateDigest() != peek {
		t.Error("looking changed something")
	}
}

// TestReplayUnderSmallerLimits: a kernel restarted with other settings takes the old journal and
// then keeps its own limits.
func TestReplayUnderSmallerLimits(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited(), DequeueLease: time.Hour})
	for _, pid := range []string{"a", "b", "c", "d", "e"} {
		r.mk(pid)
	}
	r.to("a", Terminated, OK)
	r.next(false)
	k := r.replayed(Config{Defaults: unlimited(), MaxProcesses: 4, DequeueLease: time.Second, MaxRateLimitUsers: 2})
	if res, _ := k.Create(r.now, args("x", Normal), nil); res != TableFull { // one eviction is not enough
		t.Errorf("create: %v", res)
	}
	k.Terminate(r.now, []byte("e"), nil, nil)
	if res, _ := k.Create(r.now, args("x", Normal), nil); res != OK || k.Len() != 4 {
		t.Errorf("create: %v, %d processes", res, k.Len())
	}
	if n := k.rates.live.Load(); n != 2 {
		t.Errorf("%d logs", n)
	}
	// The later, shorter lease ends first.
	var out PCB
	k.Next(r.now, false, &out)
	r.after(time.Second)
	if c := k.Counts(r.now); string(out.PID) != "c" || c.QueueDepth != 3 {
		t.Errorf("%s leased, queue %d", out.PID, c.QueueDepth)
	}
}

package kernel

import (
	"errors"
	"testing"
	"time"
)

// TestRowsRememberTheirLastRecord: whichever kind of record is about a process, a user or the
// defaults is the one remembered.
func TestRowsRememberTheirLastRecord(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited(), DequeueLease: time.Minute})
	f := func(what string, do func()) {
		t.Helper()
		before := r.records
		do()
		at, _ := r.k.locate([]byte("p"))
		if got := at.r.recorded; r.records == before || got != r.records {
			t.Errorf("%s: index %d is remembered of %d records", what, got, r.records)
		}
	}
	f("create", func() { r.mk("p") })
	f("usage", func() { r.k.RecordUsage(r.now, []byte("p"), nil, &Usage{LLMCalls: 1}, nil) })
	f("lease", func() { r.next(false) })
	f("requeue", func() { r.k.Schedule(r.now, []byte("p"), nil) })
	f("lease", func() { r.next(false) })
	f("lease end", func() { r.after(time.Hour); r.k.Counts(r.now) })
	f("transition", func() { r.next(true) })
	r.k.SetDefaults(r.now, &QuotaPatch{Set: 1, Values: Quota{7}})
	if r.k.defaultsRecord != r.records {
		t.Errorf("the defaults remember %d of %d", r.k.defaultsRecord, r.records)
	}
	for range 2 {
		r.k.CheckRate(r.now, []byte("u"), true)
		s, tag := r.k.rates.home([]byte("u"))
		if got := s.recorded.at(s.find(tag, []byte("u"))); got != r.records {
			t.Errorf("the log remembers %d of %d", got, r.records)
		}
	}
	at, _ := r.k.locate([]byte("p"))
	r.to("p", Terminated, OK)
	r.after(25 * time.Hour)
	r.k.Sweep(r.now)
	if got := at.r.recorded; got != 0 {
		t.Errorf("a free slot remembers %d", got)
	}
}

// TestNothingIsRememberedWithoutAJournal: a reader then has nothing to wait for, and the memory for
// the indexes of logs is not there.
func TestNothingIsRememberedWithoutAJournal(t *testing.T) {
	k := New(Config{Defaults: unlimited()})
	k.Create(at(0), args("p", Normal), nil)
	k.Transition(at(0), []byte("p"), nil, Running, nil, nil)
	k.RecordUsage(at(0), []byte("p"), nil, &Usage{LLMCalls: 1}, nil)
	k.CheckRate(at(0), []byte("u"), true)
	var out PCB
	if k.Get([]byte("p"), nil, &out); out.Recorded != 0 {
		t.Errorf("a process remembers %d", out.Recorded)
	}
	for i := range k.rates.shards {
		if n := len(k.rates.shards[i].recorded.chunks); n != 0 {
			t.Errorf("%d chunks", n)
		}
	}
}

// TestApplyPassesOverWhatIsKnown: a record whose effect is there already has none, and one that
// fits nothing is an error except within the window.
func TestApplyPassesOverWhatIsKnown(t *testing.T) {
	k := New(Config{Defaults: unlimited(), Shards: minShards})
	p, u := []byte("p"), []byte("u")
	f := func(index uint64, c Change, applied bool, err error) {
		t.Helper()
		if got, e := k.Apply(&c, index); got != applied || !errors.Is(e, err) {
			t.Errorf("%v at %d: got %v %v, want %v %v", c.Kind, index, got, e, applied, err)
		}
	}
	create := Change{Kind: ChangeCreate, PID: p, Seq: 5, State: Ready, ReadySeq: 3}
	usage := func(n int64) Change { return Change{Kind: ChangeUsage, PID: p, Usage: Usage{LLMCalls: n}} }
	stamp, drop := Change{Kind: ChangeRateStamp, UserID: u}, Change{Kind: ChangeRateDrop, UserID: u}
	defaults := Change{Kind: ChangeQuotaDefaults, Quota: BuiltinQuota()}
	f(10, create, true, nil)
	f(10, create, false, nil)
	f(11, create, false, errNotApplicable)
	f(12, usage(1), true, nil)
	f(11, usage(2), false, nil)
	f(0, usage(3), true, nil) // without an index nothing is known
	f(12, usage(4), false, nil)
	f(13, stamp, true, nil)
	f(13, stamp, false, nil)
	f(12, drop, false, nil)
	f(14, drop, true, nil)
	f(15, drop, false, errNotApplicable)
	f(16, defaults, true, nil)
	f(16, defaults, false, nil)

	absent := Change{Kind: ChangeTransition, PID: []byte("gone"), State: Ready, ReadySeq: 40, At: 77}
	f(20, absent, false, errNotApplicable)
	k.Lenient(25)
	f(20, absent, false, nil)
	f(21, drop, false, nil)
	f(22, Change{Kind: ChangeCreate, PID: []byte("q"), Seq: 4}, true, nil) // the snapshot saw a later one
	f(23, Change{Kind: ChangeLeaseEnd, PID: p}, false, errNotApplicable)   // it must fit all the same
	f(25, create, false, errNotApplicable)
	f(26, absent, false, errNotApplicable)
	f(27, drop, false, errNotApplicable)
	f(28, Change{Kind: ChangeCreate, PID: []byte("x"), Seq: 5}, false, errNotApplicable)
	if err := k.finishLoad(); err != nil {
		t.Fatal(err)
	}
	f(25, absent, false, errNotApplicable)
	if k.readied != 40 || k.Latest() != 77 || k.created != 5 {
		t.Errorf("ready sequence %d, time %d, created %d", k.readied, k.Latest(), k.created)
	}
	var order []string
	k.List(&ListFilter{}, func(p *PCB) bool { order = append(order, string(p.PID)); return true })
	if len(order) != 2 || order[0] != "q" || order[1] != "p" {
		t.Errorf("creation order %q", order)
	}
}

// TestLenientOverALivingKernel: taking the lists apart and building them again changes nothing,
// however often.
func TestLenientOverALivingKernel(t *testing.T) {
	journal := &tape{}
	k, now := New(snapshotConfig(journal)), at(0)
	for i := range 2000 {
		deed{i * 7 % deedKinds, i * 13 % 12, i * 5 % 35, i % 3 / 2}.do(k, &now)
		if i%50 == 0 {
			before := k.stateDigest()
			k.Lenient(0)
			if err := k.finishLoad(); err != nil || k.stateDigest() != before {
				t.Fatalf("after %d: %v", i, err)
			}
		}
	}
	before := k.stateDigest()
	if err := k.finishLoad(); err != nil || k.stateDigest() != before {
		t.Error("ending nothing changed something")
	}
}

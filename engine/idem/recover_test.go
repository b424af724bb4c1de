package idem

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// recovered loads the records of a snapshot into a new table, replays the tape behind index from,
// and ends the recovery.
func (r *rig) recovered(cfg Config, records [][]byte, from uint64) *rig {
	r.Helper()
	n := &rig{TB: r.TB}
	n.clock.Store(r.clock.Load())
	cfg.Now, cfg.Journal = n.clock.Load, r.tape.journal
	n.Table = New(cfg)
	for _, rec := range records {
		if err := n.LoadRecord(rec); err != nil {
			r.Fatal(err)
		}
	}
	r.tape.replay(r, n.Table, from)
	return n
}

func photograph(tb testing.TB, h *Table) (records [][]byte) {
	tb.Helper()
	if err := h.WriteSnapshot(func(rec []byte) error { records = append(records, append([]byte(nil), rec...)); return nil }); err != nil {
		tb.Fatal(err)
	}
	return records
}

// TestUnknown walks through what can become of an execution that a restart interrupted.
func TestUnknown(t *testing.T) {
	r := newRig(t, Config{})
	r.run("done", "x")
	for _, key := range []string{"b", "c", "d"} {
		r.begin(key, "1", nil, Started, "")
	}
	r.BeginRepeatable(r.Now(), k("a"), in("1"), nil)
	r.pass(time.Hour)
	r.begin("late", "1", nil, Started, "")
	n := r.recovered(Config{}, nil, 0)
	if n.Recovered() != 5 {
		t.Fatal("not all are unknown")
	}
	reported := len(r.tape.records)
	n.begin("a", "1", nil, Interrupted, "")
	n.begin("a", "2", nil, Conflict, "")
	if n.Finish(k("a"), out("x")) != nil || n.Release(k("a")) || n.Cancel(k("a"), &sleeper{}) {
		t.Fatal("what is unknown is not in flight")
	}
	if attempt, ok := n.Restart(k("a")); attempt != 2 || !ok {
		t.Fatal(attempt, ok)
	}
	if _, ok := n.Restart(k("a")); ok || n.Forget(k("a")) || n.FinishUnknown(k("a"), out("")) != nil {
		t.Fatal("decided twice")
	}
	var w sleeper
	n.begin("a", "1", &w, InFlight, "")
	n.Release(k("a")) // the first attempt is as unknown as before
	n.begin("a", "1", nil, Interrupted, "")
	if _, ok := n.Restart(k("b")); ok {
		t.Fatal("b may not be run twice")
	}
	if attempt, ok := n.Restart(k("a")); attempt != 2 || !ok || w.woken.Load() != 1 {
		t.Fatal(attempt, ok, w.woken.Load())
	}
	n.finish("a", out("again"))
	n.begin("a", "1", nil, Done, "again")
	if n.FinishUnknown(k("b"), Stored{Error: "OUTCOME_UNKNOWN"}).Error == "" || !n.Forget(k("c")) {
		t.Fatal("b and c")
	}
	n.begin("b", "1", nil, Done, "")
	n.begin("c", "2", nil, Started, "")
	if got := r.tape.reported(reported); got != "started released started finished finished dropped started" {
		t.Fatal(got)
	}
	n.pass(time.Minute - 1) // the window of the others began with the recovery
	n.begin("late", "1", nil, Unknown, "")
	n.begin("d", "1", nil, Unknown, "")
	n.pass(1)
	n.begin("d", "2", nil, Started, "")
	if _, ok := n.Restart(k("late")); ok {
		t.Fatal("late has expired")
	}
}

// TestUnknownExpires decides on both sides of the instant at which nothing is to be decided any
// more.
func TestUnknownExpires(t *testing.T) {
	f := func(decide func(r *rig) bool) {
		t.Helper()
		for _, late := range []int64{0, 1} {
			r := newRig(t, Config{})
			r.BeginRepeatable(r.Now(), k("a"), in(""), nil)
			n := r.recovered(Config{}, nil, 0)
			n.Recovered()
			n.clock.Store(ttl - 1 + late)
			if decide(n) != (late == 0) {
				t.Errorf("wrong at %d", n.clock.Load())
			}
		}
	}
	f(func(r *rig) bool { _, ok := r.Restart(k("a")); return ok })
	f(func(r *rig) bool { return r.Forget(k("a")) })
	f(func(r *rig) bool { return r.FinishUnknown(k("a"), out("")) != nil })
}

// TestWindowGoesOn has an outcome expire at the same reading as if there had been no restart.
func TestWindowGoesOn(t *testing.T) {
	r := newRig(t, Config{})
	r.pass(time.Hour)
	r.run("a", "x")
	r.pass(40 * time.Second)
	n, back := r.recovered(Config{}, photograph(t, r.Table), r.tape.last()), r.recovered(Config{}, nil, 0)
	n.Recovered()
	n.pass(20*time.Second - 1)
	n.begin("a", "", nil, Done, "x")
	n.pass(1)
	n.begin("a", "", nil, Started, "")

	back.clock.Store(5) // a clock that starts again does not keep it for an hour
	back.Recovered()
	back.clock.Store(4 + ttl)
	back.begin("a", "", nil, Done, "x")
	back.clock.Store(5 + ttl)
	back.begin("a", "", nil, Started, "")
}

// TestLowerLimits replays a journal into a table that has less room.
func TestLowerLimits(t *testing.T) {
	r := newRig(t, Config{})
	for _, key := range []string{"a", "b", "c", "d"} {
		r.run(key, "12345")
	}
	r.run("large", "123456789012")
	reported := r.tape.last()
	n := r.recovered(Config{MaxEntries: 2, MaxBytes: 11}, nil, 0)
	n.counts(1, 0, 5, 0) // the large one had a place while it was executed
	n.begin("d", "", nil, Done, "12345")
	n = r.recovered(Config{MaxEntries: 3, MaxBytes: 9}, photograph(t, r.Table), reported)
	n.counts(1, 0, 5, 0)
	if r.tape.last() != reported {
		t.Fatal("a replay reported something")
	}
}

// TestApplyTwice replays more than is missing: what is in the table already has no effect.
func TestApplyTwice(t *testing.T) {
	r := newRig(t, Config{MaxEntries: 2})
	for _, key := range []string{"a", "b", "c", "b", "a"} {
		if o, _ := r.Begin(r.Now(), k(key), in(""), nil); o == Started {
			r.finish(key, out(key))
		}
	}
	n := r.recovered(Config{MaxEntries: 2}, photograph(t, r.Table), r.tape.last())
	var c Change
	for i, rec := range r.tape.records[:5] { // up to the start of c, which had no room beside a and b
		if err := ParseChange(rec, &c); err != nil || n.Apply(&c, uint64(i+1)) != nil || n.Digest() != r.Digest() {
			t.Fatalf("record %d is applied once more, or not at all: %v", i, err)
		}
	}
	r.tape.replay(t, n.Table, 3)
	if n.Digest() != r.Digest() || n.Len() != 2 {
		t.Fatal("another state")
	}
	if err := n.Apply(&Change{}, 1<<40); !errors.Is(err, errNotApplicable) {
		t.Fatal(err)
	}
	n.begin("d", "", nil, Started, "")
	n.begin("e", "", nil, Started, "")
	if err := n.Apply(&Change{Kind: ChangeStarted, Key: k("f"), Attempt: 1}, 0); !errors.Is(err, errNotApplicable) {
		t.Fatal(err)
	}
}

// TestSnapshotUnderLoad takes snapshots while others use the table: each, with the changes behind
// an index of before, gives the state that the whole tape gives, and is within the limits all the
// way.
func TestSnapshotUnderLoad(t *testing.T) {
	r := newRig(t, Config{MaxEntries: 16, MaxBytes: 100, TTL: 50, Shards: 8})
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() { r.churn(g, 1200) })
	}
	type photo struct {
		from    uint64
		records [][]byte
	}
	var photos []photo
	for range 8 {
		from := r.tape.last()
		photos = append(photos, photo{from, photograph(t, r.Table)})
	}
	wg.Wait()
	want := r.recovered(Config{MaxEntries: 16, MaxBytes: 100, Shards: 1}, nil, 0).Digest()
	if want != r.Digest() {
		t.Fatal("the tape and the table differ")
	}
	for i, p := range photos {
		n := r.recovered(Config{MaxEntries: 16, MaxBytes: 100, Shards: 4}, p.records, p.from)
		if n.Digest() != want {
			t.Fatalf("snapshot %d leads to another state", i)
		}
		if err := checkQuiet(n.Table); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotEndsWithTheError has write fail at every place.
func TestSnapshotEndsWithTheError(t *testing.T) {
	r := newRig(t, Config{})
	r.run("a", "x")
	bad := errors.New("disk")
	for left := range 3 {
		calls := 0
		err := r.WriteSnapshot(func([]byte) error {
			if calls++; calls > left {
				return bad
			}
			return nil
		})
		if left < 2 && (err != bad || calls != left+1) || left == 2 && (err != nil || calls != 2) {
			t.Fatal(left, calls, err)
		}
	}
}

package idem

import (
	"testing"
	"time"
)

func TestConversation(t *testing.T) {
	r := newRig(t, Config{})
	r.begin("a", "1", nil, Started, "")
	r.begin("a", "2", nil, Conflict, "")
	r.begin("a", "1", nil, InFlight, "")
	r.counts(1, 1, 0, 0)
	want := Stored{Status: 3, Output: []byte("{}"), Error: "e", Dispatch: []byte(`{"error":true}`), Token: in("lease"), HasToken: true}
	r.finish("a", want)
	r.begin("a", "2", nil, Conflict, "")
	o, got := r.Begin(r.Now(), k("a"), in("1"), nil)
	if o != Done || got.Status != 3 || got.Error != "e" || string(got.Dispatch) != `{"error":true}` || got.Token != in("lease") || !got.HasToken {
		t.Fatalf("%v %+v", o, got)
	}
	if got.Index != 2 || r.Index(k("a")) != 2 || r.Index(k("b")) != 0 || r.Hits() != 1 {
		t.Fatalf("index %d, %d; %d hits", got.Index, r.Index(k("a")), r.Hits())
	}
	r.counts(1, 0, want.size(), 0)
	r.begin("b", "2", nil, Started, "")
	if !r.Release(k("b")) || r.Release(k("b")) || r.Finish(k("b"), out("late")) != nil || r.Finish(k("a"), out("late")) != nil {
		t.Fatal("something ended twice")
	}
	r.begin("b", "other", nil, Started, "")
	if got := r.tape.reported(0); got != "started finished started released started" {
		t.Fatal(got)
	}
}

// TestValidity looks at both sides of the instant at which an outcome expires.
func TestValidity(t *testing.T) {
	r := newRig(t, Config{})
	r.begin("a", "", nil, Started, "")
	r.pass(time.Hour) // in flight it does not age
	r.finish("a", out("x"))
	r.pass(30 * time.Second)
	r.begin("a", "", nil, Done, "x")
	r.pass(30*time.Second - 1)
	r.begin("a", "", nil, Done, "x")
	r.begin("a", "other", nil, Conflict, "")
	r.pass(1)
	r.begin("a", "other", nil, Started, "")
	if got := r.tape.reported(2); got != "dropped started" {
		t.Fatal(got)
	}
	r.run("b", "y")
	r.pass(time.Minute)
	if r.Sweep() != 1 || r.Sweep() != 0 {
		t.Fatal("Sweep")
	}
	r.counts(1, 1, 0, 0)
}

func TestWaiters(t *testing.T) {
	r := newRig(t, Config{})
	var w [4]sleeper
	r.begin("a", "", nil, Started, "")
	for i := range w {
		r.begin("a", "", &w[i], InFlight, "")
	}
	r.begin("a", "other", &w[0], Conflict, "")
	if !r.Cancel(k("a"), &w[1]) || r.Cancel(k("a"), &w[1]) || r.Cancel(k("b"), &w[0]) {
		t.Fatal("Cancel")
	}
	r.counts(1, 1, 0, 3)
	r.Release(k("a"))
	for i, want := range []int32{1, 0, 1, 1} {
		if w[i].woken.Load() != want || w[i].got.Load() != nil {
			t.Fatalf("waiter %d was woken %d times", i, w[i].woken.Load())
		}
	}
	r.begin("a", "other", nil, Started, "")
	r.begin("a", "other", &w[1], InFlight, "")
	r.begin("a", "other", &w[1], InFlight, "") // twice registered, once cancelled
	r.Cancel(k("a"), &w[1])
	given := r.Finish(k("a"), out("x"))
	if w[1].woken.Load() != 1 || w[1].got.Load() != given || r.Hits() != 1 {
		t.Fatalf("woken %d times with %v; %d hits", w[1].woken.Load(), w[1].got.Load(), r.Hits())
	}
	r.counts(1, 0, 1, 0)
	if r.Cancel(k("a"), &w[1]) {
		t.Fatal("cancelled what was woken")
	}
}

// TestMaxWaiters is at the limit and one above it.
func TestMaxWaiters(t *testing.T) {
	r := newRig(t, Config{MaxWaiters: 2})
	var w sleeper
	r.begin("a", "", nil, Started, "")
	r.begin("b", "", nil, Started, "")
	r.begin("a", "", &w, InFlight, "")
	r.begin("b", "", &w, InFlight, "")
	r.begin("a", "", &w, Crowded, "")
	r.begin("a", "", nil, InFlight, "")
	r.counts(2, 2, 0, 2)
	r.Release(k("b"))
	r.begin("a", "", &w, InFlight, "")
}

// TestNoEviction: at its limits the table refuses a new key and drops none, also when a replay
// finds lower limits than before.
func TestNoEviction(t *testing.T) {
	r := newRig(t, Config{MaxEntries: 3, MaxBytes: 4, NoEviction: true})
	r.run("a", "a")
	r.run("b", "b")
	r.begin("c", "", nil, Started, "")
	r.begin("d", "", nil, Full, "")
	r.begin("a", "", nil, Done, "a")
	r.Release(k("c"))
	r.begin("c", "", nil, Started, "")
	r.finish("c", sized(5)) // what is in flight is kept
	r.counts(3, 0, 7, 0)
	n := r.recovered(Config{MaxEntries: 1, MaxBytes: 1, NoEviction: true}, photograph(t, r.Table), r.tape.last())
	n.Recovered()
	for _, r := range []*rig{r, n} {
		r.begin("d", "", nil, Full, "")
		r.begin("c", "", nil, Done, "xxxxx")
		r.begin("b", "", nil, Done, "b")
		r.pass(time.Minute)
		r.begin("d", "", nil, Started, "")
		r.counts(1, 1, 0, 0)
	}

	r = newRig(t, Config{MaxEntries: 9, MaxBytes: 2, NoEviction: true})
	r.run("a", "a")
	r.run("b", "b")
	r.begin("c", "", nil, Full, "")
	r.pass(time.Minute)
	r.run("c", "c")
}

// TestUnusedTableLeavesNoRecord: so a program that does not know the table reads the snapshot.
func TestUnusedTableLeavesNoRecord(t *testing.T) {
	r := newRig(t, Config{})
	if got := photograph(t, r.Table); len(got) != 0 {
		t.Errorf("records %q", got)
	}
	r.run("a", "a")
	if got := photograph(t, r.Table); len(got) != 2 {
		t.Errorf("records %q", got)
	}
}

// TestMaxEntries is at the limit and one above it, with entries in flight and with completed ones.
func TestMaxEntries(t *testing.T) {
	r := newRig(t, Config{MaxEntries: 3})
	r.run("a", "a")
	r.begin("f", "", nil, Started, "")
	r.run("b", "b")
	r.counts(3, 1, 2, 0)
	r.begin("a", "", nil, Done, "a") // b is the least recently used now
	r.begin("g", "", nil, Started, "")
	r.begin("a", "", nil, Done, "a")
	r.begin("h", "", nil, Started, "") // evicts a
	r.counts(3, 3, 0, 0)
	r.begin("i", "", nil, Full, "")
	r.begin("f", "", nil, InFlight, "")
	r.begin("f", "other", nil, Conflict, "")
	r.Release(k("g"))
	r.begin("a", "", nil, Started, "")
	if got := r.tape.reported(5); got != "dropped started dropped started released started" {
		t.Fatal(got)
	}
}

// TestExpiredGoFirst has an old outcome that was used and a fresh one that was not.
func TestExpiredGoFirst(t *testing.T) {
	r := newRig(t, Config{MaxEntries: 2})
	r.run("old", "x")
	r.pass(59 * time.Second)
	r.run("fresh", "y")
	r.begin("old", "", nil, Done, "x")
	r.pass(time.Second)
	r.begin("new", "", nil, Started, "")
	r.begin("fresh", "", nil, Done, "y")
}

// TestMaxBytes is at the limit and one above it.
func TestMaxBytes(t *testing.T) {
	r := newRig(t, Config{MaxBytes: 10})
	var w sleeper
	r.begin("a", "", nil, Started, "")
	r.finish("a", sized(4))
	r.begin("b", "", nil, Started, "")
	r.finish("b", sized(6))
	r.counts(2, 0, 10, 0)
	r.begin("c", "", nil, Started, "")
	r.finish("c", sized(1)) // evicts a
	r.counts(2, 0, 7, 0)
	r.begin("d", "", nil, Started, "")
	r.finish("d", sized(10)) // evicts all
	r.counts(1, 0, 10, 0)
	r.begin("e", "", nil, Started, "")
	r.begin("e", "", &w, InFlight, "")
	reported := len(r.tape.records)
	given := r.Finish(k("e"), Stored{Output: []byte("12345"), Error: "12345", Dispatch: []byte("1")}) // too large: d stays
	if w.got.Load() != given || given.size() != 11 || given.Index != uint64(reported+1) || r.tape.reported(reported) != "dropped" {
		t.Fatalf("%+v, reported %s", given, r.tape.reported(reported))
	}
	r.counts(1, 0, 10, 0)
	r.begin("e", "", nil, Started, "")
}

// TestFinishCopies has the caller go on with its buffers.
func TestFinishCopies(t *testing.T) {
	r := newRig(t, Config{})
	buf := []byte("output")
	r.begin("a", "", nil, Started, "")
	r.finish("a", Stored{Output: buf[:3], Dispatch: buf[3:], Error: "bad \xff text"})
	copy(buf, "......")
	_, got := r.Begin(r.Now(), k("a"), in(""), nil)
	if string(got.Output) != "out" || string(got.Dispatch) != "put" || got.Error != "bad \uFFFD text" || cap(got.Output) > 8 {
		t.Fatalf("%+v", got)
	}
}

func TestKeyOf(t *testing.T) {
	long := make([]byte, keyRoom)
	seen := map[Key]bool{}
	for _, p := range [][3][]byte{{[]byte("a"), []byte("b"), []byte("c")}, {[]byte("ab"), nil, []byte("c")}, {nil, []byte("ab"), []byte("c")},
		{[]byte("a"), []byte("bc"), nil}, {}, {long, long, long}, {long, long, long[1:]}, {nil, nil, {0}}} {
		key := KeyOf(p[0], p[1], p[2])
		if seen[key] || key != KeyOf(p[0], p[1], p[2]) {
			t.Fatalf("%q has a key of its own neighbour, or two", p)
		}
		seen[key] = true
	}
}

func TestDefaults(t *testing.T) {
	f := func(cfg Config, shards int) {
		t.Helper()
		h := New(cfg)
		if h.ttl != ttl || h.maxEntries != 1024 || h.maxBytes != 64<<20 || h.maxWaiters != defaultMaxWaiters || len(h.shards) != shards {
			t.Fatalf("%d %d %d %d %d", h.ttl, h.maxEntries, h.maxBytes, h.maxWaiters, len(h.shards))
		}
		if o, _ := h.Begin(h.Now(), k("a"), in(""), nil); o != Started {
			t.Fatal(o)
		}
		if o, _ := h.Begin(h.Now(), k("a"), in(""), nil); h.Finish(k("a"), out("")) == nil || o != InFlight {
			t.Fatal(o)
		}
	}
	f(Config{}, DefaultShards)
	f(Config{TTL: -1, MaxEntries: -1, MaxBytes: -1, MaxWaiters: -1, Shards: -1}, DefaultShards)
	f(Config{Shards: 5}, 8)
	f(Config{Shards: 1}, 1)
	f(Config{Shards: 1 << 20}, maxShards)
}

func TestNames(t *testing.T) {
	for o, want := range map[Outcome]string{Full: "full", Started: "started", Done: "done", InFlight: "in flight", Conflict: "conflict",
		Unknown: "unknown", Interrupted: "interrupted", Crowded: "crowded", numOutcomes: "invalid"} {
		if o.String() != want {
			t.Errorf("%d is %q, want %q", o, o, want)
		}
	}
	if ChangeKind(0).String() != "unknown" || numChangeKinds.String() != "unknown" || ChangeReleased.String() != "released" {
		t.Error("kinds")
	}
}

package idem

import (
	"testing"

	"pgregory.net/rapid"
)

// row is an entry of the model, which is a plain map and scans it for whatever it wants to know.
type row struct {
	input   string
	state   state
	attempt uint32
	again   bool // it was begun by BeginRepeatable
	at, use int64
	result  *Stored
	waiters []*sleeper
}

// machine runs the table, the model, and a follower that only hears of the changes; its methods are
// the steps.
type machine struct {
	cfg      Config
	h        *Table
	follower *Table
	index    uint64
	now, use int64
	hits     uint64
	rows     map[string]*row
	waiting  int
}

var (
	someKey   = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
	someInput = rapid.SampledFrom([]string{"1", "1", "1", "2"})
	someSize  = rapid.IntRange(0, 14)
	someNap   = rapid.Int64Range(0, 40)
)

// TestModel compares the table with a plain map under random sequences of all operations, the
// passing of time and restarts.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &machine{rows: map[string]*row{}}
		x.cfg = Config{
			TTL:        100,
			MaxEntries: rapid.IntRange(1, 6).Draw(t, "entries"),
			MaxBytes:   rapid.Int64Range(1, 30).Draw(t, "bytes"),
			MaxWaiters: rapid.IntRange(1, 4).Draw(t, "waiters"),
			Shards:     1 << rapid.IntRange(0, 3).Draw(t, "shards"),
			Now:        func() int64 { return x.now },
		}
		x.follower = New(x.cfg)
		x.cfg.Journal = func(c *Change) uint64 { return x.record(t, c) }
		x.h = New(x.cfg)
		t.Repeat(map[string]func(*rapid.T){
			"begin":   x.begin,
			"again":   x.begin,
			"finish":  x.finish,
			"release": x.release,
			"cancel":  x.cancel,
			"restart": x.restart,
			"unknown": x.finishUnknown,
			"forget":  x.forget,
			"nap":     func(t *rapid.T) { x.now += someNap.Draw(t, "nap") },
			"sweep":   x.sweep,
			"crash":   x.crash,
			"":        x.compare,
		})
	})
}

// record is the journal: the follower hears of the change as it would be read back.
func (x *machine) record(t *rapid.T, c *Change) uint64 {
	x.index++
	var parsed Change
	if err := ParseChange(AppendChange(nil, c), &parsed); err != nil {
		t.Fatal(err)
	}
	if err := x.follower.Apply(&parsed, x.index); err != nil {
		t.Fatal(err)
	}
	return x.index
}

func (x *machine) tick() int64 { x.use++; return x.use }

func (x *machine) bytes() (n int64) {
	for _, r := range x.rows {
		if r.result != nil {
			n += r.result.size()
		}
	}
	return n
}

func (x *machine) inFlight() (n int) {
	for _, r := range x.rows {
		if r.state == running {
			n++
		}
	}
	return n
}

// expire drops what is no longer valid and returns how many that were.
func (x *machine) expire() (n int) {
	for k, r := range x.rows {
		if r.state != running && x.now >= r.at+100 {
			delete(x.rows, k)
			n++
		}
	}
	return n
}

// valid returns the row of key unless it has expired.
func (x *machine) valid(key string) *row {
	if r := x.rows[key]; r != nil && (r.state == running || x.now < r.at+100) {
		return r
	}
	return nil
}

// evict drops the least recently used row that is not running.
func (x *machine) evict() bool {
	victim := ""
	for k, r := range x.rows {
		if r.state != running && (victim == "" || r.use < x.rows[victim].use) {
			victim = k
		}
	}
	delete(x.rows, victim)
	return victim != ""
}

func (x *machine) begin(t *rapid.T) {
	key, input, w := someKey.Draw(t, "key"), someInput.Draw(t, "input"), &sleeper{}
	begin, again := (*Table).Begin, rapid.Bool().Draw(t, "again")
	if again {
		begin = (*Table).BeginRepeatable
	}
	got, stored := begin(x.h, x.h.Now(), k(key), in(input), w)
	x.expire()
	want, result := x.expect(key, input, again, w)
	if got != want || stored != result {
		t.Fatalf("Begin(%s, %s) = %v %v, want %v %v", key, input, got, stored, want, result)
	}
}

// expect is what Begin does in the model.
func (x *machine) expect(key, input string, again bool, w *sleeper) (Outcome, *Stored) {
	r := x.rows[key]
	switch {
	case r == nil:
		if len(x.rows) == x.cfg.MaxEntries && !x.evict() {
			return Full, nil
		}
		x.rows[key] = &row{input: input, attempt: 1, again: again, at: x.now, use: x.tick()}
		return Started, nil
	case r.input != input:
		return Conflict, nil
	case r.state == done:
		r.use = x.tick()
		x.hits++
		return Done, r.result
	case r.state == unknown:
		r.use = x.tick()
		if r.again {
			return Interrupted, nil
		}
		return Unknown, nil
	case x.waiting == x.cfg.MaxWaiters:
		return Crowded, nil
	}
	r.waiters = append(r.waiters, w)
	x.waiting++
	return InFlight, nil
}

// settle completes r in the model, which had state from, with what the table returned.
func (x *machine) settle(t *rapid.T, key string, r *row, got *Stored) {
	if got.size() > x.cfg.MaxBytes {
		delete(x.rows, key)
	} else {
		for n := got.size(); x.bytes()+n > x.cfg.MaxBytes; {
			if x.expire() == 0 && !x.evict() {
				t.Fatal("the model has no room")
			}
		}
		if x.rows[key] != r {
			t.Fatal("evicted for its own sake")
		}
		r.state, r.result, r.at, r.use = done, got, x.now, x.tick()
	}
	x.woken(t, r, got)
}

// woken checks that the waiters of r were woken once, with want.
func (x *machine) woken(t *rapid.T, r *row, want *Stored) {
	for _, w := range r.waiters {
		if w.woken.Load() != 1 || w.got.Load() != want {
			t.Fatalf("woken %d times with %v", w.woken.Load(), w.got.Load())
		}
		if want != nil {
			x.hits++
		}
	}
	x.waiting -= len(r.waiters)
	r.waiters = nil
}

func (x *machine) finish(t *rapid.T) {
	key, n := someKey.Draw(t, "key"), someSize.Draw(t, "size")
	got, r := x.h.Finish(k(key), sized(n)), x.rows[key]
	if running := r != nil && r.state == running; (got != nil) != running {
		t.Fatalf("Finish(%s) = %v", key, got)
	}
	if got != nil {
		x.settle(t, key, r, got)
	}
}

func (x *machine) release(t *rapid.T) {
	key := someKey.Draw(t, "key")
	r := x.rows[key]
	ok := r != nil && r.state == running
	if x.h.Release(k(key)) != ok {
		t.Fatalf("Release(%s) = %v", key, !ok)
	}
	if !ok {
		return
	}
	x.woken(t, r, nil)
	if r.attempt == 1 {
		delete(x.rows, key)
		return
	}
	r.attempt--
	r.state, r.at, r.use = unknown, x.now, x.tick()
}

func (x *machine) cancel(t *rapid.T) {
	key := someKey.Draw(t, "key")
	r := x.rows[key]
	if r == nil || len(r.waiters) == 0 {
		if x.h.Cancel(k(key), &sleeper{}) {
			t.Fatal("cancelled nobody")
		}
		return
	}
	i := rapid.IntRange(0, len(r.waiters)-1).Draw(t, "waiter")
	if w := r.waiters[i]; !x.h.Cancel(k(key), w) || x.h.Cancel(k(key), w) || w.woken.Load() != 0 {
		t.Fatal("Cancel")
	}
	r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
	x.waiting--
}

func (x *machine) restart(t *rapid.T) {
	key := someKey.Draw(t, "key")
	attempt, ok := x.h.Restart(k(key))
	r := x.lookUnknown(key)
	if ok != (r != nil && r.again) || ok && attempt != r.attempt+1 {
		t.Fatalf("Restart(%s) = %d %v", key, attempt, ok)
	}
	if ok {
		r.state, r.attempt, r.at, r.use = running, attempt, x.now, x.tick()
	}
}

// lookUnknown returns the row of key if it is unknown. Like the table it drops what it finds
// expired.
func (x *machine) lookUnknown(key string) *row {
	r := x.valid(key)
	if r == nil {
		delete(x.rows, key)
	}
	if r == nil || r.state != unknown {
		return nil
	}
	return r
}

func (x *machine) finishUnknown(t *rapid.T) {
	key, n := someKey.Draw(t, "key"), someSize.Draw(t, "size")
	r := x.valid(key)
	got := x.h.FinishUnknown(k(key), sized(n))
	if ok := r != nil && r.state == unknown; (got != nil) != ok {
		t.Fatalf("FinishUnknown(%s) = %v", key, got)
	}
	if got != nil {
		r.use = x.tick()
		x.settle(t, key, r, got)
	}
}

func (x *machine) forget(t *rapid.T) {
	key := someKey.Draw(t, "key")
	if ok := x.lookUnknown(key) != nil; x.h.Forget(k(key)) != ok {
		t.Fatalf("Forget(%s) = %v", key, !ok)
	} else if ok {
		delete(x.rows, key)
	}
}

func (x *machine) sweep(t *rapid.T) {
	if got, want := x.h.Sweep(), x.expire(); got != want {
		t.Fatalf("Sweep = %d, want %d", got, want)
	}
}

// crash goes on with a table that was loaded from a snapshot.
func (x *machine) crash(t *rapid.T) {
	var records [][]byte
	if err := x.h.WriteSnapshot(func(rec []byte) error { records = append(records, append([]byte(nil), rec...)); return nil }); err != nil {
		t.Fatal(err)
	}
	h := New(x.cfg)
	for _, rec := range rapid.Permutation(records).Draw(t, "records") {
		if err := h.LoadRecord(rec); err != nil {
			t.Fatal(err)
		}
	}
	if h.Digest() != x.h.Digest() {
		t.Fatal("the snapshot has another digest")
	}
	unknowns := 0
	for key, r := range x.rows {
		if r.state == running {
			r.state, r.waiters = unknown, nil
		}
		if r.state == unknown {
			r.at = x.now
			unknowns++
		} else {
			r.result = h.shardOf(new(k(key))).entries[k(key)].result
		}
	}
	if got := h.Recovered(); got != unknowns {
		t.Fatalf("Recovered = %d, want %d", got, unknowns)
	}
	x.h, x.hits, x.waiting = h, 0, 0
}

// compare checks the content of the table, its counters and its lists, and that of the follower.
func (x *machine) compare(t *rapid.T) {
	if x.h.Len() != len(x.rows) || x.h.InFlight() != x.inFlight() || x.h.Bytes() != x.bytes() || x.h.Waiting() != x.waiting || x.h.Hits() != x.hits {
		t.Fatalf("%d entries, %d in flight, %d bytes, %d waiting, %d hits; model %d, %d, %d, %d, %d", x.h.Len(), x.h.InFlight(), x.h.Bytes(),
			x.h.Waiting(), x.h.Hits(), len(x.rows), x.inFlight(), x.bytes(), x.waiting, x.hits)
	}
	for key, r := range x.rows {
		e := x.h.shardOf(new(k(key))).entries[k(key)]
		if e == nil || e.input != in(r.input) || e.state != r.state || e.attempt != r.attempt || e.at != r.at || e.result != r.result {
			t.Fatalf("%s: %+v, model %+v", key, e, r)
		}
	}
	for _, h := range []*Table{x.h, x.follower} {
		if err := checkQuiet(h); err != nil {
			t.Fatal(err)
		}
	}
	if x.follower.Digest() != x.h.Digest() || x.follower.Len() != x.h.Len() || x.follower.Bytes() != x.h.Bytes() || x.follower.InFlight() != 0 {
		t.Fatal("the follower holds something else")
	}
}

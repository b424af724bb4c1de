package projects

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/plan"
)

func line(n int) []byte { return fmt.Appendf(nil, "%d\n", n) }

// fill adds events numbered from 1.
func fill(j *Journal, n int, origin *Origin) {
	for i := range n {
		j.append(entry{line: line(i + 1), origin: origin, correlation: codec.ID{byte(i%2 + 1)}, seq: uint64(i/2 + 1)}, Idle)
	}
}

// TestJournalKeepsTheLast: 10,000 events or 16 MiB, and a cursor behind them is lost.
func TestJournalKeepsTheLast(t *testing.T) {
	j := NewJournal(5, defaults())
	fill(j, DefaultJournalEvents, nil)
	if st := j.Status(); st.Oldest != 6 || st.Last != 5+DefaultJournalEvents {
		t.Fatalf("%+v", st)
	}
	fill(j, 1, nil)
	if st := j.Status(); st.Oldest != 7 {
		t.Fatalf("%+v", st)
	}
	c := &Cursor{Next: 6, All: true}
	if _, got := j.Copy(nil, math.MaxInt, c, math.MaxUint64); got != CopiedLost {
		t.Errorf("a lost cursor: %v", got)
	}
	big := make([]byte, DefaultJournalBytes/2)
	for range 3 {
		j.append(entry{line: big}, Idle)
	}
	if st := j.Status(); st.Last-st.Oldest != 1 {
		t.Errorf("%d large events are kept", st.Last-st.Oldest+1)
	}
}

// TestCursor: own events, subscriptions, correlations, windows and room (exacta §2.4, §3.5).
func TestCursor(t *testing.T) {
	j := NewJournal(0, defaults())
	mine := new(Origin)
	mine.Add(7)
	fill(j, 2, nil)
	fill(j, 2, mine)
	fill(j, 2, nil)
	f := func(c *Cursor, room int, want string, end Copied) {
		t.Helper()
		if c.Next == 0 {
			c.Next = 1
		}
		out, got := j.Copy(nil, room, c, math.MaxUint64)
		if s := string(bytes.ReplaceAll(out, []byte("\n"), nil)); s != want || got != end {
			t.Errorf("%q and %v, want %q and %v", s, got, want, end)
		}
	}
	f(&Cursor{}, 99, "", CopiedAll)
	f(&Cursor{Conn: 7}, 99, "12", CopiedAll)
	f(&Cursor{Conn: 7, All: true}, 99, "121212", CopiedAll)
	f(&Cursor{Conn: 7, All: true, From: 6}, 99, "122", CopiedAll)
	f(&Cursor{All: true, Correlation: codec.ID{2}}, 99, "222", CopiedAll)
	f(&Cursor{All: true}, 3, "12", CopiedFull)
	c := &Cursor{All: true, Window: 2}
	f(c, 99, "12", CopiedWait)
	c.Acked(1)
	f(c, 99, "1", CopiedWait)
	c.Acked(3)
	f(c, 99, "21", CopiedWait)
	c.Acked(6) // of an event that was not given
	f(c, 99, "", CopiedWait)
	c.Acked(5)
	f(c, 99, "2", CopiedAll)
	if n := j.Count(2, 6, codec.ID{1}); n != 2 {
		t.Errorf("%d events of a correlation", n)
	}
}

// TestBehind finds an event by its number in a correlation.
func TestBehind(t *testing.T) {
	j := NewJournal(10, defaults())
	fill(j, 6, nil)
	f := func(id byte, seq, want uint64, ok bool) {
		t.Helper()
		if after, found := j.Behind(codec.ID{id}, seq); found != ok || ok && after != want {
			t.Errorf("%d and %v, want %d and %v", after, found, want, ok)
		}
	}
	f(1, 0, 10, true)
	f(2, 0, 11, true)
	f(2, 1, 12, true)
	f(1, 3, 15, true)
	f(1, 4, 0, false)
	f(3, 0, 0, false)
}

// TestCopyAllocatesNothing: events are encoded once for all connections (exacta §10).
func TestCopyAllocatesNothing(t *testing.T) {
	j := NewJournal(0, defaults())
	fill(j, 100, nil)
	out := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		c := Cursor{Next: 1, All: true}
		out, _ = j.Copy(out[:0], math.MaxInt, &c, math.MaxUint64)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// asker counts its answers.
type asker struct{ got []string }

func (a *asker) Answer(x *Answer) { a.got = append(a.got, string(x.Line)) }

// TestReplays: one run for all askers of a request, its bytes for later ones (exacta §4.0.4).
func TestReplays(t *testing.T) {
	r := NewReplays(defaults())
	id, sum, other := codec.ID{1}, Sum{1}, Sum{2}
	var one, two asker
	origin := new(Origin)
	f := func(o, want Outcome) {
		t.Helper()
		if o != want {
			t.Fatalf("%v, want %v", o, want)
		}
	}
	_, o, _ := r.Look(nil, id, &sum, &one, 1)
	f(o, Unknown)
	_, o = r.Begin(nil, id, &sum, &one, 1, origin)
	f(o, Unknown)
	_, o, _ = r.Look(nil, id, &other, &two, 2)
	f(o, Conflict)
	_, o = r.Begin(nil, id, &sum, &two, 2, new(Origin))
	f(o, Joined)
	if !origin.has(1) || !origin.has(2) || origin.has(3) {
		t.Error("the events are for others than those who asked")
	}
	r.End(id, &Answer{Line: []byte("x")}, true)
	r.End(id, &Answer{Line: []byte("y")}, true)
	got, o, _ := r.Look(nil, id, &sum, &one, 1)
	f(o, Stored)
	if string(got) != "x" || fmt.Sprint(one.got, two.got) != "[x] [x]" {
		t.Errorf("%s, %v, %v", got, one.got, two.got)
	}
	r.Begin(nil, codec.ID{2}, &sum, &one, 1, origin)
	r.End(codec.ID{2}, &Answer{Line: []byte("z")}, false)
	_, o, _ = r.Look(nil, codec.ID{2}, &sum, &one, 1)
	f(o, Unknown)
	for i := range DefaultReplayEntries {
		key := codec.ID{3, byte(i), byte(i >> 8)}
		r.Begin(nil, key, &sum, &one, 1, origin)
		r.End(key, &Answer{Line: []byte("z")}, true)
	}
	_, o, _ = r.Look(nil, id, &sum, &one, 1)
	f(o, Unknown)
	if len(r.entries) != DefaultReplayEntries {
		t.Errorf("%d answers are kept", len(r.entries))
	}
	// What was answered at once is kept too, and its room is used again.
	for i := range 2 * DefaultReplayEntries {
		key := codec.ID{4, byte(i), byte(i >> 8)}
		out, o := r.Keep([]byte("before "+key.String()), len("before "), key, &sum, &one, 1, r.added)
		f(o, Unknown)
		if string(out) != "before "+key.String() {
			t.Fatalf("the answer is %s", out)
		}
		if kept, o, _ := r.Look([]byte("x"), key, &sum, nil, 1); o != Stored || string(kept) != "x"+key.String() {
			t.Fatalf("%v, %s", o, kept)
		}
	}
	out, o := r.Keep([]byte("ab"), 1, codec.ID{4, 255, 31}, &sum, &one, 1, 0)
	if f(o, Stored); string(out) != "a"+(codec.ID{4, 255, 31}).String() {
		t.Errorf("another answer than the first one: %s", out)
	}
	out, o = r.Keep([]byte("ab"), 1, codec.ID{4, 255, 31}, &other, &one, 1, 0)
	if f(o, Conflict); string(out) != "a" {
		t.Errorf("a conflict has the answer %s", out)
	}
	if len(r.entries) != DefaultReplayEntries || len(r.free) > maxFree {
		t.Errorf("%d answers are kept, %d rooms", len(r.entries), len(r.free))
	}
	big := make([]byte, DefaultReplayBytes)
	r.Begin(nil, id, &sum, &one, 1, origin)
	r.End(id, &Answer{Line: big}, true)
	if len(r.entries) != 1 {
		t.Errorf("%d answers beside a large one", len(r.entries))
	}
}

// TestRestore opens projects with all that can be saved (exacta §5.6).
func TestRestore(t *testing.T) {
	for state := State(0); state < states; state++ {
		r := newRig()
		found := &Found{State: state}
		if state == Executing || state == Paused || state == Cancelling {
			found.Execution = &Execution{ID: codec.ID{4}, Plan: NewPlan(&plan.Plan{ID: codec.ID{5}.String(), Steps: []plan.Step{{Type: plan.FileCreate}}}), Next: 1}
		}
		q := &Request{ID: []byte("x"), Command: codec.OpenProject}
		q.Begin(codec.ID{6})
		r.p.Restore(q, found)
		want := map[State]State{Executing: Paused, Paused: Paused, Failed: Failed, Completed: Completed}[state]
		if r.p.state != want || r.answers[q] == "" {
			t.Errorf("%s is restored as %s", state, r.p.state)
		}
		if again, ok := ParseState(state.String()); again != state || !ok {
			t.Errorf("%s is read as %s", state, again)
		}
		if (r.undone > 0) != (state == Cancelling) {
			t.Errorf("%s: %d executions are taken back", state, r.undone)
		}
	}
}

// TestStop: an execution pauses at its next boundary, what is parked is answered.
func TestStop(t *testing.T) {
	r := newRig()
	i := r.request(codec.ExtractIntent, Args{UserInput: "x"})
	r.finish(0, nil, false)
	g := r.request(codec.GeneratePlan, Args{Handle: r.p.recent[0].ID})
	r.finish(0, nil, false)
	id, _ := codec.ParseID([]byte(r.p.active.ID))
	r.request(codec.ApprovePlan, Args{Handle: id})
	e := r.request(codec.ExecutePlan, Args{Handle: id})
	for _, q := range []*Request{i, g, e} {
		if got, _, _ := code(t, r.answers[q]); got != "" {
			t.Fatalf("%s: %s", q.Command, got)
		}
	}
	r.p.Stop()
	if !r.p.Busy() {
		t.Fatal("no step runs")
	}
	r.finish(0, nil, false)
	if r.p.state != Paused || r.p.Busy() || r.saved.Execution == nil || r.saved.Execution.Next != 1 {
		t.Errorf("%s, %+v is saved", r.p.state, r.saved)
	}
	r.request(codec.Resume, Args{Handle: r.p.exec.ID})
	r.p.Broken(e)
	if r.p.state != Executing || r.undone > 0 {
		t.Errorf("%s after a defect, while a step runs", r.p.state)
	}
	r.finish(0, nil, false)
	if r.p.state != Failed || r.undone != 1 {
		t.Errorf("%s after a defect", r.p.state)
	}
	r.request(codec.Build, Args{})
	parked := r.request(codec.Build, Args{})
	r.p.Leave()
	if len(r.late) != 1 || r.late[0] != parked {
		t.Error("what is parked is not late")
	}
}

// TestParked: 64 requests wait for an activity, the next one is refused (exacta §4.0.1).
func TestParked(t *testing.T) {
	r := newRig()
	r.request(codec.Build, Args{})
	for range DefaultParked {
		r.p.Handle(&Request{ID: []byte("x"), Command: codec.ApplyDiffSet, Timeout: 1})
	}
	over := r.request(codec.ApplyDiffSet, Args{})
	if got, _, _ := code(t, r.answers[over]); got != "RES-004" || len(r.answers) != 1 {
		t.Errorf("%q, %d answers", got, len(r.answers))
	}
}

// TestBehindClose: what waits behind a CloseProject is late, in its order.
func TestBehindClose(t *testing.T) {
	r := newRig()
	r.request(codec.Build, Args{})
	r.request(codec.CloseProject, Args{})
	open, build := r.request(codec.OpenProject, Args{}), r.request(codec.Build, Args{})
	r.finish(0, nil, false)
	if !r.closed || len(r.late) != 2 || r.late[0] != open || r.late[1] != build {
		t.Errorf("closed: %v, late: %v", r.closed, r.late)
	}
}

// counts is a connection that counts how often it is woken.
type counts struct{ n int }

func (c *counts) Wake() { c.n++ }

// TestWatch: each connection is woken once by an event, from Watch to Unwatch, in any order.
func TestWatch(t *testing.T) {
	j := NewJournal(0, defaults())
	all := make([]counts, 5)
	want := make([]int, len(all))
	watched := make([]bool, len(all))
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		i := random.IntN(len(all))
		if watched[i] = random.IntN(2) == 0; watched[i] {
			j.Watch(&all[i])
		} else {
			j.Unwatch(&all[i])
		}
		fill(j, 1, nil)
		for k := range all {
			if watched[k] {
				want[k]++
			}
			if all[k].n != want[k] {
				t.Fatalf("connection %d is woken %d times, want %d", k, all[k].n, want[k])
			}
		}
	}
}

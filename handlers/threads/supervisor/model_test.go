package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// fakeJobs is a queue of due jobs whose attempts end when a test has them end.
type fakeJobs struct {
	t      interface{ Errorf(string, ...any) }
	inside atomic.Bool // of one of the methods of Jobs

	mu       sync.Mutex
	due      []Job
	active   map[string]chan Outcome
	acked    map[string]bool
	finished []string
	ticks    int
}

func newFakeJobs(t interface{ Errorf(string, ...any) }) *fakeJobs {
	return &fakeJobs{t: t, active: map[string]chan Outcome{}, acked: map[string]bool{}}
}

func (f *fakeJobs) config(parallel int) Config {
	return Config{Jobs: f, Deliver: f.deliver, Run: f.run, Acked: f.isAcked, Interval: 5 * time.Second, Machine: NewMachine(parallel, quiet)}
}

// enter checks that only one method of Jobs runs at a time.
func (f *fakeJobs) enter() (leave func()) {
	if !f.inside.CompareAndSwap(false, true) {
		f.t.Errorf("two calls of Jobs at once")
	}
	f.mu.Lock()
	return func() {
		f.mu.Unlock()
		f.inside.Store(false)
	}
}

func (f *fakeJobs) Claim(_ context.Context, attempts, runs int) (list []Job) {
	defer f.enter()()
	f.due = slices.DeleteFunc(f.due, func(j Job) bool {
		if len(list) == attempts || j.Kind != Deliver && runs == 0 {
			return false
		}
		if j.Kind != Deliver {
			runs--
		}
		f.active[j.TriggerID] = make(chan Outcome, 1)
		list = append(list, j)
		return true
	})
	return list
}

func (f *fakeJobs) Finished(j Job, o Outcome) {
	defer f.enter()()
	f.finished = append(f.finished, fmt.Sprint(j.TriggerID, " ", o.Code))
}

func (f *fakeJobs) Tick(time.Time) {
	defer f.enter()()
	f.ticks++
}

func (f *fakeJobs) enqueue(list ...Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.due = append(f.due, list...)
}

// end ends an attempt under way.
func (f *fakeJobs) end(id string, o Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active[id] <- o
}

func (f *fakeJobs) isAcked(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked[id]
}

func (f *fakeJobs) deliver(ctx context.Context, a Attempt) Outcome {
	return f.attempt(ctx, a.TriggerID, nil)
}

func (f *fakeJobs) run(ctx context.Context, c Command, acked <-chan struct{}) Outcome {
	return f.attempt(ctx, c.TriggerID, acked)
}

func (f *fakeJobs) attempt(ctx context.Context, id string, acked <-chan struct{}) (o Outcome) {
	f.mu.Lock()
	end := f.active[id]
	f.mu.Unlock()
	select {
	case o = <-end:
	case <-acked:
	case <-ctx.Done():
		o = Outcome{Code: Interrupted}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.active, id)
	return o
}

// model is what a Supervisor does, written plainly.
type model struct {
	parallel int
	fake     *fakeJobs
	sup      *Supervisor
	last     int
	due      []Job
	active   []Job
	acked    map[string]bool
	finished []string
	busy     map[string]time.Time
	ticks    int
	next     time.Time // the next tick
}

var runtimes = []string{"a", "b", "c"}

func (m *model) claim() {
	for _, j := range slices.Clone(m.due) {
		runs := 0
		for _, a := range m.active {
			if a.Kind != Deliver {
				runs++
			}
		}
		if len(m.active) < m.parallel && (j.Kind == Deliver || runs < max(1, m.parallel-1)) {
			m.active = append(m.active, j)
			m.due = slices.DeleteFunc(m.due, func(d Job) bool { return d.TriggerID == j.TriggerID })
		}
	}
}

func (m *model) finish(j Job, code Code) {
	m.active = slices.DeleteFunc(m.active, func(a Job) bool { return a.TriggerID == j.TriggerID })
	m.finished = append(m.finished, fmt.Sprint(j.TriggerID, " ", code))
	if j.Kind == Deliver && code == OperatorBusy {
		m.busy[j.Runtime] = time.Now()
	}
	if j.Kind == Deliver && code == Success {
		delete(m.busy, j.Runtime)
	}
}

func (m *model) tick() {
	m.ticks++
	m.next = m.next.Add(5 * time.Second)
	m.finishAcked()
	m.claim()
}

func (m *model) finishAcked() {
	for _, j := range slices.Clone(m.active) {
		if j.Kind != Deliver && m.acked[j.TriggerID] {
			m.finish(j, Success)
		}
	}
}

func (m *model) check(t *rapid.T) {
	synctest.Wait()
	m.fake.mu.Lock()
	defer m.fake.mu.Unlock()
	for _, j := range m.active {
		if m.fake.active[j.TriggerID] == nil {
			t.Fatalf("%s does not run: %v", j.TriggerID, m.fake.active)
		}
	}
	slices.Sort(m.fake.finished) // attempts that end at once are reported in any order
	slices.Sort(m.finished)
	if len(m.fake.active) != len(m.active) || m.fake.ticks != m.ticks || !slices.Equal(m.fake.finished, m.finished) {
		t.Fatalf("%d attempts, %d ticks, finished %v; want %d, %d, %v", len(m.fake.active), m.fake.ticks, m.fake.finished, len(m.active), m.ticks, m.finished)
	}
	for _, r := range runtimes {
		at, busy := m.busy[r]
		if want := busy && time.Since(at) < quiet; m.sup.cfg.Machine.HumanTyping(r) != want {
			t.Fatalf("a person at %s: %v, want %v", r, !want, want)
		}
	}
}

func (m *model) actions() map[string]func(*rapid.T) {
	outcomes := rapid.SampledFrom([]Code{Success, OperatorBusy, SendKeysError, RunFailed})
	return map[string]func(*rapid.T){
		"enqueue": func(t *rapid.T) {
			for range rapid.IntRange(1, 5).Draw(t, "jobs") {
				m.last++
				j := Job{TriggerID: fmt.Sprint("trg_", m.last), Kind: rapid.SampledFrom([]Kind{Deliver, Deliver, Resume, Spawn}).Draw(t, "kind"), Runtime: rapid.SampledFrom(runtimes).Draw(t, "runtime")}
				m.due = append(m.due, j)
				m.fake.enqueue(j)
			}
			for range rapid.IntRange(0, 2).Draw(t, "wakes") {
				m.sup.Wake()
				m.claim()
			}
		},
		"finish": func(t *rapid.T) {
			if len(m.active) == 0 {
				t.Skip()
			}
			j, code := rapid.SampledFrom(m.active).Draw(t, "job"), outcomes.Draw(t, "code")
			m.fake.end(j.TriggerID, Outcome{Code: code})
			m.finish(j, code)
			m.claim()
		},
		"ack": func(t *rapid.T) {
			if len(m.active) == 0 {
				t.Skip()
			}
			id := rapid.SampledFrom(m.active).Draw(t, "job").TriggerID
			m.fake.mu.Lock()
			m.fake.acked[id], m.acked[id] = true, true
			m.fake.mu.Unlock()
		},
		"sleep": func(t *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 12_000).Draw(t, "ms")) * time.Millisecond)
			synctest.Wait()
			for !m.next.After(time.Now()) {
				m.tick()
			}
		},
		"": m.check,
	}
}

// end closes the Supervisor: some attempts end in time, the others are interrupted and not
// reported.
func (m *model) end(t *rapid.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second+time.Microsecond) // never at a tick
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		m.sup.Close(ctx)
		m.sup.Close(ctx)
	}()
	synctest.Wait()
	m.sup.Wake()
	for _, j := range slices.Clone(m.active) {
		if rapid.Bool().Draw(t, "in time") {
			m.fake.end(j.TriggerID, Outcome{Code: SendKeysError})
			m.finish(j, SendKeysError)
		}
	}
	m.check(t)
	begun := time.Now()
	<-closed
	if late := time.Since(begun); len(m.active) == 0 && late != 0 {
		t.Fatalf("Close waits for nothing: %v", late)
	}
	if !m.next.After(time.Now()) {
		m.finishAcked()
	}
	m.active = nil
	if len(m.sup.runs) != 0 {
		t.Fatalf("commands are left: %v", m.sup.runs)
	}
	m.check(t)
}

func TestSupervisorAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parallel := rapid.IntRange(1, 4).Draw(rt, "parallel")
		// rapid stops a failing run by a panic, which has to leave the bubble's goroutine.
		var stopped any
		synctest.Test(t, func(*testing.T) {
			defer func() { stopped = recover() }()
			m := &model{parallel: parallel, fake: newFakeJobs(rt), acked: map[string]bool{}, busy: map[string]time.Time{}, ticks: 1, next: time.Now().Add(5 * time.Second)}
			m.sup = Start(m.fake.config(parallel))
			defer func() { // also after a failure
				over, cancel := context.WithCancel(context.Background())
				cancel()
				m.sup.Close(over)
			}()
			rt.Repeat(m.actions())
			m.end(rt)
		})
		if stopped != nil {
			panic(stopped)
		}
	})
}

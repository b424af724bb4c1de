package supervisor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/fuzz/kit"
)

// TestCommandsLeaveRoom: however many commands run, a delivery is not held up.
func TestCommandsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeJobs(t)
		for i := range 3 * 10 {
			f.due = append(f.due, Job{TriggerID: fmt.Sprint("run", i), Kind: Spawn})
		}
		s := Start(f.config(10))
		synctest.Wait()
		f.mu.Lock()
		if len(f.active) != 10-1 {
			t.Errorf("%d commands run", len(f.active))
		}
		f.mu.Unlock()
		f.enqueue(Job{TriggerID: "delivery"})
		s.Wake()
		synctest.Wait()
		if f.active["delivery"] == nil {
			t.Error("the delivery waits")
		}
		f.end("delivery", Outcome{})
		synctest.Wait()
		if !slices.Contains(f.finished, "delivery ") || len(f.active) != 10-1 {
			t.Error(f.finished)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.Close(ctx)
	})
}

// TestClaimMayTakeLong: wakes do not wait for Jobs, and are not lost.
func TestClaimMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeJobs(t)
		slow := &slowJobs{fakeJobs: f, passed: make(chan struct{})}
		cfg := f.config(1)
		cfg.Jobs = slow
		s := Start(cfg)
		for range 100 {
			s.Wake()
		}
		for range 2 { // that of the start, and one for all wakes
			slow.passed <- struct{}{}
		}
		synctest.Wait()
		select {
		case slow.passed <- struct{}{}:
			t.Error("a third claim")
		default:
		}
		s.Close(t.Context())
	})
}

type slowJobs struct {
	*fakeJobs
	passed chan struct{}
}

func (s *slowJobs) Claim(ctx context.Context, attempts, runs int) []Job {
	<-s.passed
	return s.fakeJobs.Claim(ctx, attempts, runs)
}

func TestBusyIsBounded(t *testing.T) {
	now := time.Now()
	b := busy{quiet: time.Minute, most: 3, seen: map[string]time.Time{}}
	f := func(runtime string, want bool) {
		t.Helper()
		if b.is(runtime, now) != want {
			t.Errorf("%s: %v", runtime, !want)
		}
	}
	for i, runtime := range []string{"a", "b", "c"} {
		b.note(runtime, now.Add(time.Duration(i)*time.Second))
	}
	b.note("a", now.Add(10*time.Second)) // known: nothing goes
	f("b", true)
	b.note("d", now.Add(11*time.Second))
	f("b", false) // the oldest
	f("a", true)
	f("c", true)
	now = now.Add(65 * time.Second)
	f("c", false)
	b.note("e", now)
	f("a", true)
	f("d", true)
	f("e", true)
	b.forget("a")
	f("a", false)
	if len(b.seen) > b.most {
		t.Error(b.seen)
	}
}

// TestWholeSupervisor works off jobs with a real tmux and real processes.
func TestWholeSupervisor(t *testing.T) {
	r := newRig(t)
	id, file := r.tee("agents_core", "reviewer")
	runs := newRunRig(t)
	made := filepath.Join(runs.dir, "made")
	f := newFakeJobs(t)
	cfg := f.config(10)
	cfg.Deliver, cfg.Run = r.tm.Deliver, runs.Run
	s := Start(cfg)
	f.enqueue([]Job{
		{TriggerID: "trg_1", Runtime: "agents_core:reviewer.0", Envelope: []byte("a\nb;")},
		{TriggerID: "trg_2", Kind: Resume, Argv: runs.play("exit", "3").Argv},
		{TriggerID: "trg_3", Kind: Spawn, Argv: runs.play("family", made).Argv},
		{TriggerID: "trg_4", Runtime: "agents_core:none.0", Envelope: []byte("x")},
	}...)
	s.Wake()
	ended := func(n int) func() bool {
		return func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.finished) == n
		}
	}
	kit.Until(t, "three attempts end", ended(3))
	kit.Until(t, "the command runs", func() bool { return contents(made) != "" })
	r.wantFile(file, "a\nb;\n")
	r.tmux("copy-mode", "-t", id)
	f.enqueue(Job{TriggerID: "trg_5", Runtime: "agents_core:reviewer.0", Envelope: []byte("x")})
	s.Wake()
	kit.Until(t, "a person is seen", ended(4))
	if !cfg.Machine.HumanTyping("agents_core:reviewer.0") {
		t.Error("it is not remembered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Close(ctx)
	slices.Sort(f.finished)
	if want := []string{"trg_1 ", "trg_2 FALLBACK_FAILED", "trg_4 TARGET_NOT_FOUND", "trg_5 OPERATOR_BUSY"}; !slices.Equal(f.finished, want) {
		t.Errorf("finished %q, want %q", f.finished, want)
	}
}

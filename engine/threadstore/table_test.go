package threadstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestOutcomes has the rows of threads §5.4 behind triggering, for each code of an attempt.
func TestOutcomes(t *testing.T) {
	fixed := live
	fixed.Resumable = false
	none := DefaultTriggers
	none.NoFallback = true
	for _, c := range []struct {
		name     string
		triggers TriggerConfig
		session  Heartbeat // at the end of the attempt
		age      int64     // of it
		code     string
		attempts int // made with this code
		status   JobStatus
		want     string // code
	}{
		{"first", DefaultTriggers, live, 0, codeNotFound, 1, TimedOut, codeNotFound},
		{"second", DefaultTriggers, live, 0, codeSendKeys, 2, TimedOut, codeSendKeys},
		{"exhausted", DefaultTriggers, live, 0, codePaneDead, 3, FallbackResume, codePaneDead},
		{"exhausted, not resumable", DefaultTriggers, fixed, 0, codeNotFound, 3, FallbackSpawn, codeNotFound},
		{"exhausted without a fallback", none, live, 0, codeNotFound, 3, JobFailed, codeNoFallback},
		{"not a pane", DefaultTriggers, live, 0, "UNSUPPORTED_RUNTIME", 1, FallbackResume, "UNSUPPORTED_RUNTIME"},
		{"not allowed", DefaultTriggers, live, 0, "TARGET_NOT_ALLOWED", 1, FallbackResume, "TARGET_NOT_ALLOWED"},
		{"a shell, and stale", DefaultTriggers, live, 12*3600_000 + 1, "PANE_IS_SHELL", 1, FallbackSpawn, "PANE_IS_SHELL"},
		{"a shell without a fallback", none, live, 0, "PANE_IS_SHELL", 1, JobFailed, codeNoFallback},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Triggers: c.triggers})
			id := r.create()
			r.beat(alice, live)
			r.trigger(id, "r", "")
			for n := range c.attempts {
				a := r.claimOne()
				if a == nil || a.Attempt != Triggering {
					t.Fatalf("attempt %d: %+v", n, a)
				}
				if r.now++; n == c.attempts-1 {
					r.beat(alice, c.session)
					r.now += c.age
				}
				r.Finish(a.ID, c.code, r.now)
				r.now += retryMost
			}
			r.want(id, c.status, c.want, uint32(c.attempts))
		})
	}
}

// TestManyRetries: the time between attempts doubles up to a minute, however many there are.
func TestManyRetries(t *testing.T) {
	triggers := DefaultTriggers
	triggers.MaxRetries, triggers.PerMinute = 100, 0
	r := newRig(t, Config{Triggers: triggers})
	id := r.create()
	r.beat(alice, live)
	r.trigger(id, "r", "")
	for n, wait := 0, int64(retryBase); n < 100; n, wait = n+1, min(2*wait, retryMost) {
		r.Finish(r.claimOne().ID, codePaneDead, r.now)
		if j := r.job(id); j.NextAt != r.now+wait {
			t.Fatalf("attempt %d: the next one after %d ms, want %d", n+1, j.NextAt-r.now, wait)
		}
		r.now += wait
	}
	r.Finish(r.claimOne().ID, "", r.now)
	if len(r.jobs.recent) != 0 {
		t.Error("deliveries are remembered for a limit that is off")
	}
}

// TestClaims has the rows of threads §5.4 that are decided when a job is claimed.
func TestClaims(t *testing.T) {
	offline, unmanaged := live, live
	offline.Status, unmanaged.Managed = SessionOffline, false
	moved := *alice
	moved.Session = "s9"
	r := newRig(t, Config{})
	id := r.create()
	f := func(name string, a *Actor, h Heartbeat, status JobStatus, code string, attempts uint32) {
		t.Helper()
		r.beat(alice, live)
		r.trigger(id, name, "")
		r.beat(a, h)
		list, err := r.Claim(context.Background(), 10, 0, r.now)
		j := r.want(id, status, code, attempts)
		if err != nil || (status == Triggering) != (len(list) == 1) || j.TargetSession != a.Session {
			t.Errorf("%s: %v %v, session %s", name, list, err, j.TargetSession)
		}
		if len(list) == 1 {
			r.Finish(j.ID, "", r.now)
		}
	}
	f("another session", &moved, live, Triggering, "", 0)
	f("offline", alice, offline, TimedOut, codeOffline, 1)
	f("unmanaged", alice, unmanaged, FallbackResume, CodeUnmanaged, 0)
}

// TestInterruptedDelivery: a delivery whose process died, or whose lease is over, is made again.
func TestInterruptedDelivery(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.beat(alice, live)
	r.trigger(id, "r", "")
	first := r.claimOne()
	r.now += lease - 1
	if r.Sweep(r.now); r.claimOne() != nil {
		t.Error("claimed twice within a lease")
	}
	r.now++
	r.Sweep(r.now)
	r.want(id, Queued, codeInterrupted, 1)
	if again := r.claimOne(); again == nil || again.ID != first.ID {
		t.Fatal(again)
	}
	r.sync()
	r.crash(func(n int) int { return n })
	r.Sweep(r.now)
	r.want(id, Queued, codeInterrupted, 2)
	r.Finish(first.ID, "", r.now) // nothing is under way
	r.want(id, Queued, codeInterrupted, 2)
	r.Finish(r.claimOne().ID, "", r.now)
	r.want(id, Delivered, "", 3)
}

// TestResumeFailures: after three failures to resume a target within 15 minutes it is not tried.
func TestResumeFailures(t *testing.T) {
	triggers := DefaultTriggers
	triggers.LoopSame, triggers.MaxResumes = 100, 1
	r := newRig(t, Config{Triggers: triggers})
	id := r.create()
	offline := live
	offline.Status = SessionOffline
	attempt := func(want JobStatus, code string) {
		t.Helper()
		a := r.claimOne()
		if a == nil || a.Attempt != want {
			t.Fatalf("%+v, want %s", a, want)
		}
		r.Finish(a.ID, code, r.now)
	}
	r.beat(alice, offline)
	for range maxResumeFailures {
		r.trigger(id, "r", "")
		attempt(FallbackResume, "EXIT_1")
		attempt(FallbackSpawn, "")
		r.now++
	}
	r.trigger(id, "r", "")
	attempt(FallbackSpawn, "")
	r.now += resumeWindow
	r.trigger(id, "r", "")
	attempt(FallbackResume, "")
}

// TestOpenJobs has the bound of jobs at the limit and one more.
func TestOpenJobs(t *testing.T) {
	triggers := DefaultTriggers
	triggers.MaxJobs = 2
	r := newRig(t, Config{Triggers: triggers})
	id := r.create()
	f := func(key string, want Code) {
		t.Helper()
		if _, _, ref := r.trigger(id, "r", key); ref.Code != want {
			t.Errorf("%s: %+v, want %d", key, ref, want)
		}
	}
	f("1", OK)
	f("2", OK)
	f("3", TooMany)
	f("2", OK)
	list, err := r.Claim(context.Background(), 1, 1, r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.Finish(list[0].ID, "", r.now)
	f("3", OK)
	f("4", TooMany)
}

// TestLoopCounters has the counters of threads §5.5: what counts, over starts and snapshots too.
func TestLoopCounters(t *testing.T) {
	const failed, delivered, retried, interrupted = 'f', 'd', 'r', 'i'
	for _, c := range []struct {
		name, jobs string
		same       uint32
		reason     string // empty: the thread stays active
	}{
		{"two", "ff", 3, ""},
		{"three", "fff", 3, "repeated_identical_findings:3:FALLBACK_SPAWN_FAILED"},
		{"a success between", "ffdff", 3, ""},
		{"other codes", "ffiffi", 3, ""},
		{"retries and deferrals", "rr", 3, ""},
		{"stops of the server", strings.Repeat("i", 25), 3, ""},
		{"19", strings.Repeat("ffi", 9) + "f", 3, ""},
		{"20", strings.Repeat("ffi", 9) + "ff", 3, "no_progress_turns:20"},
		{"20 of one code", strings.Repeat("f", 20), 100, "no_progress_turns:20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			triggers := DefaultTriggers
			triggers.LoopSame = c.same
			r := newRig(t, Config{Triggers: triggers})
			id := r.create()
			for i, kind := range c.jobs {
				if v, _, _ := r.Get(boss, id); v.Status != Active {
					t.Fatalf("%s after %d jobs", v.Status, i)
				}
				if kind == retried {
					r.beat(alice, live)
				}
				r.trigger(id, fmt.Sprint(i), "")
				a := r.claimOne()
				switch kind {
				case failed:
					r.Finish(a.ID, "EXIT_1", r.now)
				case delivered:
					r.Finish(a.ID, "", r.now)
				case retried:
					r.Finish(a.ID, codePaneDead, r.now)
					r.now += retryBase
					r.Finish(r.claimOne().ID, codeBusy, r.now)
					offline := live
					offline.Resumable, offline.Managed = false, false
					r.beat(alice, offline)
					r.now += DefaultTriggers.Recheck
					if a := r.claimOne(); a != nil {
						t.Fatal(a)
					}
					r.Finish(r.claimOne().ID, "EXIT_1", r.now)
				case interrupted:
					r.sync()
					r.crash(func(n int) int { return n })
					r.Sweep(r.now)
				}
				if i%2 == 0 {
					r.restart()
				}
			}
			want, status := 0, Active
			if c.reason != "" {
				want, status = 1, Blocked
			}
			r.sync()
			page, _, _ := r.Read(boss, id, 0, 10, true, nil)
			message := `"kind":"system","body":"The thread was blocked: ` + c.reason + `","metadata":{"event_type":"thread_escalated","reason":"` + c.reason + `"}`
			if v, _, _ := r.Get(boss, id); v.Status != status || strings.Count(string(page), message) != want || (len(page) > 0) != (want > 0) {
				t.Errorf("%s with %s, want %s", v.Status, page, status)
			}
			audited := 0
			if _, _, err := r.Audit("w", 0, 500, string(id), func(ev *AuditEvent) bool {
				if ev.Operation == opAutoBlock && strings.Contains(string(ev.Payload), c.reason) {
					audited++
				}
				return true
			}); err != nil || audited != want {
				t.Errorf("%d audit events (%v)", audited, err)
			}
		})
	}
}

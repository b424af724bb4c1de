package threadstore

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func (r *rig) beat(a *Actor, h Heartbeat) {
	r.t.Helper()
	h.Runtime = []byte("tmux:agents_x:w.0")
	if _, ref := r.Heartbeat(a, &h, r.now); ref.Code != OK {
		r.t.Fatal(ref)
	}
	r.writeSessions()
}

var live = Heartbeat{Managed: true, Resumable: true, Status: SessionIdle}

func (r *rig) trigger(id []byte, reason, key string) (Job, Receipt, Refusal) {
	tr := &Trigger{Target: "alice", Reason: reason, Prompt: "go", Key: key}
	copy(tr.Digest[:], reason)
	return r.Trigger(boss, id, tr, r.now)
}

// claimOne claims the only job that is due, nil if none is.
func (r *rig) claimOne() *Attempt {
	r.t.Helper()
	list, err := r.Claim(context.Background(), 10, 10, r.now)
	if err != nil || len(list) > 1 {
		r.t.Fatal(list, err)
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// job returns the newest job of a thread.
func (r *rig) job(id []byte) Job {
	r.t.Helper()
	r.sync()
	list, ref := r.Jobs(boss, id, 1)
	if ref.Code != OK || len(list) != 1 {
		r.t.Fatal(list, ref)
	}
	return list[0]
}

func (r *rig) want(id []byte, status JobStatus, code string, attempts uint32) Job {
	r.t.Helper()
	j := r.job(id)
	if j.Status != status || j.Code != code || j.Attempts != attempts {
		r.t.Fatalf("job %s %q after %d attempts, want %s %q after %d", j.Status, j.Code, j.Attempts, status, code, attempts)
	}
	return j
}

// TestJobBegins has the rows of threads §4.9, "Decision at request time".
func TestJobBegins(t *testing.T) {
	offline, unmanaged, fixed := live, live, live
	offline.Status, unmanaged.Managed, fixed.Managed, fixed.Resumable = SessionOffline, false, false, false
	for _, c := range []struct {
		name     string
		session  *Heartbeat
		age      int64
		busy     bool
		reason   string
		status   JobStatus
		fallback string
	}{
		{"managed", &live, 0, false, "r", Queued, ""},
		{"busy", &live, 0, true, "r", Deferred, "resume_session"},
		{"forced", &live, 0, true, "human_override:now", Queued, ""},
		{"offline", &offline, 0, false, "r", FallbackResume, "resume_session"},
		{"unmanaged", &unmanaged, 0, false, "r", FallbackResume, "resume_session"},
		{"as old as may be", &live, 12 * 3600_000, false, "r", Queued, ""},
		{"stale", &live, 12*3600_000 + 1, false, "r", FallbackSpawn, "spawn_session"},
		{"not resumable", &fixed, 0, false, "r", FallbackSpawn, "spawn_session"},
		{"none", nil, 0, false, "r", FallbackSpawn, "spawn_session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{})
			id := r.create()
			if c.session != nil {
				r.beat(alice, *c.session)
			}
			r.now += c.age
			tr := &Trigger{Target: "alice", Reason: c.reason, Prompt: "go", Busy: func(string) bool { return c.busy }}
			j, _, ref := r.Trigger(boss, id, tr, r.now)
			if ref.Code != OK || j.Status != c.status || j.Status.Fallback(j.Runtime) != c.fallback {
				t.Errorf("%s, then %q (%+v); want %s, then %q", j.Status, j.Status.Fallback(j.Runtime), ref, c.status, c.fallback)
			}
		})
	}
}

// TestJobWithoutFallback has the refusals C13 to C15.
func TestJobWithoutFallback(t *testing.T) {
	triggers := DefaultTriggers
	triggers.NoFallback, triggers.MaxDefer = true, 0
	r := newRig(t, Config{Triggers: triggers})
	id := r.create()
	want := func(code Code) {
		t.Helper()
		_, _, ref := r.Trigger(boss, id, &Trigger{Target: "alice", Reason: "r", Prompt: "go", Busy: func(string) bool { return true }}, r.now)
		if ref.Code != code {
			t.Errorf("code %d, want %d", ref.Code, code)
		}
	}
	want(NoRuntime)
	h := live
	h.Managed = false
	r.beat(alice, h)
	want(Unmanaged)
	r.beat(alice, live)
	want(HumanBusy)
	if list, _ := r.Jobs(boss, id, 10); len(list) != 0 {
		t.Errorf("jobs %v", list)
	}
}

// TestJobDelivery follows the rows of threads §5.4 for a live runtime.
func TestJobDelivery(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.beat(alice, live)
	r.trigger(id, "r", "")
	a := r.claimOne()
	if a == nil || a.Attempt != Triggering || r.claimOne() != nil {
		t.Fatal("not claimed exactly once", a)
	}
	r.Finish(a.ID, codeBusy, r.now)
	r.want(id, Deferred, codeBusy, 0)
	if r.now += 4_999; r.claimOne() != nil {
		t.Fatal("claimed too early")
	}
	for wait := int64(2_000); wait <= 4_000; wait *= 2 {
		r.now += 1
		r.Finish(r.claimOne().ID, codePaneDead, r.now)
		r.want(id, TimedOut, codePaneDead, uint32(wait/2_000))
		if r.now += wait - 1; r.claimOne() != nil {
			t.Fatal("claimed too early")
		}
	}
	r.now++
	r.Finish(r.claimOne().ID, "", r.now)
	if j := r.want(id, Delivered, "", 3); !j.Final || j.DeliveredAt != r.now || j.AckedAt != 0 {
		t.Errorf("%+v", j)
	}
	r.now += 1000
	r.beat(alice, live)
	if j := r.want(id, Delivered, "", 3); j.AckedAt != r.now {
		t.Errorf("acknowledged at %d, want %d", j.AckedAt, r.now)
	}
}

// TestAckTimeout counts a delivery once when no sign of the target has come in time.
func TestAckTimeout(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.beat(alice, live)
	want := func(after int64, n uint64) {
		t.Helper()
		r.now += after
		r.Sweep(r.now)
		if got := r.Stats().Unacknowledged; got != n {
			t.Errorf("%d unacknowledged, want %d", got, n)
		}
	}
	r.trigger(id, "r", "")
	r.Finish(r.claimOne().ID, "", r.now)
	want(DefaultTriggers.AckTimeout-1, 0)
	want(1, 1)
	want(1, 1)
	r.beat(alice, live) // too late
	r.trigger(id, "another", "")
	r.Finish(r.claimOne().ID, "", r.now)
	r.now++
	r.beat(alice, live)
	want(DefaultTriggers.AckTimeout, 1)
}

// TestJobFallbacks follows a job from its last attempt on.
func TestJobFallbacks(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.beat(alice, live)
	r.trigger(id, "r", "")
	r.Finish(r.claimOne().ID, "PANE_IS_SHELL", r.now)
	r.want(id, FallbackResume, "PANE_IS_SHELL", 1)
	for range 2 {
		a := r.claimOne()
		if a.Attempt != FallbackResume {
			t.Fatal(a.Attempt)
		}
		r.Finish(a.ID, "EXIT_1", r.now)
	}
	r.want(id, FallbackSpawn, codeResumeFailed, 1)
	a := r.claimOne()
	if a.Attempt != FallbackSpawn {
		t.Fatal(a.Attempt)
	}
	r.Finish(a.ID, "EXIT_1", r.now)
	if j := r.want(id, JobFailed, codeSpawnFailed, 1); !j.Final || j.CompletedAt != r.now {
		t.Errorf("%+v", j)
	}
	r.now += 1000
	if r.trigger(id, "r", ""); r.claimOne().Attempt != Triggering {
		t.Error("a new job does not try the runtime")
	}
}

// TestJobDeferralEnds has the deadline of deferrals and its audit event.
func TestJobDeferralEnds(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.beat(alice, live)
	r.trigger(id, "r", "")
	for range 12 {
		r.Finish(r.claimOne().ID, codeBusy, r.now)
		r.want(id, Deferred, codeBusy, 0)
		r.now += 5_000
	}
	r.Finish(r.claimOne().ID, codeBusy, r.now)
	r.want(id, FallbackResume, CodeDeferTimeout, 0)
	found := 0
	_, _, err := r.Audit("w", 0, 100, string(id), func(ev *AuditEvent) bool {
		if ev.Operation == "supervisor.collision" {
			found++
		}
		return true
	})
	if found != 1 || err != nil {
		t.Error(found, err)
	}
}

// TestJobRate has the limit of deliveries at the limit and one more.
func TestJobRate(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.beat(alice, live)
	for range 10 {
		r.trigger(id, "r", "")
		r.Finish(r.claimOne().ID, "", r.now)
		r.now++
	}
	r.trigger(id, "r", "")
	if r.claimOne() != nil {
		t.Fatal("an eleventh delivery within a minute")
	}
	j := r.want(id, Deferred, CodeRateLimited, 0)
	if r.now = j.NextAt; r.claimOne() == nil {
		t.Error("not delivered when the oldest was a minute ago")
	}
}

// TestLoopProtection blocks a thread after three equal failures.
func TestLoopProtection(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	for i := range 3 {
		r.trigger(id, "r", "")
		if i == 2 {
			r.trigger(id, "another", "")
		}
		list, _ := r.Claim(context.Background(), 1, 1, r.now)
		r.Finish(list[0].ID, "EXIT_1", r.now)
	}
	v, _, _ := r.Get(boss, id)
	if v.Status != Blocked {
		t.Fatal("status", v.Status)
	}
	r.want(id, JobFailed, codeAutoBlocked, 0)
	if got := r.bodies(id); len(got) != 1 || r.Unread(r.now, func(Unread) {}) != 0 {
		t.Error(got)
	}
	before := r.Digest()
	r.crash(func(int) int { return 0 })
	if r.Digest() != before {
		t.Error("another state after a crash")
	}
}

// TestClosedUnderway: a job that ends with its thread while its command runs was not acknowledged
// by that.
func TestClosedUnderway(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.trigger(id, "r", "")
	a := r.claimOne()
	if a.Attempt != FallbackSpawn || r.Signalled(a.ID) {
		t.Fatal(a)
	}
	if _, _, ref := r.SetStatus(boss, id, &Change{To: Closed, Reason: "r"}, r.now); ref.Code != OK {
		t.Fatal(ref)
	}
	if r.Signalled(a.ID) {
		t.Error("acknowledged")
	}
	r.Finish(a.ID, "", r.now)
	if j := r.want(id, JobFailed, codeClosed, 0); j.Prompt != "" {
		t.Error("its prompt is kept")
	}
}

// TestJobModel runs jobs with crashes: no attempt is made twice at a time, no fallback command runs
// twice, and what is final stays so.
func TestJobModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Config{HotBytes: 1, segment: 900})
		id := r.create()
		running := map[string]*Attempt{} // attempts under way
		spawned := map[string]int{}
		final := map[string]string{}
		known := map[string]string{} // jobs by key
		var all []string
		codes := []string{"", codeBusy, codeNotFound, codePaneDead, "PANE_IS_SHELL"}
		rt.Repeat(map[string]func(*rapid.T){
			"beat": func(rt *rapid.T) {
				h := live
				h.Managed, h.Resumable = rapid.Bool().Draw(rt, "managed"), rapid.Bool().Draw(rt, "resumable")
				h.Status = SessionStatus(rapid.IntRange(0, 2).Draw(rt, "status"))
				r.beat(alice, h)
			},
			"trigger": func(rt *rapid.T) {
				key := rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(rt, "key")
				j, rec, ref := r.trigger(id, "r", key)
				if want, ok := known[key]; ref.Code != OK || rec.Replay != ok || ok && j.ID != want {
					rt.Fatalf("key %q names %s (%+v), want %s", key, j.ID, ref, want)
				}
				if all = append(all, j.ID); key != "" {
					known[key] = j.ID
				}
			},
			"claim": func(rt *rapid.T) {
				list, err := r.Claim(context.Background(), 2, 2, r.now)
				if err != nil {
					rt.Fatal(err)
				}
				for i := range list {
					a := &list[i]
					if running[a.ID] != nil {
						rt.Fatalf("%s is claimed twice", a.ID)
					}
					running[a.ID] = a
					if a.Attempt == FallbackSpawn {
						if spawned[a.ID]++; spawned[a.ID] > 1 {
							rt.Fatalf("%s is spawned twice", a.ID)
						}
					}
				}
			},
			"finish": func(rt *rapid.T) {
				for id, a := range running {
					code := rapid.SampledFrom(codes).Draw(rt, "code")
					if a.Attempt != Triggering && code != "" {
						code = "EXIT_1"
					}
					r.Finish(id, code, r.now)
					delete(running, id)
				}
			},
			"time":     func(rt *rapid.T) { r.now += int64(rapid.IntRange(1, 9_000).Draw(rt, "ms")) },
			"unblock":  func(rt *rapid.T) { r.SetStatus(boss, id, &Change{To: Active, Reason: "go on"}, r.now) },
			"snapshot": func(rt *rapid.T) { _ = r.st.Snapshot() },
			"crash": func(rt *rapid.T) {
				r.sync()
				before := r.Digest()
				r.crash(func(n int) int { return rapid.IntRange(0, n).Draw(rt, "rows") })
				if r.Digest() != before {
					rt.Fatal("another state")
				}
				r.Sweep(r.now)
				clear(running)
			},
			"": func(rt *rapid.T) {
				r.sync()
				list, ref := r.Jobs(boss, id, 1000)
				if ref.Code != OK {
					rt.Fatal(ref)
				}
				for _, j := range list {
					state := fmt.Sprint(j.Status, j.Code, j.Attempts, j.CompletedAt, j.DeliveredAt)
					if old, ok := final[j.ID]; ok && old != state {
						rt.Fatalf("%s was %s and is %s", j.ID, old, state)
					}
					if j.Final {
						final[j.ID] = state
					}
				}
				for _, id := range all {
					if !slices.ContainsFunc(list, func(j Job) bool { return j.ID == id }) {
						rt.Fatalf("%s is gone", id)
					}
				}
				for id := range final {
					if running[id] != nil && len(list) > 0 {
						delete(running, id) // ended by the protection of the thread
					}
				}
			},
		})
		_ = r.log.Close()
	})
}

package threadstore

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// later is a post for a time.
func later(body, key string, at int64) *Post {
	p := textPost(body, key)
	p.At = at
	return p
}

func (r *rig) deferPost(a *Actor, id []byte, p *Post) Posted {
	r.t.Helper()
	got, ref := r.Post(a, id, p, r.now)
	if ref.Code != OK || got.Deferred == "" || got.Seq != 0 || got.At != p.At {
		r.t.Fatalf("%+v %+v", got, ref)
	}
	return got
}

// schedule makes a schedule of a message.
func (r *rig) schedule(a *Actor, id []byte, p Plan) Timer {
	r.t.Helper()
	if p.Zone = "UTC"; p.Target == "" {
		p.Body = []byte("tick")
	}
	v, _, ref := r.CreateSchedule(a, id, &p, r.now)
	if ref.Code != OK {
		r.t.Fatalf("%+v", ref)
	}
	return v
}

// look moves the clock and fires what is due.
func (r *rig) look(ms int64) {
	r.t.Helper()
	r.now += ms
	r.fireTimers(r.now)
	r.sync()
}

// posted checks how many messages a thread has.
func (r *rig) posted(id []byte, want int) {
	r.t.Helper()
	if got := r.bodies(id); len(got) != want {
		r.t.Fatalf("messages %v, want %d", got, want)
	}
}

// timer returns a timer as its author's coordinator sees it, nil if it has ended.
func (r *rig) timer(id []byte, name string) *Timer {
	r.t.Helper()
	list, _, ref := r.Schedules(boss, id, r.now)
	if ref.Code != OK {
		r.t.Fatal(ref)
	}
	if i := slices.IndexFunc(list, func(v Timer) bool { return v.Moved.ID == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

func (r *rig) change(a *Actor, id string, c TimerChange) Code {
	r.t.Helper()
	_, ref := r.ChangeTimer(a, []byte(id), c, r.now)
	return ref.Code
}

var (
	cancels = TimerChange{Operation: "mcp.cancel_message", Reason: "r", Deferred: true, End: true}
	deletes = TimerChange{Operation: "mcp.delete_schedule", End: true}
	pauses  = TimerChange{Operation: "mcp.update_schedule", Paused: true}
	resumes = TimerChange{Operation: "mcp.update_schedule"}
)

// operations returns the audit log about timers.
func (r *rig) operations() (all []string) {
	r.t.Helper()
	r.sync()
	_, _, err := r.Audit("w", 0, 500, "", func(ev *AuditEvent) bool {
		if strings.HasPrefix(ev.Operation, "timer.") || strings.Contains(ev.Operation, "schedule") || strings.Contains(ev.Operation, "cancel") {
			_, reason, _ := strings.Cut(string(ev.Payload), `"reason":`)
			all = append(all, ev.Operation+" "+strings.TrimSuffix(reason, "}"))
		}
		return true
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestDeferredMessage: until its time a message is nowhere; then it is posted by its author.
func TestDeferredMessage(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	first := r.post(alice, id, "first", "")
	p := later("later", "k", r.now+1000)
	p.Kind, p.Metadata, p.InReplyTo = Event, []byte(`{"a":1}`), first.AppendID(nil)
	d := r.deferPost(alice, id, p)
	if !strings.HasPrefix(d.Deferred, deferredPrefix) || d.Status != Active {
		t.Errorf("%+v", d)
	}
	if again, ref := r.Post(alice, id, p, r.now+5); ref.Code != OK || !again.Replay || again.Deferred != d.Deferred || again.At != d.At {
		t.Errorf("the key again: %+v %+v", again, ref)
	}
	for _, other := range []*Post{later("other", "k", r.now+1000), textPost("now", "k")} {
		if _, ref := r.Post(alice, id, other, r.now); ref.Code != KeyReused {
			t.Errorf("the key for another payload: %+v", ref)
		}
	}
	r.post(bob, id, "second", "k") // of another agent
	r.look(999)
	r.posted(id, 2)
	if v, _, _ := r.Get(boss, id); v.Updated != r.now-999 {
		t.Error("the thread has changed")
	}
	r.look(1)
	page, _, _ := r.Read(boss, id, 2, 10, true, nil)
	for _, want := range []string{`"seq":3,"kind":"event","body":"later","metadata":{"a":1},"in_reply_to":"` + string(p.InReplyTo) + `"`, `"sender_agent_id":"alice","sender_session_id":"s1"`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%s lacks %s", page, want)
		}
	}
	if again, ref := r.Post(alice, id, p, r.now); ref.Code != OK || !again.Replay || again.Seq != 3 {
		t.Errorf("the key after the delivery: %+v %+v", again, ref)
	}
	if code := r.change(alice, d.Deferred, cancels); code != NoTimer {
		t.Errorf("cancelled after the delivery: %d", code)
	}
	if got := r.operations(); !slices.Equal(got, []string{`timer.fire ""`}) {
		t.Error(got)
	}
}

// TestDeferredAtOnce: a time that has passed posts at once.
func TestDeferredAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	for i, at := range []int64{r.now, r.now - 1, 1, -1} {
		if got, ref := r.Post(alice, id, later("x", "", at), r.now); ref.Code != OK || got.Deferred != "" || got.Seq != uint64(i+1) {
			t.Errorf("%d: %+v %+v", at-r.now, got, ref)
		}
	}
	if d := r.deferPost(alice, id, later("x", "", r.now+1)); d.Seq != 0 {
		t.Errorf("%+v", d)
	}
}

// TestDeferredRefusals: what refuses a post refuses a deferred one.
func TestDeferredRefusals(t *testing.T) {
	r := newRig(t, Config{PostsPerAgent: 1})
	id := r.create()
	want := func(a *Actor, p *Post, code Code) {
		t.Helper()
		if _, ref := r.Post(a, id, p, r.now); ref.Code != code {
			t.Errorf("%+v, want code %d", ref, code)
		}
	}
	at := r.now + 1000
	want(eve, later("x", "", at), OtherWorkspace)
	want(&Actor{Workspace: "w", Agent: "stranger"}, later("x", "", at), NotMember)
	p := later("x", "", at)
	p.InReplyTo = []byte("msg_01KHNQHEG0KH6YV2NM6PRZNGBK")
	want(alice, p, NoMessage)
	want(alice, later("x", "", at), OK)
	want(alice, later("x", "", at), RateLimited)
	r.full = func() bool { return true }
	want(bob, later("x", "", at), NotStored)
	r.full = nil
	r.SetStatus(boss, id, &Change{To: Closed, Reason: "r"}, r.now)
	want(bob, later("x", "", at), ThreadClosed)
	r.look(1000)
	r.posted(id, 0) // that of alice is dropped
	if got := r.operations(); !slices.Equal(got, []string{`timer.stop "thread_closed"`}) || r.timers.total != 0 {
		t.Error(got, r.timers.total)
	}
}

// TestCancel: the author and coordinators cancel, others do not, and not twice.
func TestCancel(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	d := r.deferPost(alice, id, later("x", "k", r.now+1000)).Deferred
	v := r.schedule(alice, id, Plan{Every: 1000}).Moved.ID
	for _, c := range []struct {
		a    *Actor
		id   string
		how  TimerChange
		code Code
	}{
		{bob, d, cancels, NotAuthor}, {eve, d, cancels, NoTimer}, {alice, v, cancels, NoTimer}, {alice, "dly_x", cancels, NoTimer}, {alice, d, deletes, NoTimer},
		{alice, d, cancels, OK}, {alice, d, cancels, NoTimer},
		{bob, v, pauses, NotAuthor}, {bob, v, deletes, NotAuthor}, {boss, v, deletes, OK}, {alice, v, pauses, NoTimer},
	} {
		if code := r.change(c.a, c.id, c.how); code != c.code {
			t.Errorf("%s by %s: code %d, want %d", c.id, c.a.Agent, code, c.code)
		}
	}
	d = r.deferPost(alice, id, later("x", "k", r.now+1000)).Deferred // its key is free again
	r.look(1000)
	r.posted(id, 1)
	want := []string{`mcp.create_schedule ""`, `mcp.cancel_message "r"`, `mcp.delete_schedule ""`, `timer.fire ""`}
	if got := r.operations(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	_ = d
}

// TestScheduleMoments: expressions and intervals, in time, late, and missed.
func TestScheduleMoments(t *testing.T) {
	const m = 60_000
	for _, c := range []struct {
		name string
		plan Plan
		step []int64 // in which the clock moves
		want []int   // messages after each
	}{
		{"interval", Plan{Every: m}, []int64{m - 1, 1, m - 1, 1}, []int{0, 1, 1, 2}},
		{"late interval", Plan{Every: 10 * m}, []int64{11 * m, 9*m - 1, 1}, []int{1, 1, 2}},
		{"missed interval", Plan{Every: 10 * m}, []int64{11*m + 1, 9*m - 2, 1}, []int{0, 0, 1}},
		{"missed interval, once", Plan{Every: 10 * m, Once: true}, []int64{11*m + 1, 10*m - 1, 1}, []int{1, 1, 2}},
		{"one of many", Plan{Every: 1000}, []int64{30_000, 999, 1}, []int{1, 1, 2}},
		{"a later one in time", Plan{Every: m}, []int64{100*m + 30_000, 29_999, 1}, []int{1, 1, 2}},
		{"cron", Plan{Cron: "*/10 * * * *"}, []int64{10*m - 1, 1, 10 * m}, []int{0, 1, 2}},
		{"late cron", Plan{Cron: "*/10 * * * *"}, []int64{11 * m, 9*m - 1, 1}, []int{1, 1, 2}},
		{"missed cron", Plan{Cron: "*/10 * * * *"}, []int64{11*m + 1, 9*m - 2, 1}, []int{0, 0, 1}},
		{"missed cron, once", Plan{Cron: "*/10 * * * *", Once: true}, []int64{55 * m, 5*m - 1, 1}, []int{1, 1, 2}},
		{"cron, a later one in time", Plan{Cron: "*/10 * * * *"}, []int64{50*m + 59_999, 9 * m, 1}, []int{1, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{})
			id := r.create()
			r.look(0)
			v := r.schedule(alice, id, c.plan)
			for i, step := range c.step {
				r.look(step)
				r.posted(id, c.want[i])
			}
			if got := r.timer(id, v.Moved.ID); got.NextAt <= r.now || got.Moved.Last == 0 || got.Moved.Last > r.now {
				t.Errorf("%+v at %d", got, r.now)
			}
		})
	}
}

// TestClockJumps: no moment of an expression counts twice, none is skipped for good by a clock that
// was ahead, and an interval does not wait for a clock that was set back.
func TestClockJumps(t *testing.T) {
	const hour = 3600_000
	r := newRig(t, Config{})
	id := r.create()
	r.look(0)
	r.schedule(alice, id, Plan{Cron: "0 * * * *"})
	d := later("d", "", r.now+2*hour+1)
	r.deferPost(alice, id, d)
	r.look(hour)
	r.posted(id, 1)
	r.look(-hour + 1) // the moment that follows was fired
	r.look(hour - 1)
	r.posted(id, 1)
	r.look(hour) // the next one
	r.posted(id, 2)
	r.look(100*hour + 120_000) // ahead: the deferred message, and misfires
	r.posted(id, 3)
	r.look(-100*hour - 120_000)
	r.posted(id, 3)
	r.look(hour) // a moment that the clock had skipped
	r.posted(id, 4)

	r = newRig(t, Config{})
	id = r.create()
	r.look(0)
	r.schedule(alice, id, Plan{Every: hour})
	r.look(hour)
	r.posted(id, 1)
	r.look(-1000 * hour)
	r.posted(id, 1)
	r.look(hour - 1)
	r.posted(id, 1)
	r.look(1)
	r.posted(id, 2)
	r.restart()
	r.look(hour)
	r.posted(id, 3)
}

// TestPause: what is missed while a schedule is paused is no misfire.
func TestPause(t *testing.T) {
	for _, plan := range []Plan{{Every: 1000, Once: true}, {Cron: "* * * * *", Once: true}} {
		r := newRig(t, Config{})
		id := r.create()
		v := r.schedule(alice, id, plan).Moved.ID
		if r.change(alice, v, pauses) != OK || r.change(alice, v, pauses) != OK {
			t.Fatal("it is not paused")
		}
		r.look(10 * 3600_000)
		r.posted(id, 0)
		if got := r.timer(id, v); !got.Moved.Paused || got.NextAt != 0 || got.Moved.Reason != "" {
			t.Errorf("%+v", got)
		}
		r.restart()
		r.change(boss, v, resumes)
		r.look(0)
		r.posted(id, 0)
		r.look(60_000)
		r.posted(id, 1)
	}
}

// TestScheduleStops: a schedule pauses itself where its thread is closed, or its creator is no
// participant any more.
func TestScheduleStops(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	a, b := r.schedule(alice, id, Plan{Every: 1000}).Moved.ID, r.schedule(boss, id, Plan{Every: 1000}).Moved.ID
	r.find(id).made.Participants = []string{"bob"}
	r.look(1000)
	r.posted(id, 1) // of a coordinator
	if got := r.timer(id, a); !got.Moved.Paused || got.Moved.Reason != "creator_not_participant" {
		t.Errorf("%+v", got)
	}
	r.SetStatus(boss, id, &Change{To: Closed, Reason: "r"}, r.now)
	r.look(1000)
	r.posted(id, 1)
	for range 2 {
		if got := r.timer(id, b); !got.Moved.Paused || got.Moved.Reason != "thread_closed" {
			t.Errorf("%+v", got)
		}
		r.restart()
	}
	r.find(id).made.Participants = []string{"alice"} // as replayed
	if _, _, ref := r.CreateSchedule(alice, id, &Plan{Every: 1000}, r.now); ref.Code != ThreadClosed {
		t.Error(ref)
	}
}

// TestScheduledTrigger: a schedule makes a job, and none where that is refused.
func TestScheduledTrigger(t *testing.T) {
	triggers := DefaultTriggers
	triggers.NoFallback = true
	r := newRig(t, Config{Triggers: triggers})
	id := r.create()
	v := r.schedule(boss, id, Plan{Every: 1000, Target: "alice", Reason: "r", Prompt: "go"}).Moved.ID
	r.look(1000)
	if list, _ := r.Jobs(boss, id, 10); len(list) != 0 {
		t.Errorf("jobs without a runtime: %v", list)
	}
	r.beat(alice, live)
	r.look(1000)
	r.store()
	if j := r.want(id, Queued, "", 0); j.Target != "alice" || j.Reason != "r" || j.Prompt != "go" {
		t.Errorf("%+v", j)
	}
	if got := r.timer(id, v); got.Moved.Last != r.now || got.NextAt != r.now+1000 {
		t.Errorf("%+v at %d", got, r.now)
	}
	if _, _, ref := r.CreateSchedule(boss, id, &Plan{Every: 1000, Target: "nobody"}, r.now); ref.Code != NoTarget {
		t.Error(ref)
	}
}

// TestScheduleKey: a repeated request finds its schedule, posts have keys of their own.
func TestScheduleKey(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	make := func(a *Actor, plan Plan) (Timer, Receipt, Code) {
		plan.Key, plan.Zone = "k", "UTC"
		v, rec, ref := r.CreateSchedule(a, id, &plan, r.now)
		return v, rec, ref.Code
	}
	r.post(alice, id, "x", "k")
	first, _, code := make(alice, Plan{Every: 1000})
	if code != OK {
		t.Fatal(code)
	}
	if r.look(1000); r.post(alice, id, "x", "k").Seq != 1 {
		t.Error("the key of the post is another one now")
	}
	for range 2 {
		if again, rec, code := make(alice, Plan{Every: 1000}); code != OK || !rec.Replay || again.Moved.ID != first.Moved.ID || rec.At != first.CreatedAt {
			t.Errorf("%+v %+v %d", again, rec, code)
		}
		if _, _, code := make(alice, Plan{Every: 1001}); code != KeyReused {
			t.Error(code)
		}
		r.restart()
	}
	if other, _, code := make(bob, Plan{Every: 1001}); code != OK || other.Moved.ID == first.Moved.ID {
		t.Error(other, code)
	}
}

// TestScheduleRefusals has what is wrong with an expression, and who may not.
func TestScheduleRefusals(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	for _, c := range []struct {
		a    *Actor
		plan Plan
		code Code
		text string
	}{
		{alice, Plan{Cron: "30 2 31 2 *", Zone: "UTC"}, BadCron, "cron does not fire within eight years"},
		{alice, Plan{Cron: "x", Zone: "UTC"}, BadCron, "cron is no expression"},
		{alice, Plan{Cron: "@daily", Zone: "Mars"}, BadCron, "time_zone is none"},
		{eve, Plan{Every: 1000}, OtherWorkspace, ""},
		{&Actor{Workspace: "w", Agent: "stranger"}, Plan{Every: 1000}, NotMember, ""},
	} {
		_, _, ref := r.CreateSchedule(c.a, id, &c.plan, r.now)
		if ref.Code != c.code || c.text != "" && !strings.HasPrefix(ref.Err.Error(), c.text) {
			t.Errorf("%+v: %+v", c.plan, ref)
		}
	}
	r.full = func() bool { return true }
	if _, _, ref := r.CreateSchedule(alice, id, &Plan{Every: 1000}, r.now); ref.Code != NotStored || len(r.timers.all) != 0 {
		t.Error(ref, r.timers.all)
	}
}

// TestKeyInSnapshot: a snapshot has the later one of two messages with a key, and the replay meets
// the earlier one.
func TestKeyInSnapshot(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	p := later("x", "k", r.now+1000)
	var d Posted
	r.rows.during = func() {
		r.rows.during = nil
		r.change(alice, r.deferPost(alice, id, p).Deferred, cancels)
		d = r.deferPost(alice, id, p)
	}
	r.restart()
	if again, ref := r.Post(alice, id, p, r.now); ref.Code != OK || again.Deferred != d.Deferred || !again.Replay || r.timers.total != 1 {
		t.Errorf("%+v %+v, want %s", again, ref, d.Deferred)
	}
	r.look(1000)
	r.posted(id, 1)
	if r.timers.keyed.Load() != 0 || r.timers.total != 0 {
		t.Errorf("%d keys, weight %d", r.timers.keyed.Load(), r.timers.total)
	}
}

// TestTimerOfALaterThread: a snapshot may have a timer whose thread is made after it begins.
func TestTimerOfALaterThread(t *testing.T) {
	r := newRig(t, Config{})
	s := timerState{Moved: timerMoved{ID: "sch_x"}, Thread: 7}
	rec, _ := s.MarshalMsg([]byte{snapTimer})
	if err := (&replay{e: r.Engine, threads: map[uint64]*thread{}}).Load(rec); err != nil || len(r.timers.all) != 0 {
		t.Error(err, len(r.timers.all))
	}
}

// TestBlockOfAFiring: the message is not durable before the state of its timer is.
func TestBlockOfAFiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		id := r.create()
		r.schedule(alice, id, Plan{Every: 1000})
		r.sync()
		th := r.find(id)
		th.mu.Lock()
		r.timers.mu.Lock()
		for _, tm := range r.timers.all {
			r.settle(alice, tm, tm.Moved, "timer.fire", "", r.now, func() bool {
				before := r.safe()
				r.firePost(alice, tm, r.now)
				r.st.Log().Flush()
				synctest.Wait()
				if r.safe() != before {
					t.Error("it is durable alone")
				}
				return true
			})
		}
		r.timers.mu.Unlock()
		th.mu.Unlock()
		r.sync()
		r.posted(id, 1)
		_ = r.log.Close()
	})
}

// TestFullDisk: what is due while nothing can be stored fires afterwards.
func TestFullDisk(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.deferPost(alice, id, later("x", "", r.now+1000))
	v := r.schedule(alice, id, Plan{Every: 2000}).Moved.ID
	r.full = func() bool { return true }
	if r.now += 5000; r.fireTimers(r.now) != storeAgain || r.change(alice, v, deletes) != NotStored {
		t.Error("a full disk takes a firing")
	}
	r.full = nil
	r.look(0)
	r.posted(id, 2)
}

// TestQuotaOfSchedules: the messages of schedules count as posts.
func TestQuotaOfSchedules(t *testing.T) {
	r := newRig(t, Config{PostsPerAgent: 2})
	id := r.create()
	r.schedule(alice, id, Plan{Every: 1000})
	for range 10 {
		r.look(1000)
	}
	r.posted(id, 2)
	r.look(30_000)
	r.posted(id, 3)
}

// TestTimerBounds has the bounds of timers: all, those of an agent, and their texts, each at its
// limit and beyond.
func TestTimerBounds(t *testing.T) {
	r := newRig(t, Config{MaxTimers: 40})
	id := r.create()
	try := func(a *Actor, size int) Code {
		_, ref := r.Post(a, id, later(strings.Repeat("x", size), "", r.now+1000), r.now)
		return ref.Code
	}
	for i := range 40 {
		a := *boss
		a.Agent = fmt.Sprint("a", i/4)
		if code := try(&a, 1); code != OK {
			t.Fatal(i, code)
		}
		if i%4 == 3 && i < 39 {
			if code := try(&a, 1); code != TooMany {
				t.Fatalf("%s has one more than a tenth: %d", a.Agent, code)
			}
		}
	}
	if code := try(alice, 1); code != TooMany {
		t.Errorf("one more than all: %d", code)
	}
	if _, _, ref := r.CreateSchedule(alice, id, &Plan{Every: 1000}, r.now); ref.Code != TooMany {
		t.Error(ref)
	}
	r.restart()
	if code := try(alice, 1); code != TooMany {
		t.Errorf("one more than all after a start: %d", code)
	}
	r.look(1000)
	r.posted(id, 40)
	if r.timers.total != 0 || len(r.timers.used) != 0 || len(r.timers.keys) != 0 || len(r.timers.queue) != 0 {
		t.Errorf("%+v is left", &r.timers)
	}
	for _, c := range []struct {
		size int
		code Code
	}{{4 * timerText, TooMany}, {4*timerText - 1, OK}, {1, TooMany}} {
		if code := try(alice, c.size); code != c.code {
			t.Errorf("%d bytes: %d, want %d", c.size, code, c.code)
		}
	}
	few := newRig(t, Config{MaxTimers: 1}) // an agent may have one at least
	few.deferPost(alice, few.create(), later("x", "", few.now+1))
}

// TestTimersThatDrop: erasure ends the timers of a thread, or of an agent.
func TestTimersThatDrop(t *testing.T) {
	r := newRig(t, Config{})
	one, two := r.create(), r.create()
	for _, id := range [][]byte{one, two} {
		r.deferPost(alice, id, later("secret", "k", r.now+1000))
		r.schedule(alice, id, Plan{Every: 1000})
		r.schedule(bob, id, Plan{Every: 1000})
	}
	r.dropSchedules(&erasure{Workspace: "w", Thread: r.find(one).made.Number})
	if len(r.timers.all) != 3 {
		t.Error(len(r.timers.all), "timers")
	}
	r.dropSchedules(&erasure{Workspace: "w", Agent: "alice"})
	r.dropSchedules(&erasure{Workspace: "other", Agent: "bob"})
	r.sync()
	before := r.Digest()
	if r.restart(); r.Digest() != before || len(r.timers.all) != 1 {
		t.Error(len(r.timers.all), "timers")
	}
	r.look(1000)
	r.posted(one, 0)
	r.posted(two, 1)
}

// TestListOfSchedules: a participant sees all schedules, and of the messages that wait its own.
func TestListOfSchedules(t *testing.T) {
	r := newRig(t, Config{})
	id, other := r.create(), r.create()
	r.deferPost(alice, id, later("a", "", r.now+1000))
	r.deferPost(bob, id, later("b", "", r.now+1000))
	r.schedule(bob, id, Plan{Every: 1000})
	r.schedule(bob, other, Plan{Every: 1000})
	auditor := &Actor{Workspace: "w", Agent: "auditor", Rank: Auditor}
	for a, want := range map[*Actor]int{alice: 2, bob: 2, boss: 3, auditor: 1} {
		list, index, ref := r.Schedules(a, id, r.now)
		if ref.Code != OK || len(list) != want || index == 0 || !slices.IsSortedFunc(list, func(a, b Timer) int { return strings.Compare(a.Moved.ID, b.Moved.ID) }) {
			t.Errorf("%s: %d timers, want %d (%+v)", a.Agent, len(list), want, ref)
		}
	}
	for a, code := range map[*Actor]Code{eve: OtherWorkspace, {Workspace: "w", Agent: "stranger"}: NotMember} {
		if _, _, ref := r.Schedules(a, id, r.now); ref.Code != code {
			t.Error(a.Agent, ref)
		}
	}
}

// TestKeepTimers: the goroutine of Start fires in time, and sleeps else.
func TestKeepTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		r := newRig(t, Config{Now: func() int64 { looks.Add(1); return time.Now().UnixMilli() }})
		r.now = time.Now().UnixMilli()
		id := r.create()
		r.stopped.Go(r.keepTimers)
		synctest.Wait()
		r.deferPost(alice, id, later("b", "", r.now+1500))
		r.deferPost(alice, id, later("a", "", r.now+500))
		synctest.Wait()
		for _, c := range []struct {
			ms   time.Duration
			want int
		}{{499, 0}, {1, 1}, {999, 1}, {1, 2}} {
			time.Sleep(c.ms * time.Millisecond)
			synctest.Wait()
			r.sync()
			r.posted(id, c.want)
		}
		looks.Store(0)
		time.Sleep(time.Hour)
		if synctest.Wait(); looks.Load() > 3600_000/lookEvery {
			t.Errorf("%d looks in an idle hour", looks.Load())
		}
		r.Close()
		_ = r.log.Close()
	})
}

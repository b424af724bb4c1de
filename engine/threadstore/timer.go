package threadstore

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/threadstore/cadence"
)

const (
	deferredPrefix = "dly_"
	schedulePrefix = "sch_"

	timerShare = 10      // one agent may have a tenth of Config.MaxTimers
	timerText  = 8 << 10 // so many bytes of text, which is in memory, count as one more timer
)

// timer is a schedule or a deferred message.
type timer struct {
	timerState
	thread *thread
	cron   cadence.Schedule // zero: none, or its zone is not known here
	due    int64            // the next moment
}

// timers are the schedules and deferred messages that have not ended.
type timers struct {
	mu     sync.Mutex // taken after that of a thread, and before that of jobs
	all    map[string]*timer
	keys   map[keyHash]*timer // by idempotency key
	keyed  atomic.Int64       // entries of keys
	used   map[agentKey]int   // weight, by the author
	total  int
	lastID rawID         // of one that was made by this process
	queue  []*timer      // those that wait, by compareTimers
	looked int64         // wall clock at the last look; 0: there was none
	last   journal.Index // of the last record
	zones  cadence.Zones
	wake   chan struct{} // has one element when the queue has changed
}

// Deferred reports whether s is a deferred message.
func (s *timerState) Deferred() bool { return s.Plan.Cron == "" && s.Plan.Every == 0 }

// weight is how many timers s counts as.
func (s *timerState) weight() int {
	return 1 + (len(s.Plan.Body)+len(s.Plan.Metadata)+len(s.Plan.Prompt))/timerText
}

func (tm *timer) author() agentKey { return agentKey{tm.thread.made.Workspace, tm.Agent} }

// key names the idempotency key of a timer. Deferred messages share those of posts; schedules have
// a byte in front that no key has.
func (s *timerState) key() keyHash {
	if s.Deferred() {
		return hashKey(s.Thread, s.Agent, []byte(s.Plan.Key))
	}
	return hashKey(s.Thread, s.Agent, []byte("\x00"+s.Plan.Key))
}

// put takes a timer into the tables, with sign -1 out of them. Caller holds mu.
func (ts *timers) put(tm *timer, sign int) {
	ts.total += sign * tm.weight()
	if ts.used[tm.author()] += sign * tm.weight(); ts.used[tm.author()] == 0 {
		delete(ts.used, tm.author())
	}
	key, known := tm.key(), ts.keys[tm.key()]
	if ts.all[tm.Moved.ID] = tm; sign < 0 {
		delete(ts.all, tm.Moved.ID)
	}
	if known == tm {
		delete(ts.keys, key)
	} else if tm.Plan.Key != "" && (known == nil || known.Index < tm.Index) && sign > 0 {
		ts.keys[key] = tm // a replay may meet earlier ones after it
	}
	ts.keyed.Store(int64(len(ts.keys)))
	ts.last = max(ts.last, tm.Index)
}

// set takes over a state that was recorded. Caller holds mu.
func (ts *timers) set(tm *timer, m timerMoved, index journal.Index) {
	if tm.Moved, tm.Index, ts.last = m, index, max(ts.last, index); m.Ended {
		ts.put(tm, -1)
	}
}

func (ts *timers) list() (all []timerState) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, tm := range ts.all {
		all = append(all, tm.timerState)
	}
	return all
}

// timer puts back a timer, unless a later state of it is there.
func (r *replay) timer(s *timerState, index journal.Index) error {
	t, err := r.find(s.Thread)
	if err != nil {
		return err
	}
	ts, tm := &r.e.timers, &timer{timerState: *s, thread: t}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if tm.Index = index; ts.all[s.Moved.ID] == nil {
		tm.cron, _ = ts.zones.Parse(s.Plan.Cron, s.Plan.Zone)
		ts.put(tm, 1)
	}
	return nil
}

// moved puts back a state of a timer. One that is missing ended while the snapshot was written.
func (ts *timers) moved(m *timerMoved, index journal.Index) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if tm := ts.all[m.ID]; tm != nil && index > tm.Index {
		ts.set(tm, *m, index)
	}
}

func compareTimers(a, b *timer) int {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Moved.ID, b.Moved.ID))
}

// arm has a timer wait for a moment, if it is to wait. Caller holds mu.
func (ts *timers) arm(tm *timer, due int64) {
	if i, found := slices.BinarySearchFunc(ts.queue, tm, compareTimers); found {
		ts.queue = slices.Delete(ts.queue, i, i+1)
	}
	if tm.due = due; due > 0 && !tm.Moved.Paused && !tm.Moved.Ended {
		i, _ := slices.BinarySearchFunc(ts.queue, tm, compareTimers)
		ts.queue = slices.Insert(ts.queue, i, tm)
	}
	select {
	case ts.wake <- struct{}{}:
	default:
	}
}

// next returns the first moment after a time that counts, 0 for none. A moment of an expression
// counts once, also where the clock is set back. An interval has no such moments: it starts over.
func (tm *timer) next(after, now int64) int64 {
	at, every := tm.Moved.At, tm.Plan.Every
	switch {
	case tm.Deferred():
		return at
	case every == 0:
		return tm.cron.Next(max(after, at))
	case at > now:
		return now + every
	}
	return at + max(0, after-at)/every*every + every
}

// makeTimer records a new timer of an actor. Caller holds t.mu and timers.mu.
func (e *Engine) makeTimer(a *Actor, t *thread, tm *timer, prefix string, now int64) Refusal {
	ts := &e.timers
	ts.lastID = e.ids.next(&ts.lastID, now) // they are in order
	tm.Moved.ID = string(appendID(nil, prefix, &ts.lastID))
	tm.thread, tm.Thread, tm.CreatedAt = t, t.made.Number, now
	tm.Agent, tm.Session, tm.Role, tm.Rank = a.Agent, a.Session, a.Role, uint8(a.Rank)
	tm.Plan.Body, tm.Plan.Metadata = slices.Clone(tm.Plan.Body), slices.Clone(tm.Plan.Metadata) // they are borrowed
	switch n := tm.weight(); {
	case ts.total+n > e.cfg.MaxTimers, ts.used[tm.author()]+n > max(1, e.cfg.MaxTimers/timerShare):
		return Refusal{Code: TooMany}
	case e.refuses():
		return Refusal{Code: NotStored}
	}
	tm.Index = e.record(opTimer, &tm.timerState)
	ts.put(tm, 1)
	ts.arm(tm, tm.next(0, now))
	return Refusal{}
}

// settle records a state of a timer and an event about it, in one block of the journal with what
// effect records. Caller holds timers.mu and what effect needs: those that Begin waits for do not.
func (e *Engine) settle(a *Actor, tm *timer, m timerMoved, operation, reason string, now int64, effect func() bool) {
	e.store.Begin()
	defer e.store.End()
	if effect != nil && !effect() {
		return
	}
	m.ID = tm.Moved.ID
	e.timers.set(tm, m, e.record(opMoved, &m))
	e.timers.arm(tm, tm.next(now, now))
	ev := a.audit(operation, tm.thread.made.ID, now)
	ev.Payload = jsonx.Build(nil).Text("id", tm.Moved.ID).Text("reason", reason).End()
	e.timers.last = e.recordAudited(opAudit, &ev, &ev)
}

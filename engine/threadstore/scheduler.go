package threadstore

import (
	"cmp"
	"slices"
	"time"
)

// How timers fire, in milliseconds.
const (
	misfireAfter = 60_000 // a moment of a schedule that is older was missed
	lookEvery    = 30_000 // the longest time between two looks at the queue, for a clock that jumps
	storeAgain   = 1000   // the time to the next look where changes are refused
)

// keepTimers is the goroutine of Start that fires timers.
func (e *Engine) keepTimers() {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-e.timers.wake:
		case <-wait.C:
		}
		wait.Reset(time.Duration(e.fireTimers(e.cfg.Now())) * time.Millisecond)
	}
}

// fireTimers fires what is due, and returns the time until the next look.
func (e *Engine) fireTimers(now int64) int64 {
	for {
		tm, wait := e.timers.first(now)
		if tm == nil || e.refuses() {
			return cmp.Or(wait, storeAgain)
		}
		e.fire(tm, now)
	}
}

// first returns a timer that is due, or else the time until the next look.
func (ts *timers) first(now int64) (tm *timer, wait int64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if now < ts.looked || ts.looked == 0 { // set back: what the clock skipped counts again
		ts.queue = ts.queue[:0]
		for _, tm := range ts.all {
			if tm.due = tm.next(0, now); tm.due > 0 && !tm.Moved.Paused {
				ts.queue = append(ts.queue, tm)
			}
		}
		slices.SortFunc(ts.queue, compareTimers)
	}
	if ts.looked = now; len(ts.queue) == 0 {
		return nil, lookEvery
	}
	if wait = ts.queue[0].due - now; wait <= 0 {
		return ts.queue[0], 0
	}
	return nil, min(wait, lookEvery)
}

// fire does what a timer is for, unless it is not due any more. The effect and the state of the
// timer are one block of the journal: a crash keeps both or none.
func (e *Engine) fire(tm *timer, now int64) {
	t, ts, p := tm.thread, &e.timers, &tm.Plan
	t.mu.Lock()
	defer t.mu.Unlock()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	m, at, missed := tm.Moved, tm.due, false
	if at > now || m.Paused || m.Ended {
		return // it was changed meanwhile
	}
	if !tm.Deferred() && now-at > misfireAfter { // a later moment that is not too old takes its place
		if at = tm.next(now-misfireAfter-1, now); at == 0 || at > now {
			at, missed = now, true
		}
	}
	a := &Actor{Workspace: t.made.Workspace, Agent: tm.Agent, Session: tm.Session, Role: tm.Role, Rank: Rank(tm.Rank)}
	m.Ended = tm.Deferred()
	switch full := t.status == Closed || t.latest >= maxSeq; {
	case full || a.Rank != Coordinator && !t.member(a.Agent): // a deferred message is dropped
		if m.Paused, m.Reason = true, "creator_not_participant"; full {
			m.Reason = "thread_closed"
		}
		e.settle(a, tm, m, "timer.stop", m.Reason, now, nil)
	case missed && !p.Once, !m.Ended && p.Target == "" && e.quotas.take(e.rates.Load(), t, a, now) > 0:
		ts.arm(tm, tm.next(now, now)) // without a record: another leader decides the same
	case p.Target != "":
		m.At, m.Last = at, at
		tr := &Trigger{Target: p.Target, Reason: p.Reason, Prompt: p.Prompt}
		_, _, ref := e.trigger(a, t, tr, now, func(job string, save func() bool) {
			e.settle(a, tm, m, "timer.fire", job, now, save)
		})
		if ref.Code != OK && ref.Code != NotStored {
			ts.arm(tm, tm.next(now, now))
		}
	default:
		m.At, m.Last = at, at
		e.settle(a, tm, m, "timer.fire", "", now, func() bool { return e.firePost(a, tm, now) })
	}
}

// firePost posts the message of a timer. Caller holds t.mu and timers.mu.
func (e *Engine) firePost(a *Actor, tm *timer, now int64) bool {
	p, hash := &Post{Kind: Kind(tm.Plan.Kind), Body: tm.Plan.Body, Metadata: tm.Plan.Metadata}, tm.key()
	if tm.Deferred() {
		p.Key, p.Digest = []byte(tm.Plan.Key), [digestSize]byte(tm.Plan.Digest)
	}
	var reply *rawID
	if id, ok := parseID([]byte(tm.Plan.InReplyTo), messagePrefix); ok {
		reply = &id
	}
	var out Posted
	e.appendTo(tm.thread, a, p, reply, &hash, now, &out)
	return true
}

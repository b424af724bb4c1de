package threadstore

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"trunkline/engine/journal"
)

// deferPost keeps a message until it is due (threads §4.12). Caller holds t.mu.
func (e *Engine) deferPost(t *thread, a *Actor, p *Post, now int64) (Posted, Refusal) {
	e.timers.mu.Lock()
	defer e.timers.mu.Unlock()
	tm := &timer{timerState: timerState{Moved: timerMoved{At: p.At}, Plan: Plan{Kind: uint8(p.Kind), Body: p.Body,
		Metadata: p.Metadata, InReplyTo: string(p.InReplyTo), Key: string(p.Key), Digest: slices.Clone(p.Digest[:])}}}
	ref := e.makeTimer(a, t, tm, deferredPrefix, now)
	e.heard(a.Workspace, a.Agent, now)
	return Posted{Status: t.status, Deferred: tm.Moved.ID, Receipt: Receipt{Index: tm.Index, At: p.At}}, ref
}

// knownDeferred is known for a message that waits. Caller holds t.mu.
func (e *Engine) knownDeferred(t *thread, a *Actor, p *Post, hash *keyHash, out *Posted, same *bool) (known bool) {
	e.timers.mu.Lock()
	defer e.timers.mu.Unlock()
	tm := e.timers.keys[*hash]
	if tm == nil || tm.Agent != a.Agent || tm.Plan.Key != string(p.Key) {
		return false
	}
	*out = Posted{Status: t.status, Deferred: tm.Moved.ID, Receipt: Receipt{max(t.index, tm.Index), tm.Moved.At, true}}
	*same = string(tm.Plan.Digest) == string(p.Digest[:])
	return true
}

// Timer is a schedule or a deferred message as it is shown. NextAt is 0 where it is paused.
type Timer struct {
	timerState
	NextAt int64
}

func (tm *timer) view(now int64) (v Timer) {
	if v.timerState = tm.timerState; !v.Moved.Paused {
		v.NextAt = tm.next(now, now)
	}
	return v
}

// CreateSchedule makes a schedule, or finds the one that an earlier request with the same key made
// (threads §4.12). The slices of p are borrowed.
func (e *Engine) CreateSchedule(a *Actor, id []byte, p *Plan, now int64) (v Timer, r Receipt, ref Refusal) {
	tm := &timer{timerState: timerState{Moved: timerMoved{At: now}, Plan: *p}}
	text, _ := p.MarshalMsg(nil) // it does not fail
	digest := sha256.Sum256(text)
	if tm.Plan.Digest = digest[:]; p.Cron != "" {
		var err error
		if tm.cron, err = e.timers.zones.Parse(p.Cron, p.Zone); err == nil && tm.next(0, now) == 0 {
			err = errors.New("cron does not fire within eight years")
		}
		if err != nil {
			return v, r, Refusal{Code: BadCron, Err: err}
		}
	}
	t, code := e.open(a, id, a.Rank != Coordinator)
	if code != OK {
		return v, r, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	ts := &e.timers
	ts.mu.Lock()
	defer ts.mu.Unlock()
	tm.Thread, tm.Agent = t.made.Number, a.Agent
	switch known := ts.keys[tm.key()]; {
	case p.Key != "" && known != nil && string(known.Plan.Digest) != string(digest[:]):
		return v, r, Refusal{Code: KeyReused, Index: ts.last}
	case p.Key != "" && known != nil:
		return known.view(now), Receipt{Index: ts.last, At: known.CreatedAt, Replay: true}, ref
	case t.status == Closed:
		return v, r, Refusal{Code: ThreadClosed, Status: t.status, Index: t.index}
	case p.Target != "" && !t.member(p.Target):
		return v, r, Refusal{Code: NoTarget}
	}
	e.settle(a, tm, tm.Moved, "mcp.create_schedule", "", now, func() bool {
		ref = e.makeTimer(a, t, tm, schedulePrefix, now)
		return ref.Code == OK
	})
	return tm.view(now), Receipt{Index: ts.last, At: now}, ref
}

// TimerChange ends a timer, or pauses a schedule or has it go on after now.
type TimerChange struct {
	Operation, Reason     string // for the audit
	Deferred, End, Paused bool   // Deferred: it is for a deferred message
}

// ChangeTimer changes a timer of the actor, or of any agent as a coordinator.
func (e *Engine) ChangeTimer(a *Actor, id []byte, c TimerChange, now int64) (r Receipt, _ Refusal) {
	ts := &e.timers
	ts.mu.Lock()
	defer ts.mu.Unlock()
	tm := ts.all[string(id)]
	switch {
	case tm == nil || tm.Deferred() != c.Deferred || tm.thread.made.Workspace != a.Workspace:
		return r, Refusal{Code: NoTimer, Index: ts.last}
	case a.Rank != Coordinator && tm.Agent != a.Agent:
		return r, Refusal{Code: NotAuthor}
	case e.refuses():
		return r, Refusal{Code: NotStored}
	}
	m := tm.Moved
	if m.Paused && !c.Paused {
		m.At = now // also for a clock that was set back
	}
	m.Ended, m.Paused, m.Reason = c.End, c.Paused, ""
	e.settle(a, tm, m, c.Operation, c.Reason, now, nil)
	return Receipt{Index: ts.last}, Refusal{}
}

// Schedules returns the schedules of a thread and those of its deferred messages that the actor may
// cancel, by their identifiers, and the index that has to be durable before they are shown.
func (e *Engine) Schedules(a *Actor, id []byte, now int64) (list []Timer, index journal.Index, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return nil, 0, Refusal{Code: code}
	}
	t.mu.Unlock()
	e.timers.mu.Lock()
	defer e.timers.mu.Unlock()
	for _, tm := range e.timers.all {
		if tm.thread == t && (!tm.Deferred() || a.Rank == Coordinator || tm.Agent == a.Agent) {
			list = append(list, tm.view(now))
		}
	}
	slices.SortFunc(list, func(a, b Timer) int { return strings.Compare(a.Moved.ID, b.Moved.ID) })
	return list, e.timers.last, Refusal{}
}

// dropSchedules ends the timers of what is erased. Caller has not begun a block.
func (e *Engine) dropSchedules(er *erasure) {
	t, agent := e.numbered(er.Thread), agentKey{er.Workspace, er.Agent}
	e.timers.mu.Lock()
	defer e.timers.mu.Unlock()
	for _, tm := range e.timers.all {
		if tm.thread == t || tm.author() == agent {
			a := &Actor{Workspace: tm.author().workspace, Agent: SupervisorSender}
			e.settle(a, tm, timerMoved{Ended: true}, "timer.erase", "", e.cfg.Now(), nil)
		}
	}
}

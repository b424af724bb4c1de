package threadstore

import (
	"context"
	"slices"
	"strings"

	"trunkline/engine/journal"
)

// Attempt is a job that is to be worked off now.
type Attempt struct {
	Job
	// Attempt is the kind: Triggering, FallbackResume or FallbackSpawn.
	Attempt JobStatus
	// Forced is set where a person at the runtime is no reason to wait.
	Forced bool
}

// Claim takes the jobs that are due, at most limit and at most runs of fallback commands among
// them, and returns them once their claims are durable: no other claim takes them, and a restart
// knows that they were begun.
func (e *Engine) Claim(ctx context.Context, limit, runs int, now int64) ([]Attempt, error) {
	var list []Attempt
	for _, j := range e.due(now) {
		if len(list) == limit {
			break
		}
		a, ok := e.claim(j, runs > 0, now)
		if !ok {
			continue
		}
		if list = append(list, a); a.Attempt != Triggering {
			runs--
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, e.store.Barrier(ctx)
}

// due returns the jobs that are due, oldest first.
func (e *Engine) due(now int64) []*job {
	js := &e.jobs
	js.mu.Lock()
	defer js.mu.Unlock()
	longest := max(retryMost, deliveryWindow, e.cfg.Triggers.Recheck) // else the clock was set back
	var list []*job
	for _, j := range js.open {
		if j.lease == 0 && !j.Started && (j.NextAt <= now || j.NextAt-now > longest) && JobStatus(j.Status) != Triggering {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *job) int { return int(a.Number) - int(b.Number) })
	return list
}

// claim begins an attempt, or decides the job where none is to be made.
func (e *Engine) claim(j *job, mayRun bool, now int64) (a Attempt, ok bool) {
	t, js := j.thread, &e.jobs
	t.mu.Lock()
	defer t.mu.Unlock()
	js.mu.Lock()
	defer js.mu.Unlock()
	if j.Final || j.lease != 0 || e.refuses() {
		return a, false
	}
	defer e.protect(t, now)
	if t.status == Closed {
		e.fail(j, codeClosed, now)
		return a, false
	}
	sess := e.Session(j.Workspace, j.Target)
	status := JobStatus(j.Status)
	switch {
	case status != FallbackResume && status != FallbackSpawn:
		return e.claimRuntime(j, sess, now)
	case !mayRun:
		return a, false
	}
	if e.cfg.Triggers.NoFallback {
		e.fail(j, codeNoFallback, now)
		return a, false
	}
	if status == FallbackResume && !e.canResume(j, sess, now) {
		status = FallbackSpawn
	}
	j.Status, j.Started, j.lease = uint8(status), true, now
	if sess != nil {
		j.TargetSession = sess.Session
	}
	if status == FallbackResume {
		j.Resumes++
	}
	e.saveJob(j, now)
	e.await(j)
	return Attempt{Job: e.showJob(&j.jobState, sess), Attempt: status, Forced: overrides(j.Reason)}, true
}

// claimRuntime is claim for a delivery to a live runtime.
func (e *Engine) claimRuntime(j *job, sess *SessionView, now int64) (a Attempt, ok bool) {
	js, key := &e.jobs, recentKey{j.Thread, agentKey{j.Workspace, j.Target}}
	if times := js.within(key, deliveryWindow, now); e.cfg.Triggers.PerMinute > 0 && len(times) >= e.cfg.Triggers.PerMinute {
		j.Status, j.Code = uint8(Deferred), CodeRateLimited
		j.NextAt = max(times[0]+deliveryWindow, now+e.cfg.Triggers.Recheck)
		e.saveJob(j, now)
		return a, false
	}
	switch {
	case sess == nil:
		e.escalate(j, sess, codeNoRuntime, now)
		return a, false
	case !sess.Managed:
		e.escalate(j, sess, CodeUnmanaged, now)
		return a, false
	}
	j.Status, j.lease, j.TargetSession = uint8(Triggering), now+lease, sess.Session
	e.saveJob(j, now)
	if sess.Status == SessionOffline || e.stale(sess, now) {
		e.finish(j, sess, codeOffline, now)
		return a, false
	}
	e.await(j)
	return Attempt{Job: e.showJob(&j.jobState, sess), Attempt: Triggering, Forced: overrides(j.Reason)}, true
}

// count takes a final job into the loop protection (threads §5.5). That the server stopped is no
// failure of an agent; it ends a row of equal ones.
func (t *thread) count(s *jobState) {
	switch {
	case !s.Ended || s.Code == codeClosed || s.Code == codeAutoBlocked || s.Code == codeCancelled:
	case s.Code == codeInterrupted:
		t.loop.Code, t.loop.Same = s.Code, 0
	case JobStatus(s.Status) != JobFailed:
		t.loop = loop{}
	default:
		t.loop.Failures++
		if t.loop.Code != s.Code {
			t.loop.Code, t.loop.Same = s.Code, 0
		}
		t.loop.Same++
	}
}

// opAutoBlock is the operation of protect in the audit log.
const opAutoBlock = "supervisor.auto_block"

const systemPrefix = "system:"

// SupervisorSender is the agent behind what the server itself does.
const SupervisorSender = systemPrefix + "supervisor"

// ackWindow is how long a sign of the target of a delivered job is looked for.
const ackWindow = 10 * 60_000

// await notes that a sign of the target is looked for. Caller holds jobs.mu.
func (e *Engine) await(j *job) {
	j.signal = false
	js, key := &e.jobs, agentKey{j.Workspace, j.Target}
	if j.awaits || int(js.awaiting.Load()) >= e.cfg.Triggers.MaxJobs {
		return
	}
	j.awaits = true
	js.awaited[key] = append(js.awaited[key], j)
	js.awaiting.Add(1)
}

// release ends await. Caller holds jobs.mu.
func (e *Engine) release(j *job) {
	if !j.awaits {
		return
	}
	j.awaits = false
	js, key := &e.jobs, agentKey{j.Workspace, j.Target}
	js.awaited[key] = slices.DeleteFunc(js.awaited[key], func(other *job) bool { return other == j })
	if len(js.awaited[key]) == 0 {
		delete(js.awaited, key)
	}
	js.awaiting.Add(-1)
}

// heard notes a sign of an agent: a heartbeat, an acknowledgement or a post (threads §4.9). Caller
// holds none of the locks behind jobs.mu.
func (e *Engine) heard(workspace, agent string, now int64) {
	if e.jobs.awaiting.Load() == 0 {
		return
	}
	js := &e.jobs
	js.mu.Lock()
	defer js.mu.Unlock()
	for list := js.awaited[agentKey{workspace, agent}]; len(list) > 0 && !e.refuses(); list = js.awaited[agentKey{workspace, agent}] {
		j := list[0]
		e.release(j)
		j.AckedAt, j.signal = now, true
		e.saveJob(j, now)
	}
}

// stopAwaiting counts the signs that did not come in time, and ends the look for those that did not
// come at all. Caller holds jobs.mu.
func (e *Engine) stopAwaiting(now int64) {
	for _, list := range e.jobs.awaited {
		for _, j := range slices.Clone(list) {
			if JobStatus(j.Status) == Delivered && !j.late && j.UpdatedAt <= now-e.cfg.Triggers.AckTimeout {
				j.late = true
				e.jobs.unacked++
			}
			if j.Final && j.UpdatedAt < now-ackWindow {
				e.release(j)
			}
		}
	}
}

// Signalled reports whether the target of a job was heard of since its attempt began. Of a job that
// ended meanwhile, because its thread did, it was not: its command keeps its time limit.
func (e *Engine) Signalled(id string) bool {
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	j := e.jobs.open[id]
	return j != nil && j.signal
}

// protect blocks a thread whose jobs fail again and again (threads §5.5). Caller holds t.mu and
// jobs.mu.
func (e *Engine) protect(t *thread, now int64) {
	c := &e.cfg.Triggers
	reason := ""
	switch {
	case c.LoopSame > 0 && t.loop.Same >= c.LoopSame:
		reason = "repeated_identical_findings:" + string(appendUint(nil, uint64(c.LoopSame))) + ":" + t.loop.Code
	case c.LoopFailures > 0 && t.loop.Failures >= c.LoopFailures:
		reason = "no_progress_turns:" + string(appendUint(nil, uint64(c.LoopFailures)))
	}
	if reason == "" || t.status != Active || t.latest >= maxSeq {
		return
	}
	e.store.Begin() // all of it or nothing
	defer e.store.End()
	t.loop = loop{}
	a := &Actor{Workspace: t.made.Workspace, Agent: SupervisorSender, Session: SupervisorSender, Rank: Coordinator}
	rec := statusChanged{Number: t.made.Number, At: max(now, t.updated), Status: uint8(Blocked), Audit: a.audit(opAutoBlock, t.made.ID, now)}
	rec.Audit.Payload = changePayload(t.status, &Change{To: Blocked, Reason: reason})
	t.index = e.recordAudited(opStatus, &rec, &rec.Audit)
	t.status, t.updated = Blocked, rec.At
	e.failAll(t, codeAutoBlocked, now)
	p := &Post{Kind: System, Body: []byte("The thread was blocked: " + reason), Metadata: []byte(`{"event_type":"thread_escalated","reason":"` + reason + `"}`)}
	var out Posted
	e.appendTo(t, a, p, nil, nil, now, &out)
}

// Sweep decides jobs whose attempts were interrupted, and records what stands for audit events that
// were suppressed.
func (e *Engine) Sweep(now int64) {
	e.recordSuppressed(now)
	e.interrupted(now)
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	e.stopAwaiting(now)
}

// interrupted decides the jobs that were under way when an earlier process ended, and those whose
// lease is over (threads §5.4).
func (e *Engine) interrupted(now int64) {
	e.jobs.mu.Lock()
	var list []*job
	for _, j := range e.jobs.open {
		if begun := JobStatus(j.Status) == Triggering || j.Started; begun && (j.lease == 0 || !j.Started && j.lease <= now) {
			list = append(list, j)
		}
	}
	e.jobs.mu.Unlock()
	for _, j := range list {
		e.interrupt(j, now)
	}
}

func (e *Engine) interrupt(j *job, now int64) {
	t := j.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	switch {
	case j.Final || e.refuses():
	case j.Started:
		e.fail(j, codeInterrupted, now)
		e.protect(t, now)
	case JobStatus(j.Status) == Triggering:
		j.Attempts++
		j.Status, j.Code, j.NextAt, j.lease = uint8(Queued), codeInterrupted, now, 0
		e.saveJob(j, now)
		e.release(j)
	}
}

// restore puts back a job.
func (e *Engine) restore(s *jobState, t *thread, index journal.Index) {
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	j := e.jobs.open[s.ID]
	if j == nil {
		j = &job{thread: t}
	} else if index <= j.Index {
		return
	}
	s.Index = index
	s.Audit = auditEvent{}
	j.jobState = *s
	e.placeJob(j)
}

// systemSender reports whether messages of a sender never count as unread (threads §5.5).
func systemSender(agent string) bool { return strings.HasPrefix(agent, systemPrefix) }

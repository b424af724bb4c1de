package threadstore

import (
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/threadstore/prompt"
)

// Trigger asks for an agent to be woken (threads §4.9).
type Trigger struct {
	Target, Reason string
	Prompt         string // as it is delivered, without its envelope
	// Key, if any, is the idempotency key, and Digest that of thread, target, reason and prompt.
	Key    string
	Digest [digestSize]byte
	// Busy reports whether a person is known to use a runtime. nil: it is not known of any.
	Busy func(runtime string) bool
}

// Job is a trigger job as it is shown. Empty texts and zero times are absent.
type Job struct {
	ID, ThreadID, Workspace, Target, TargetSession, Reason string
	Prompt                                                 string
	Status                                                 JobStatus
	Final, Stale                                           bool
	Attempts                                               uint32
	MaxRetries                                             uint32
	Code                                                   string
	NextAt, DeliveredAt, AckedAt, CompletedAt              int64
	CreatedAt, UpdatedAt                                   int64
	// Runtime is the session of the target at present, nil if it has none.
	Runtime *SessionView
}

// SessionView is a session as it is shown.
type SessionView struct {
	Session, Runtime   string
	Managed, Resumable bool
	Status             SessionStatus
	At                 int64
}

// Session returns the session of an agent, nil if it has none.
func (e *Engine) Session(workspace, agent string) *SessionView {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	s := e.sessions.agents[agentKey{workspace, agent}]
	if s == nil {
		return nil
	}
	return &SessionView{Session: s.Session, Runtime: s.Runtime, Managed: s.Managed, Resumable: s.Resumable && prompt.ResumableSession(s.Session), Status: SessionStatus(s.Status), At: s.At}
}

// stale reports whether a session was not heard of for too long.
func (e *Engine) stale(s *SessionView, now int64) bool {
	return s != nil && now-s.At > e.cfg.Triggers.StaleAfter
}

// fallback returns how a target that cannot be reached is woken.
func (e *Engine) fallback(s *SessionView, now int64) JobStatus {
	if s != nil && s.Resumable && !e.stale(s, now) {
		return FallbackResume
	}
	return FallbackSpawn
}

// decide returns the state that a job for a target begins in.
func (e *Engine) decide(s *SessionView, tr *Trigger, now int64) (JobStatus, Code) {
	c := &e.cfg.Triggers
	if s == nil || !s.Managed || s.Status == SessionOffline || e.stale(s, now) {
		switch {
		case !c.NoFallback:
			return e.fallback(s, now), OK
		case s != nil && !s.Managed:
			return 0, Unmanaged
		}
		return 0, NoRuntime
	}
	if tr.Busy == nil || overrides(tr.Reason) || !tr.Busy(s.Runtime) {
		return Queued, OK
	}
	if c.MaxDefer == 0 && c.NoFallback {
		return 0, HumanBusy
	}
	return Deferred, OK
}

// Trigger makes a job that wakes a participant of a thread, or finds the one that an earlier
// request with the same key made.
func (e *Engine) Trigger(a *Actor, id []byte, tr *Trigger, now int64) (out Job, r Receipt, _ Refusal) {
	t, code := e.open(a, id, false)
	if code != OK {
		return out, r, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	return e.trigger(a, t, tr, now, func(_ string, save func() bool) { save() })
}

// trigger is Trigger for a thread that is locked. record calls what records the job.
func (e *Engine) trigger(
	a *Actor, t *thread, tr *Trigger, now int64, record func(id string, save func() bool),
) (out Job, r Receipt, _ Refusal) {
	if !t.member(tr.Target) {
		return out, r, Refusal{Code: NoTarget}
	}
	e.writeSession(agentKey{a.Workspace, tr.Target}) // before the job, which must not outlive it
	sess := e.Session(a.Workspace, tr.Target)
	js := &e.jobs
	js.mu.Lock()
	defer js.mu.Unlock()
	if tr.Key != "" {
		known, err := e.knownJob(a, tr.Key)
		switch {
		case err != nil:
			return out, r, Refusal{Code: Failed, Err: err}
		case known != nil && string(known.Digest) != string(tr.Digest[:]):
			return out, r, Refusal{Code: KeyReused, Index: known.Index}
		case known != nil:
			return e.showJob(known, sess), Receipt{Index: known.Index, At: known.CreatedAt, Replay: true}, Refusal{}
		}
	}
	status, code := e.decide(sess, tr, now)
	switch {
	case t.status == Closed:
		return out, r, Refusal{Code: ThreadClosed, Status: t.status, Index: t.index}
	case code != OK:
		return out, r, Refusal{Code: code}
	case len(js.open) >= e.cfg.Triggers.MaxJobs:
		return out, r, Refusal{Code: TooMany}
	case e.refuses():
		return out, r, Refusal{Code: NotStored}
	}
	j := e.newJob(a, t, tr, sess, status, now)
	var index journal.Index
	record(j.ID, func() bool { index = e.saveJob(j, now); return true })
	if e.notify(t, tr.Target, t.latest); a.Agent == SupervisorSender {
		e.deliver(t, 0, nil, tr.Target, now)
	}
	select {
	case js.wake <- struct{}{}:
	default:
	}
	return e.showJob(&j.jobState, sess), Receipt{Index: index, At: now}, Refusal{}
}

// newJob returns a job that is due at once, or after a deferral. Caller holds t.mu and jobs.mu.
func (e *Engine) newJob(a *Actor, t *thread, tr *Trigger, sess *SessionView, status JobStatus, now int64) *job {
	raw := e.ids.next(nil, now)
	// Final jobs of earlier starts are only rows: each has a number up to the index of its record.
	number := max(e.jobs.last, e.store.Appended()) + 1
	j := &job{thread: t, jobState: jobState{
		Number: number, ID: string(appendID(nil, triggerPrefix, &raw)), Thread: t.made.Number, ThreadID: t.made.ID,
		Workspace: t.made.Workspace, Caller: a.Agent, Key: tr.Key, Target: tr.Target, Reason: tr.Reason, Prompt: tr.Prompt,
		Status: uint8(status), Stale: e.stale(sess, now), NextAt: now, CreatedAt: now,
	}}
	if tr.Key != "" {
		j.Digest = slices.Clone(tr.Digest[:])
	}
	if sess != nil {
		j.TargetSession = sess.Session
	}
	if status == Deferred {
		j.Code, j.NextAt = codeBusy, now+e.cfg.Triggers.Recheck
	}
	j.Audit = a.audit("mcp.trigger_participant", t.made.ID, now)
	b := jsonx.Build(nil).Text("trigger_id", j.ID).Text("target_agent_id", j.Target)
	b = b.Text("action", status.Action()).Text("result", status.Result(false)).Text("job_status", status.String())
	if f := status.Fallback(sess); f != "" {
		b = b.Text("fallback_action", f)
	}
	if b = b.Bool("stale_session", j.Stale); overrides(tr.Reason) {
		b = b.Bool("forced", true)
	}
	j.Audit.Payload = b.End()
	return j
}

// Action returns what a job in state s does (threads §4.9).
func (s JobStatus) Action() string {
	if s == FallbackResume || s == FallbackSpawn {
		return "fallback_required"
	}
	return "trigger_runtime"
}

// Action returns what j does, or has done (threads §4.9).
func (j *Job) Action() string {
	if j.Status == JobFailed {
		switch j.Code {
		case codeSpawnFailed, codeResumeFailed, CodeBadCommand, codeNoFallback, codeInterrupted: // codes of commands only
			return FallbackSpawn.Action()
		}
	}
	return j.Status.Action()
}

// Result returns what has come of a job in state s.
func (s JobStatus) Result(final bool) string {
	switch {
	case (s == FallbackResume || s == FallbackSpawn) && !final:
		return "fallback_required"
	case s == FallbackResume || s == FallbackSpawn || s == Delivered:
		return "delivered"
	case s == Deferred:
		return "deferred"
	case s == JobFailed:
		return "failed"
	}
	return "queued"
}

// Actions that follow where a job is not delivered.
const (
	ResumeSession = "resume_session"
	spawnSession  = "spawn_session"
)

// Fallback returns the action that follows where a job in state s is not delivered; empty: none is
// planned.
func (s JobStatus) Fallback(sess *SessionView) string {
	switch {
	case s == FallbackResume, s == Deferred && sess != nil && sess.Resumable:
		return ResumeSession
	case s == FallbackSpawn, s == Deferred:
		return spawnSession
	}
	return ""
}

// knownJob returns the job of an earlier request, nil if there is none. Caller holds jobs.mu.
func (e *Engine) knownJob(a *Actor, key string) (*jobState, error) {
	hash := hashCreation(a.Workspace, a.Agent, []byte(key))
	if j := e.jobs.keys[hash]; j != nil {
		return &j.jobState, nil
	}
	at, ok, err := e.disk.Get(nil, append([]byte{rowJobKey}, hash[:]...))
	if err != nil || !ok || len(at) != jobKeyBytes+8 {
		return nil, err
	}
	row, ok, err := e.disk.Get(nil, at[:jobKeyBytes])
	if err != nil || !ok {
		return nil, err
	}
	var s jobState
	if err := unmarshal(&s, row); err != nil || s.Key != key || s.Caller != a.Agent {
		return nil, err
	}
	return &s, nil
}

func (e *Engine) showJob(s *jobState, sess *SessionView) Job {
	return Job{ID: s.ID, ThreadID: s.ThreadID, Workspace: s.Workspace, Target: s.Target, TargetSession: s.TargetSession,
		Reason: s.Reason, Prompt: s.Prompt, Status: JobStatus(s.Status), Final: s.Final, Stale: s.Stale, Attempts: s.Attempts,
		MaxRetries: e.cfg.Triggers.MaxRetries, Code: s.Code, NextAt: s.NextAt, DeliveredAt: s.DeliveredAt, AckedAt: s.AckedAt,
		CompletedAt: s.CompletedAt, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Runtime: sess}
}

// Jobs returns the jobs of a thread, the newest first, at most limit.
func (e *Engine) Jobs(a *Actor, id []byte, limit int) (list []Job, _ Refusal) {
	t, code := e.open(a, id, false)
	if code != OK {
		return nil, Refusal{Code: code}
	}
	t.mu.Unlock()
	err := e.storeUpTo(e.safe())
	if err == nil {
		var bad error
		number := t.made.Number
		err = e.disk.Scan(appendJobKey(nil, number, 0), appendJobKey(nil, number, ^uint64(0)), true, func(_, value []byte) bool {
			var s jobState
			if bad = unmarshal(&s, value); bad == nil {
				list = append(list, e.showJob(&s, nil))
			}
			return bad == nil && len(list) < limit
		})
		if err == nil {
			err = bad
		}
	}
	if err != nil {
		return nil, Refusal{Code: Failed, Err: err}
	}
	return list, Refusal{}
}

package threadstore

// canResume reports whether a session may be resumed once more.
func (e *Engine) canResume(j *job, sess *SessionView, now int64) bool {
	return sess != nil && sess.Resumable && !e.stale(sess, now) && j.Resumes < e.cfg.Triggers.MaxResumes &&
		len(e.jobs.within(recentKey{0, agentKey{j.Workspace, j.Target}}, resumeWindow, now)) < maxResumeFailures
}

// escalate has a job go on with a fallback command. Caller holds t.mu and jobs.mu.
func (e *Engine) escalate(j *job, sess *SessionView, code string, now int64) {
	if e.cfg.Triggers.NoFallback {
		e.fail(j, codeNoFallback, now)
		return
	}
	status := FallbackSpawn
	if e.canResume(j, sess, now) {
		status = FallbackResume
	}
	j.Status, j.Code, j.NextAt, j.lease, j.Started = uint8(status), code, now, 0, false
	e.saveJob(j, now)
}

// fail ends a job without success. Caller holds t.mu and jobs.mu.
func (e *Engine) fail(j *job, code string, now int64) {
	j.Status, j.Final, j.Code, j.CompletedAt, j.lease, j.Started = uint8(JobFailed), true, code, now, 0, false
	j.Prompt = "" // nothing shows it any more: a thread may end thousands of jobs at once
	e.release(j)
	e.end(j, now)
}

// failAll ends the jobs of a thread that are selected without success; nil selects all. Caller
// holds t.mu and jobs.mu.
func (e *Engine) failAll(t *thread, code string, now int64, selects func(*job) bool) {
	for _, j := range e.jobs.open {
		if j.thread == t && (selects == nil || selects(j)) {
			e.fail(j, code, now)
		}
	}
}

// succeed ends a job with success. Caller holds t.mu and jobs.mu.
func (e *Engine) succeed(j *job, status JobStatus, now int64) {
	j.Status, j.Final, j.Code, j.lease, j.Started = uint8(status), true, "", 0, false
	if status == Delivered {
		j.DeliveredAt = now
	} else {
		j.CompletedAt = now
	}
	e.end(j, now)
}

// end records that j is final. Caller holds t.mu and jobs.mu.
func (e *Engine) end(j *job, now int64) {
	j.Ended = true
	j.thread.count(&j.jobState)
	j.thread.index = e.saveJob(j, now)
	j.Ended = false
}

// Finish ends an attempt: with success where code is empty. A job that another one has ended
// meanwhile stays as it is.
func (e *Engine) Finish(id, code string, now int64) {
	e.jobs.mu.Lock()
	j := e.jobs.open[id]
	e.jobs.mu.Unlock()
	if j == nil {
		return
	}
	t := j.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	e.jobs.mu.Lock()
	defer e.jobs.mu.Unlock()
	if j.Final || j.lease == 0 {
		return
	}
	e.finish(j, e.Session(j.Workspace, j.Target), code, now)
	e.protect(t, now)
}

// finish moves a job on after an attempt (threads §5.4). Caller holds t.mu and jobs.mu.
func (e *Engine) finish(j *job, sess *SessionView, code string, now int64) {
	c := &e.cfg.Triggers
	status := JobStatus(j.Status)
	switch {
	case status == Triggering && code == "":
		j.Attempts++
		e.jobs.note(recentKey{j.Thread, agentKey{j.Workspace, j.Target}}, c.PerMinute, now)
		e.succeed(j, Delivered, now)
	case code == "":
		e.succeed(j, status, now)
	case status == FallbackResume:
		e.jobs.note(recentKey{0, agentKey{j.Workspace, j.Target}}, maxResumeFailures, now)
		e.escalate(j, sess, codeResumeFailed, now)
	case status == FallbackSpawn:
		e.fail(j, codeSpawnFailed, now)
	case code == codeBusy && apart(now, j.CreatedAt) < c.MaxDefer:
		j.Status, j.Code, j.NextAt, j.lease = uint8(Deferred), code, now+c.Recheck, 0
		e.saveJob(j, now)
	case code == codeBusy:
		j.Audit = e.byServer(j, "supervisor.collision", now)
		e.escalate(j, sess, CodeDeferTimeout, now)
	case retryable(code) && j.Attempts < c.MaxRetries:
		j.Attempts++
		j.Status, j.Code, j.lease = uint8(TimedOut), code, 0
		j.NextAt = now + min(int64(retryBase)<<min(j.Attempts-1, 10), retryMost)
		e.saveJob(j, now)
	default:
		j.Attempts++
		e.escalate(j, sess, code, now)
	}
	if code != "" {
		e.release(j)
	}
}

// byServer returns an audit event about a job that no request causes.
func (e *Engine) byServer(j *job, operation string, now int64) auditEvent {
	a := Actor{Workspace: j.Workspace, Agent: SupervisorSender}
	ev := a.audit(operation, j.ThreadID, now)
	ev.Payload = append(append(append(ev.Payload, `{"trigger_id":"`...), j.ID...), `"}`...)
	return ev
}

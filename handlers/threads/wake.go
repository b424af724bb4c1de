package threads

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"trunkline/engine/threadstore"
	"trunkline/engine/threadstore/prompt"
	"trunkline/handlers/threads/supervisor"
)

// Jobs gives a supervisor the jobs of the engine. It implements supervisor.Jobs.
type Jobs struct {
	s        *Service
	dormant  atomic.Int64                // participants with unread messages, at the last tick
	attempts [len(outcomes)]atomic.Int64 // by outcome
}

// outcomes are the labels of trigger_attempts_total; the last one counts all that is not named.
var outcomes = [...]string{"delivered", "busy", "fallback", "failed"}

// NewJobs returns the jobs of s.
func NewJobs(s *Service) *Jobs { return &Jobs{s: s} }

// AppendMetrics appends the families of threads §4.10 about jobs.
func (j *Jobs) AppendMetrics(dst []byte) []byte {
	dst = append(dst, "# HELP trigger_attempts_total Attempts to wake an agent.\n# TYPE trigger_attempts_total counter\n"...)
	for i := range outcomes {
		dst = append(append(append(dst, `trigger_attempts_total{result="`...), outcomes[i]...), `"} `...)
		dst = append(strconv.AppendInt(dst, j.attempts[i].Load(), 10), '\n')
	}
	dst = append(dst, "# HELP unread_dormant_participants Participants with unread messages without an active runtime.\n# TYPE unread_dormant_participants gauge\nunread_dormant_participants "...)
	return append(strconv.AppendInt(dst, j.dormant.Load(), 10), '\n')
}

// Claim implements supervisor.Jobs.
func (j *Jobs) Claim(ctx context.Context, attempts, runs int) (list []supervisor.Job) {
	claimed, err := j.s.engine.Claim(ctx, attempts, runs, j.s.cfg.Now().UnixMilli())
	if err != nil {
		j.s.cfg.Logger.Error("cannot claim jobs", "error", err)
		return nil
	}
	for i := range claimed {
		a := &claimed[i]
		job, err := j.job(a)
		if err != nil {
			j.s.cfg.Logger.Error("cannot wake an agent", "trigger_id", a.ID, "error", err)
			j.s.engine.Finish(a.ID, threadstore.CodeBadCommand, j.s.cfg.Now().UnixMilli())
			continue
		}
		list = append(list, job)
	}
	return list
}

// job completes an attempt by what it delivers.
func (j *Jobs) job(a *threadstore.Attempt) (out supervisor.Job, err error) {
	envelope := prompt.AppendEnvelope(nil, a.ID, a.ThreadID, a.Reason, []byte(a.Prompt))
	out = supervisor.Job{TriggerID: a.ID, Envelope: envelope, Forced: a.Forced}
	switch a.Attempt {
	case threadstore.FallbackResume:
		out.Kind = supervisor.Resume
		out.Argv, err = prompt.Argv(j.s.cfg.Resume, a.TargetSession, string(envelope))
	case threadstore.FallbackSpawn:
		sum := j.s.summaryOf(a)
		text := prompt.SpawnPrompt(nil, a.ThreadID, sum.Text, sum.OpenItems, envelope)
		out.Kind = supervisor.Spawn
		out.Argv, err = prompt.Argv(j.s.cfg.Spawn, a.TargetSession, string(text))
	default:
		out.Kind, out.Runtime = supervisor.Deliver, a.Runtime.Runtime
	}
	return out, err
}

// summaryWindow is how many messages the summary for a new session looks at, as by default.
const summaryWindow = 200

// summaryOf is the summary of a job's thread, empty where that cannot be read.
func (s *Service) summaryOf(a *threadstore.Attempt) threadstore.Summary {
	actor := threadstore.Actor{Workspace: a.Workspace, Rank: threadstore.Coordinator}
	sum, _ := s.engine.Summarize(&actor, []byte(a.ThreadID), summaryWindow)
	return sum
}

// Finished implements supervisor.Jobs.
func (j *Jobs) Finished(job supervisor.Job, o supervisor.Outcome) {
	i := len(outcomes) - 1
	switch {
	case o.Code == supervisor.Success && job.Kind == supervisor.Deliver:
		i = 0
	case o.Code == supervisor.OperatorBusy:
		i = 1
	case o.Code == supervisor.Success:
		i = 2
	}
	j.attempts[i].Add(1)
	level := slog.LevelInfo
	if o.Code != supervisor.Success {
		level = slog.LevelWarn
	}
	j.s.cfg.Logger.Log(context.Background(), level, "attempt to wake an agent", "trigger_id", job.TriggerID, "code", string(o.Code), "detail", o.Detail)
	j.s.engine.Finish(job.TriggerID, string(o.Code), j.s.cfg.Now().UnixMilli())
}

// Tick implements supervisor.Jobs.
func (j *Jobs) Tick(now time.Time) {
	e, ms := j.s.engine, now.UnixMilli()
	e.Sweep(ms)
	total := e.Unread(ms, func(u threadstore.Unread) {
		j.s.cfg.Logger.Info("participant has unread messages", "reason", "new_unread_dormant_participant", "thread_id", u.Thread, "agent_id", u.Agent,
			"latest_seq", u.Latest, "trigger", u.Trigger)
		if u.Trigger {
			j.trigger(u, ms)
		}
	})
	j.dormant.Store(int64(total))
}

// unreadPrompt is what an agent gets that is woken for unread messages.
const unreadPrompt = "There are unread messages in this thread. Read them and reply where you are asked."

// trigger makes a job for unread messages.
func (j *Jobs) trigger(u threadstore.Unread, now int64) {
	a := threadstore.Actor{Workspace: u.Workspace, Agent: threadstore.SupervisorSender, Rank: threadstore.Coordinator, Role: "coordinator"}
	_, _, ref := j.s.engine.Trigger(&a, []byte(u.Thread), &threadstore.Trigger{Target: u.Agent, Reason: "new_unread_messages", Prompt: unreadPrompt, Busy: j.s.cfg.Busy}, now)
	if ref.Code != threadstore.OK {
		j.s.cfg.Logger.Warn("cannot wake an agent for unread messages", "thread_id", u.Thread, "agent_id", u.Agent, "code", int(ref.Code))
	}
}

// Acked reports whether the target of a job was heard of since its attempt began.
func (j *Jobs) Acked(id string) bool { return j.s.engine.Signalled(id) }

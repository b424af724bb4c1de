package threads

import (
	"fmt"

	"trunkline/codec/jsonx"
	core "trunkline/engine/threads"
	"trunkline/engine/threads/prompt"
	"trunkline/handlers/threads/method"
)

func (c *call) trigger(dst []byte) []byte {
	if c.caller.NoWait {
		c.out.Waits = true // an earlier job with the key may be in rows
		return dst
	}
	c.audited()
	text := jsonx.AppendUnescaped(nil, c.in.Prompt())
	text = prompt.Sanitize(nil, text)
	if !prompt.Fits(text) {
		c.out.Fault = &method.Fault{Condition: method.Invalid, Message: fmt.Sprintf("trigger_prompt has %d bytes without control characters, 1 to %d are allowed", len(text), prompt.MaxBytes)}
		return dst
	}
	tr := core.Trigger{Target: string(c.in.Target()), Reason: string(c.in.Reason()), Prompt: string(text), Busy: c.s.cfg.Busy}
	if key := c.in.Key(); len(key) > 0 {
		tr.Key = "key:" + string(key)
	} else if c.caller.FromClient {
		tr.Key = "req:" + string(c.caller.RequestID)
	}
	tr.Digest = c.digest.trigger(c.in.Thread(), c.in.Target(), c.in.Reason(), text)
	j, r, ref := c.s.engine.Trigger(&c.actor, c.in.Thread(), &tr, c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index, c.out.Replay = r.Index, r.Replay
	return c.s.appendTrigger(dst, &j, c.caller.Dialect)
}

// appendTrigger appends the output of trigger_participant (threads §4.9).
func (s *Service) appendTrigger(dst []byte, j *core.Job, d method.Dialect) []byte {
	result := j.Status.Result(j.Final)
	if d == method.Legacy {
		if result = "queued"; j.Action() != core.Queued.Action() {
			result = "fallback_required"
		}
	}
	b := jsonx.Build(dst).Text("trigger_id", j.ID).Text("target_agent_id", j.Target)
	b = b.Text("action", j.Action()).Text("result", result).Text("job_status", j.Status.String())
	if j.Status == core.Deferred {
		why := "human_input_busy"
		if j.Code == core.CodeRateLimited {
			why = "rate_limited"
		}
		b = timed(b.Text("defer_reason", why), "deferred_until", j.CreatedAt+s.cfg.MaxDefer.Milliseconds())
	}
	if f := j.Status.Fallback(j.Runtime); f != "" {
		template := s.cfg.Spawn
		if f == core.ResumeSession {
			template = s.cfg.Resume
		}
		b = b.Text("fallback_action", f).Text("runtime_command", prompt.DisplayCommand(template, j.TargetSession, j.Prompt))
	}
	b = optional(b, "target_session_id", j.TargetSession)
	if v := j.Runtime; v != nil {
		mode := "unmanaged"
		if v.Managed {
			mode = "managed"
		}
		b = b.Text("runtime", v.Runtime).Text("management_mode", mode).Text("session_status", v.Status.String())
	}
	return timed(b.Bool("stale_session", j.Stale), "triggered_at", j.CreatedAt).End()
}

package threads

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
	"trunkline/engine/threadstore/prompt"
	"trunkline/handlers/threads/method"
)

func (c *call) create(dst []byte) []byte {
	c.audited()
	n := threadstore.NewThread{Title: c.in.Title(), Type: threadstore.Type(c.in.Type()), Participants: c.in.Participants(), Key: c.in.Key()}
	if len(n.Key) > 0 {
		n.Digest = c.digest.creation(n.Title, n.Type.String(), n.Participants)
	}
	id, r, ref := c.s.engine.Create(&c.actor, &n, c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index, c.out.Replay = r.Index, r.Replay
	b := jsonx.Build(dst).Text("thread_id", id).Text("status", threadstore.Active.String())
	return timed(b, "created_at", r.At).End()
}

// timed appends a member that is a time in milliseconds since 1970.
func timed(b jsonx.Builder, name string, at int64) jsonx.Builder {
	b = append(b.Name(name), '"')
	return append(threadstore.AppendTime(b, at), '"')
}

// clock is the text of the last time that was shown: in a busy millisecond all answers have it.
type clock struct {
	at   int64
	text []byte
}

func (c *clock) append(dst []byte, at int64) []byte {
	if at != c.at || len(c.text) == 0 {
		c.at, c.text = at, threadstore.AppendTime(c.text[:0], at)
	}
	return append(dst, c.text...)
}

func (c *call) get(dst []byte) []byte {
	v, index, ref := c.s.engine.Get(&c.actor, c.in.Thread())
	if c.refuse(ref) {
		return dst
	}
	c.out.Index = index
	return appendThread(dst, &v)
}

func (c *call) post(dst []byte) []byte {
	p := threadstore.Post{Kind: threadstore.Kind(c.in.Kind()), Body: c.in.Body(), Metadata: c.in.Metadata(), InReplyTo: c.in.InReplyTo(), Key: c.in.Key()}
	if p.At = c.in.Deliver(); p.At-c.now > method.MaxDelay {
		c.out.Fault = &method.Fault{Condition: method.Invalid, Message: "deliver_at is more than 366 days ahead"}
		return dst
	}
	if p.Kind == threadstore.System && c.actor.Rank != threadstore.Coordinator {
		c.out.Fault = &method.Fault{Condition: method.Forbidden, Message: "kind system is for coordinators and operators"}
		return dst
	}
	if len(p.InReplyTo) > 0 && c.caller.NoWait {
		c.out.Waits = true // it may be in rows
		return dst
	}
	if len(p.Key) > 0 {
		p.Digest = c.digest.post(p.Body, p.At, p.InReplyTo, p.Kind.String(), p.Metadata)
	}
	got, ref := c.s.engine.Post(&c.actor, c.in.Thread(), &p, c.now)
	if c.refuse(ref) {
		return dst
	}
	if c.out.Index, c.out.Replay = got.Index, got.Replay; got.Deferred != "" {
		b := timed(jsonx.Build(dst).Text("deferred_id", got.Deferred), "deliver_at", got.At)
		return b.Text("thread_status", got.Status.String()).End()
	}
	dst = append(got.AppendID(append(dst, `{"message_id":"`...)), `","seq":`...)
	dst = strconv.AppendUint(dst, got.Seq, 10)
	dst = append(append(append(dst, `,"thread_status":"`...), got.Status.String()...), `","created_at":"`...)
	return append(c.shown.append(dst, got.At), `"}`...)
}

func (c *call) read(dst []byte) []byte {
	dst = append(dst, `{"messages":[`...)
	start := len(dst)
	dst, p, ref := c.s.engine.Read(&c.actor, c.in.Thread(), uint64(c.in.Since()), int(c.in.Limit()), !c.caller.NoWait, dst)
	if c.refuse(ref) {
		return dst
	}
	if ms := c.in.WaitMillis(); ms > 0 && len(dst) == start && !p.Cold && !c.caller.Waited {
		thread := bytes.Clone(c.in.Thread())
		again := jsonx.Build(nil).Text("thread_id", string(thread)).Int("since_seq", c.in.Since()).Int("limit", c.in.Limit()).End()
		c.out.Wait = &method.Wait{Thread: thread, Since: uint64(c.in.Since()), For: time.Duration(ms) * time.Millisecond, Again: again}
		return dst
	}
	c.out.Waits, c.out.Index = p.Cold, p.Index
	dst = strconv.AppendUint(append(dst, `],"next_seq":`...), p.Next, 10)
	dst = strconv.AppendBool(append(dst, `,"has_more":`...), p.More)
	if p.First > 1 {
		dst = strconv.AppendUint(append(dst, `,"first_seq":`...), p.First, 10)
	}
	return append(dst, '}')
}

func (c *call) ack(dst []byte) []byte {
	r, ref := c.s.engine.Ack(&c.actor, c.in.Thread(), uint64(c.in.LastRead()), c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index = r.Index
	return append(c.shown.append(append(dst, `{"ok":true,"updated_at":"`...), r.At), `"}`...)
}

func (c *call) heartbeat(dst []byte) []byte {
	h := threadstore.Heartbeat{Runtime: c.in.Runtime(), Managed: c.in.Managed(), Resumable: c.in.Resumable(), Status: threadstore.SessionStatus(c.in.Status())}
	at, ref := c.s.engine.Heartbeat(&c.actor, &h, c.now)
	if c.refuse(ref) {
		return dst
	}
	return append(c.shown.append(append(dst, `{"ok":true,"recorded_at":"`...), at), `"}`...)
}

func (c *call) update(dst []byte) []byte {
	c.audited()
	change := threadstore.Change{To: threadstore.Status(c.in.Status()), Reason: string(c.in.Reason()), Metadata: c.in.Metadata()}
	v, r, ref := c.s.engine.SetStatus(&c.actor, c.in.Thread(), &change, c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index = r.Index
	return timed(jsonx.Build(dst).Text("thread_id", v.ID).Text("status", v.Status.String()), "updated_at", v.Updated).End()
}

func (c *call) summarize(dst []byte) []byte {
	if c.caller.NoWait {
		c.out.Waits = true // messages may be in rows
		return dst
	}
	sum, ref := c.s.engine.Summarize(&c.actor, c.in.Thread(), int(c.in.MaxMessages()))
	if c.refuse(ref) {
		return dst
	}
	c.out.Index = sum.Index
	return jsonx.Build(dst).Text("summary", sum.Text).Texts("open_items", sum.OpenItems).Text("last_status", sum.Status.String()).End()
}

func (c *call) trigger(dst []byte) []byte {
	if c.caller.NoWait {
		c.out.Waits = true // an earlier job with the key may be in rows
		return dst
	}
	c.audited()
	text := jsonx.Unescape(c.in.Prompt())
	text = prompt.Sanitize(nil, text)
	if !prompt.Fits(text) {
		c.out.Fault = &method.Fault{Condition: method.Invalid, Message: fmt.Sprintf("trigger_prompt has %d bytes without control characters, 1 to %d are allowed", len(text), prompt.MaxBytes)}
		return dst
	}
	tr := threadstore.Trigger{Target: string(c.in.Target()), Reason: string(c.in.Reason()), Prompt: string(text), Busy: c.s.cfg.Busy}
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
func (s *Service) appendTrigger(dst []byte, j *threadstore.Job, d method.Dialect) []byte {
	result := j.Status.Result(j.Final)
	if d == method.Legacy {
		if result = "queued"; j.Action() != threadstore.Queued.Action() {
			result = "fallback_required"
		}
	}
	b := jsonx.Build(dst).Text("trigger_id", j.ID).Text("target_agent_id", j.Target)
	b = b.Text("action", j.Action()).Text("result", result).Text("job_status", j.Status.String())
	if j.Status == threadstore.Deferred {
		why := "human_input_busy"
		if j.Code == threadstore.CodeRateLimited {
			why = "rate_limited"
		}
		b = timed(b.Text("defer_reason", why), "deferred_until", j.CreatedAt+s.cfg.MaxDefer.Milliseconds())
	}
	if f := j.Status.Fallback(j.Runtime); f != "" {
		template := s.cfg.Spawn
		if f == threadstore.ResumeSession {
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

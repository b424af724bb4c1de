package threads

import (
	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
	"trunkline/engine/threadstore/prompt"
	"trunkline/handlers/threads/method"
)

func (c *call) schedule(dst []byte) []byte {
	c.audited()
	p := c.in.Plan()
	text := prompt.Sanitize(nil, jsonx.Unescape(c.in.Prompt()))
	switch wakes, posts := p.Target != "", len(p.Body) > 0; {
	case (p.Cron == "") == (p.Every == 0), wakes == posts:
		c.out.Fault = &method.Fault{Condition: method.Invalid, Message: "needs cron or every_ms, message or trigger"}
	case c.actor.Rank != threadstore.Coordinator && (wakes || threadstore.Kind(p.Kind) == threadstore.System):
		c.out.Fault = &method.Fault{Condition: method.Forbidden, Message: "triggers and kind system need a coordinator"}
	case wakes && !prompt.Fits(text):
		c.out.Fault = &method.Fault{Condition: method.Invalid, Message: "trigger.trigger_prompt is empty or too long"}
	}
	if p.Prompt = string(text); c.out.Fault != nil {
		return dst
	}
	v, r, ref := c.s.engine.CreateSchedule(&c.actor, c.in.Thread(), &p, c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index, c.out.Replay = r.Index, r.Replay
	b := optionalTime(jsonx.Build(dst).Text("schedule_id", v.Moved.ID), "next_at", v.NextAt)
	return timed(b, "created_at", r.At).End()
}

// change runs cancel_message, delete_schedule and update_schedule.
func (c *call) change(dst []byte) []byte {
	c.audited()
	cancels := c.row.Name == method.Cancel
	change := threadstore.TimerChange{Operation: "mcp." + c.row.Name, Reason: string(c.in.Reason()), Deferred: cancels,
		End: c.row.Name != method.Reschedule, Paused: c.in.Paused()}
	r, ref := c.s.engine.ChangeTimer(&c.actor, c.in.Timer(), change, c.now)
	if c.refuse(ref) {
		if cancels && ref.Code == threadstore.NoTimer {
			c.out.Fault = &method.Fault{Condition: method.Conflict, Message: "deferred_id names no message that waits"}
		}
		return dst
	}
	c.out.Index = r.Index
	return append(dst, `{"ok":true}`...)
}

// excerpt bounds the text of a message in a list, in bytes.
const excerpt = 80

func (c *call) schedules(dst []byte) []byte {
	list, index, ref := c.s.engine.Schedules(&c.actor, c.in.Thread(), c.now)
	if c.refuse(ref) {
		return dst
	}
	c.out.Index = index
	dst = append(dst, `{"schedules":[`...)
	for i := range list {
		v, p, m, id := &list[i], &list[i].Plan, &list[i].Moved, "schedule_id"
		if v.Deferred() {
			id = "deferred_id"
		}
		b := optional(jsonx.Build(jsonx.AppendComma(dst)).Text(id, m.ID), "cron", p.Cron)
		if p.Every > 0 {
			b = b.Int("every_ms", p.Every)
		}
		b = optional(optional(optional(b, "time_zone", p.Zone), "target_agent_id", p.Target), "reason", p.Reason)
		b = optional(b, "text", jsonx.Clip(string(jsonx.Unescape(p.Body)), excerpt)).Bool("paused", m.Paused)
		b = optionalTime(optionalTime(optional(b, "paused_reason", m.Reason), "next_at", v.NextAt), "last_at", m.Last)
		dst = timed(b.Text("created_by", v.Agent), "created_at", v.CreatedAt).End()
	}
	return append(dst, `]}`...)
}

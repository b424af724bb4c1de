package threads

import (
	"net/url"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/method"
)

// query reads the parameters of a GET route. Each may be given once.
type query struct {
	values url.Values
	fault  *method.Fault
}

func (q *query) text(name string) string {
	list := q.values[name]
	if len(list) > 1 && q.fault == nil {
		q.fault = &method.Fault{Condition: method.Invalid, Message: name + " is given twice"}
	}
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (q *query) number(name string, without, from, to uint64) uint64 {
	text := q.text(name)
	if text == "" {
		return without
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if (err != nil || n < from || n > to) && q.fault == nil {
		q.fault = &method.Fault{Condition: method.Invalid, Message: name + " is not an integer from " + strconv.FormatUint(from, 10) + " to " + strconv.FormatUint(to, 10)}
	}
	return n
}

// mayRead refuses participants: the extensions are for coordinators, operators and auditors
// (threads §3.1).
func (s *Service) mayRead(c *method.Caller, what string) (threadstore.Actor, *method.Fault) {
	row := method.Row{Name: what, Auditor: method.Yes, Coordinator: method.Yes}
	claims := c.Claims
	return threadstore.Actor{Workspace: claims.Workspace, Agent: claims.Agent, Rank: threadstore.Coordinator}, row.Authorize(claims)
}

// maxPage bounds the events of a page, of which there is at least one (threads §6).
const maxPage = 4 << 20

// Audit answers GET /v1/audit (threads §4.11).
func (s *Service) Audit(c *method.Caller, values url.Values, dst []byte) ([]byte, *method.Fault) {
	q := query{values: values}
	after, limit := q.number("after", 0, 0, 1<<53-1), q.number("limit", 100, 1, 500)
	thread := q.text("thread_id")
	actor, f := s.mayRead(c, "audit")
	if f == nil {
		f = q.fault
	}
	if f != nil {
		return dst, f
	}
	dst = append(dst, `{"events":[`...)
	first := len(dst)
	next, more, err := s.engine.Audit(actor.Workspace, after, int(limit), thread, func(ev *threadstore.AuditEvent) bool {
		before := len(dst)
		if dst = appendEvent(jsonx.AppendComma(dst), ev); before > first && len(dst) > first+maxPage {
			dst = dst[:before]
			return false
		}
		return true
	})
	if err != nil {
		return dst, s.fault(&threadstore.Refusal{Code: threadstore.Failed, Err: err})
	}
	dst = strconv.AppendUint(append(dst, `],"next_after":`...), next, 10)
	return append(strconv.AppendBool(append(dst, `,"has_more":`...), more), '}'), s.confirmed()
}

func appendEvent(dst []byte, ev *threadstore.AuditEvent) []byte {
	b := jsonx.Build(dst).Int("event_id", int64(ev.Number)).Text("workspace_id", ev.Workspace)
	b = optional(b, "actor_agent_id", ev.Actor)
	b = optional(b, "actor_role", ev.Role)
	b = b.Text("operation", ev.Operation).Text("resource_type", ev.ResourceType).Text("resource_id", ev.Resource)
	b = optional(b, "thread_id", ev.Thread)
	b = optional(b, "request_id", ev.Request).Text("result", ev.Result)
	if len(ev.Payload) > 0 {
		b = b.Raw("payload", ev.Payload)
	}
	return timed(b, "created_at", ev.At).End()
}

func optional(b jsonx.Builder, name, text string) jsonx.Builder {
	if text == "" {
		return b
	}
	return b.Text(name, text)
}

func optionalTime(b jsonx.Builder, name string, at int64) jsonx.Builder {
	if at == 0 {
		return b
	}
	return timed(b, name, at)
}

// Jobs answers GET /v1/trigger_jobs (threads §4.11).
func (s *Service) Jobs(c *method.Caller, values url.Values, dst []byte) ([]byte, *method.Fault) {
	q := query{values: values}
	thread, limit := q.text("thread_id"), q.number("limit", 50, 1, 200)
	actor, f := s.mayRead(c, "trigger_jobs")
	if f == nil {
		f = q.fault
	}
	if f == nil && thread == "" {
		f = &method.Fault{Condition: method.Invalid, Message: "thread_id is required"}
	}
	if f != nil {
		return dst, f
	}
	jobs, ref := s.engine.Jobs(&actor, []byte(thread), int(limit))
	if ref.Code != threadstore.OK {
		return dst, s.fault(&ref)
	}
	dst = append(dst, `{"jobs":[`...)
	for i := range jobs {
		dst = appendJob(jsonx.AppendComma(dst), &jobs[i])
	}
	return append(dst, `]}`...), s.confirmed()
}

func appendJob(dst []byte, j *threadstore.Job) []byte {
	b := jsonx.Build(dst).Text("trigger_id", j.ID).Text("thread_id", j.ThreadID).Text("workspace_id", j.Workspace)
	b = optional(b.Text("target_agent_id", j.Target), "target_session_id", j.TargetSession)
	b = b.Text("reason", j.Reason).Text("job_status", j.Status.String()).Int("attempts", int64(j.Attempts)).Int("max_retries", int64(j.MaxRetries))
	if !j.Final {
		b = optionalTime(b, "next_attempt_at", j.NextAt)
	}
	b = optional(b, "last_error_code", j.Code)
	if j.Status == threadstore.JobFailed {
		b = b.Text("error_code", specCode(j.Code))
	}
	b = optionalTime(optionalTime(optionalTime(b, "delivered_at", j.DeliveredAt), "acknowledged_at", j.AckedAt), "completed_at", j.CompletedAt)
	return timed(timed(b, "created_at", j.CreatedAt), "updated_at", j.UpdatedAt).End()
}

// specCode returns the word of the contract for the cause of a failure.
func specCode(code string) string {
	switch code {
	case threadstore.CodeDeferTimeout:
		return method.HumanBusy.Codes().Spec
	case threadstore.CodeUnmanaged:
		return method.UnmanagedRuntime.Codes().Spec
	}
	return method.WakeFailed.Codes().Spec
}

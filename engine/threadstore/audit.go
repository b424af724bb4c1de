package threadstore

import (
	"encoding/binary"
	"sync"

	"trunkline/engine/journal"
)

// Results of audit events.
const (
	auditSuccess  = "success"
	auditRejected = "rejected"
)

// audit returns an event about a thread.
func (a *Actor) audit(operation, thread string, now int64) auditEvent {
	return auditEvent{At: now, Workspace: a.Workspace, Actor: a.Agent, Role: a.Role, Operation: operation,
		ResourceType: "thread", Resource: thread, Thread: thread, Request: a.Request, Result: auditSuccess}
}

// recordAudited writes a record together with the row of its audit event. Caller holds the lock
// that decided it.
func (e *Engine) recordAudited(kind byte, rec marshaler, event *auditEvent) journal.Index {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	index := e.append(kind, rec)
	e.addEvent(&e.hot, event, index)
	return index
}

// addEvent adds the row of an audit event to h. Caller holds the lock of h.
func (e *Engine) addEvent(h *hot, event *auditEvent, index journal.Index) {
	number := index
	if number == 0 {
		e.events++ // nothing is journaled
		number = e.events
	}
	row := appendAuditKey(nil, event.Workspace, number)
	key := len(row)
	row, _ = event.MarshalMsg(row) // it does not fail
	h.add(row, entry{index: index, key: uint32(key)})
}

// unknownWorkspace is that of events without a verified token (threads D41).
const unknownWorkspace = "unknown"

// rejections bounds the events about refused requests, by caller (threads §6). All requests without
// a verified token are of one caller.
type rejections struct {
	mu      sync.Mutex
	callers map[agentKey]*rejecting
}

// rejecting is the refused requests of a caller in one second.
type rejecting struct {
	second     int64
	count      int        // of those that were recorded
	suppressed uint64     // those that were not, since the last that was
	last       auditEvent // the latest of them
}

// maxRejections is how many of a caller are recorded in a second, maxRejecting how many callers are
// counted apart: further ones are counted with requests without a verified token.
const (
	maxRejections = 10
	maxRejecting  = 4096
)

// take reports whether an event may be recorded, whose payload it completes.
func (r *rejections) take(ev *auditEvent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	who := agentKey{ev.Workspace, ev.Actor}
	if r.callers[who] == nil {
		if len(r.callers) >= maxRejecting {
			who = agentKey{unknownWorkspace, ""}
		}
		if r.callers[who] == nil {
			r.callers[who] = &rejecting{}
		}
	}
	c := r.callers[who]
	if second := ev.At / 1000; second != c.second {
		c.second, c.count = second, 0
	}
	if c.count == maxRejections {
		c.suppressed++
		c.last = *ev
		return false
	}
	c.count++
	ev.suppress(c.suppressed)
	c.suppressed = 0
	return true
}

// over returns the events of callers that had some suppressed and whose second is over: the latest
// of each stands for all of them.
func (r *rejections) over(now int64) (list []auditEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for who, c := range r.callers {
		if c.second == now/1000 {
			continue
		}
		delete(r.callers, who)
		if c.suppressed > 0 {
			c.last.suppress(c.suppressed - 1)
			list = append(list, c.last)
		}
	}
	return list
}

// suppress ends the payload of an event, which stands for n more.
func (ev *auditEvent) suppress(n uint64) {
	if n > 0 {
		ev.Payload = appendUint(append(ev.Payload, `,"suppressed":`...), n)
	}
	ev.Payload = append(ev.Payload, '}')
}

// Rejected notes a request that was answered with 401 or 403. a is nil where there is no verified
// token. Nothing waits for it.
func (e *Engine) Rejected(a *Actor, operation, request, code string, now int64) {
	if e.refuses() {
		return
	}
	ev := auditEvent{At: now, Workspace: unknownWorkspace, Operation: operation, ResourceType: "request", Resource: request,
		Request: request, Result: auditRejected}
	ev.Payload = append(append(append(ev.Payload, `{"code":"`...), code...), '"')
	if a != nil {
		ev.Workspace, ev.Actor, ev.Role = a.Workspace, a.Agent, a.Role
	}
	if e.rejections.take(&ev) {
		e.recordAudited(opAudit, &ev, &ev)
	}
}

// recordSuppressed records what stands for refused requests that were not recorded.
func (e *Engine) recordSuppressed(now int64) {
	if e.refuses() {
		return
	}
	for _, ev := range e.rejections.over(now) {
		e.recordAudited(opAudit, &ev, &ev)
	}
}

// AuditEvent is a row of the audit log. Empty texts are absent.
type AuditEvent struct {
	Number uint64
	auditEvent
}

// Scans of the audit log look at this many rows at most; the rest comes with the next page.
const maxAuditScan = 10_000

// Audit calls f with the events of a workspace behind a number, in order, at most limit, until f
// does not take one; thread, if not empty, selects those of one thread. It returns the number after
// which the next page begins, and whether there may be more.
func (e *Engine) Audit(workspace string, after uint64, limit int, thread string, f func(*AuditEvent) (taken bool)) (next uint64, more bool, err error) {
	if err = e.storeUpTo(e.safe()); err != nil {
		return 0, false, err
	}
	lower, upper := appendAuditKey(nil, workspace, after+1), appendAuditKey(nil, workspace, ^uint64(0))
	next = after
	looked, bad := 0, error(nil)
	err = e.disk.Scan(lower, upper, false, func(key, value []byte) bool {
		if looked == maxAuditScan || limit == 0 {
			more = true
			return false
		}
		looked++
		ev := AuditEvent{Number: binary.BigEndian.Uint64(key[len(key)-8:])}
		if _, bad = ev.UnmarshalMsg(value); bad != nil {
			return false
		}
		if thread == "" || ev.Thread == thread {
			if !f(&ev) {
				more = true
				return false
			}
			limit--
		}
		next = ev.Number
		return true
	})
	if err == nil {
		err = bad
	}
	return next, more, err
}

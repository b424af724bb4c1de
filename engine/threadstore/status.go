package threadstore

import (
	"strings"

	"trunkline/codec/jsonx"
)

// Prefixes of a reason that overrides (threads §4.6).
var overridePrefixes = [...]string{"human_override:", "coordinator_override:"}

// OverridePrefixes returns how the reason of an override begins.
func OverridePrefixes() []string { return overridePrefixes[:] }

// overrides reports whether a reason is an override: a known prefix and something behind it.
func overrides(reason string) bool {
	for _, p := range overridePrefixes {
		if rest, ok := strings.CutPrefix(reason, p); ok {
			return strings.TrimSpace(rest) != ""
		}
	}
	return false
}

// Change asks for another status of a thread.
type Change struct {
	To       Status
	Reason   string
	Metadata []byte // a JSON object for the audit, or nothing
}

// validateChange applies threads §4.6 and §5.1 to a change from one status to another.
func validateChange(a *Actor, from Status, c *Change) Refusal {
	coordinator := a.Rank == Coordinator
	switch {
	case from == c.To:
		return Refusal{}
	case from == Closed, from == Resolved && c.To != Closed, from == Blocked && c.To == Resolved:
		return Refusal{Code: BadTransition, From: from, Status: c.To}
	case from == Blocked && c.To == Active && !coordinator, c.To == Closed && !coordinator:
		return Refusal{Code: NeedsAuthority, From: from, Status: c.To}
	case from == Blocked && c.To == Closed && !overrides(c.Reason):
		return Refusal{Code: NeedsOverride, From: from, Status: c.To}
	}
	return Refusal{}
}

// SetStatus changes the status of a thread (threads §4.6), and returns its view afterwards.
func (e *Engine) SetStatus(a *Actor, id []byte, c *Change, now int64) (v View, r Receipt, _ Refusal) {
	t, code := e.open(a, id, a.Rank == Participant)
	if code != OK {
		return v, r, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	if ref := validateChange(a, t.status, c); ref.Code != OK {
		ref.Index = t.index
		return v, r, ref
	}
	if e.refuses() {
		return v, r, Refusal{Code: NotStored}
	}
	rec := statusChanged{Number: t.made.Number, At: t.updated, Status: uint8(c.To), Audit: a.audit("mcp.update_thread_status", t.made.ID, now)}
	if c.To != t.status {
		rec.At = max(now, t.updated)
	}
	rec.Audit.Payload = changePayload(t.status, c)
	t.index = e.recordAudited(opStatus, &rec, &rec.Audit)
	e.directory.touch(t)
	if t.status, t.updated = c.To, rec.At; c.To == Closed {
		e.jobs.mu.Lock()
		e.failAll(t, codeClosed, now, nil)
		e.jobs.mu.Unlock()
	}
	return t.view(), Receipt{Index: t.index, At: rec.At}, Refusal{}
}

// changePayload is what the audit shows of a change.
func changePayload(from Status, c *Change) []byte {
	b := jsonx.Build(nil).Text("from_status", from.String()).Text("to_status", c.To.String()).Text("reason", c.Reason)
	if len(c.Metadata) > 0 {
		b = b.Raw("metadata", c.Metadata)
	}
	if from == Blocked && c.To == Closed {
		b = b.Bool("override", true)
	}
	if from == c.To {
		b = b.Bool("noop", true)
	}
	return b.End()
}

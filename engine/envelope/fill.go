package envelope

import "time"

// Fill sets the identifiers and times that are missing and that the form and shape add, or that
// stood there as null (envelope §3.1, §3.2): new identifiers, and now. It changes nothing else.
func (e *Env) Fill(now time.Time, newID IDSource) {
	adds := e.form == JSON || e.shape == Nested
	e.fillID(EnvelopeID, EnvelopePrefix, adds, newID)
	e.fillID(RequestID, requestPrefix, adds, newID)
	e.fillID(SessionID, sessionPrefix, adds, newID)
	e.fillTime(ReceivedAt, adds, now)
	e.fillTime(CreatedAt, e.shape == Nested, now)
	if e.form == MsgPack && e.shape == Nested && (e.f[RemainingGoals].raw == nil || e.f[GoalCompletionStatus].raw == nil) {
		var g goals // boundary A completes them itself
		g.normalise(e)
		g.store(e)
	}
}

func (e *Env) fillID(k Key, prefix string, add bool, newID IDSource) {
	if f := &e.f[k]; f.raw == nil && (add || f.null) {
		e.NewID(k, prefix, newID)
	}
}

func (e *Env) fillTime(k Key, add bool, now time.Time) {
	if f := &e.f[k]; f.raw == nil && (add || f.null) {
		e.setTime(k, now)
	}
}

// NewID gives the envelope a new identifier.
func (e *Env) NewID(k Key, prefix string, newID IDSource) {
	var buf [24]byte
	e.SetText(k, newID(append(buf[:0], prefix...)))
}

// dropLeftovers forgets the members of an error object that an earlier reply left in the envelope
// (envelope §3.2).
func (e *Env) dropLeftovers() {
	var isError, hasCode bool
	for i := range e.top {
		m := &e.top[i]
		if m.key != noKey || m.grp != noGroup {
			continue
		}
		switch string(e.unescape(m.spelled)) {
		case "error":
			isError = valueOf(e.form, m.raw).true()
		case "code":
			hasCode = valueOf(e.form, m.raw).Kind == String
		}
	}
	if !isError || !hasCode {
		return
	}
	for i := range e.top {
		m := &e.top[i]
		if m.key != noKey || m.grp != noGroup {
			continue
		}
		switch string(e.unescape(m.spelled)) {
		case "error", "code", "message":
			m.key = dropped
		}
	}
}

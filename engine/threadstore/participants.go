package threadstore

import (
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
)

// maxParticipants bounds the participants of a thread.
const maxParticipants = 256

// Membership asks for other participants of a thread. Its slices are borrowed.
type Membership struct {
	Add, Remove [][]byte
	Reason      string
}

// SetParticipants adds participants to a thread, then removes some (threads §4.12). One that is a
// participant already, or is none, stays as it is; without a change nothing is recorded. The
// cursor of a removed one goes, and its jobs end.
func (e *Engine) SetParticipants(a *Actor, id []byte, m *Membership, now int64) (v View, r Receipt, _ Refusal) {
	t, code := e.open(a, id, false)
	if code != OK {
		return v, r, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	if t.status == Closed {
		return v, r, Refusal{Code: ThreadClosed, Status: t.status, Index: t.index}
	}
	rec := participantsChanged{Number: t.made.Number, At: max(now, t.updated)}
	for _, agent := range m.Add {
		if !t.member(string(agent)) {
			rec.Added = append(rec.Added, string(agent))
		}
	}
	for _, agent := range m.Remove {
		if t.member(string(agent)) {
			rec.Removed = append(rec.Removed, string(agent))
		}
	}
	n := len(t.made.Participants) + len(rec.Added) - len(rec.Removed)
	switch {
	case len(rec.Added)+len(rec.Removed) == 0:
		return t.view(), Receipt{Index: t.index, At: t.updated}, Refusal{}
	case n < 1 || n > maxParticipants:
		return v, r, Refusal{Code: BadCount, N: int64(n), Index: t.index}
	case e.refuses():
		return v, r, Refusal{Code: NotStored}
	}
	rec.Audit = a.audit("mcp.update_participants", t.made.ID, now)
	rec.Audit.Payload = jsonx.Build(nil).Texts("added", rec.Added).Texts("removed", rec.Removed).Text("reason", m.Reason).End()
	e.jobs.mu.Lock() // before Begin: another request may hold it while it waits for its own
	defer e.jobs.mu.Unlock()
	e.store.Begin() // with the ends of jobs
	defer e.store.End()
	index := e.recordAudited(opMembers, &rec, &rec.Audit)
	t.setParticipants(&rec, index)
	e.directory.leave(t, rec.Removed)
	e.directory.join(t, rec.Added)
	e.failAll(t, codeCancelled, now, func(j *job) bool { return slices.Contains(rec.Removed, j.Target) })
	e.changed(t, t.index, t.latest+1)
	e.directory.touch(t)
	return t.view(), Receipt{Index: t.index, At: rec.At}, Refusal{}
}

// setParticipants applies a change of participants. Caller holds t.mu, unless it replays.
func (t *thread) setParticipants(rec *participantsChanged, index journal.Index) {
	list := slices.Concat(t.made.Participants, rec.Added)
	list = slices.DeleteFunc(list, func(agent string) bool { return slices.Contains(rec.Removed, agent) })
	t.made.Participants, t.updated, t.index = list, rec.At, index
	for _, agent := range rec.Removed {
		delete(t.cursors, agent)
		t.unread.Notified = slices.DeleteFunc(t.unread.Notified, func(n notified) bool { return n.Agent == agent })
	}
}

package threads

import (
	"fmt"

	"trunkline/codec/jsonx"
)

// Record is a record of the journal, decoded for people.
type Record struct {
	kind byte
	rec  unmarshaler
}

var recordNames = map[byte]string{opThread: "create", opMessage: "message", opCursor: "cursor", opStatus: "status", opSession: "session",
	opAudit: "audit", opJob: "job", opNotify: "notified", opArchive: "archived"}

// ParseRecord decodes a record without its tag. It checks kind and parts; only a replay shows
// whether it fits the state.
func ParseRecord(rec []byte) (r Record, err error) {
	if len(rec) == 0 {
		return r, fmt.Errorf("%w: it is empty", errBadRecord)
	}
	r.kind = rec[0]
	switch r.kind {
	case opThread:
		r.rec = &threadMade{}
	case opMessage:
		r.rec = &messagePosted{}
	case opCursor:
		r.rec = &cursorMoved{}
	case opStatus:
		r.rec = &statusChanged{}
	case opSession:
		r.rec = &sessionState{}
	case opAudit:
		r.rec = &auditEvent{}
	case opJob:
		r.rec = &jobState{}
	case opNotify:
		r.rec = &notified{}
	case opArchive:
		r.rec = &archived{}
	default:
		return r, fmt.Errorf("%w: kind %q", errBadRecord, r.kind)
	}
	if err = unmarshal(r.rec, rec[1:]); err != nil {
		return r, err
	}
	if m, ok := r.rec.(*messagePosted); ok {
		_, err = parseRow(m.Row)
	}
	return r, err
}

// Kind names what the record does.
func (r *Record) Kind() string { return recordNames[r.kind] }

// Append appends the members of the record.
func (r *Record) Append(b jsonx.Builder) jsonx.Builder {
	switch m := r.rec.(type) {
	case *threadMade:
		b = b.Int("thread", int64(m.Number)).Text("thread_id", m.ID).Text("workspace_id", m.Workspace).Text("title", m.Title)
		return appendAt(b.Texts("participants", m.Participants), m.At)
	case *messagePosted:
		row, _ := parseRow(m.Row)
		return b.Int("thread", int64(m.Number)).Int("seq", int64(m.Seq)).Bytes("idempotency_key", row.key).Raw("message", row.appendJSON(nil, m.Seq))
	case *cursorMoved:
		return appendAt(b.Int("thread", int64(m.Number)).Text("agent_id", m.Agent).Int("seq", int64(m.Cursor.Seq)), m.Cursor.At)
	case *statusChanged:
		return appendAudited(b.Int("thread", int64(m.Number)).Text("status", Status(min(m.Status, uint8(Closed))).String()), &m.Audit)
	case *sessionState:
		b = b.Text("workspace_id", m.Workspace).Text("agent_id", m.Agent).Text("session_id", m.Session).Text("runtime", m.Runtime)
		return appendAt(b, m.At)
	case *auditEvent:
		return appendAudited(b, m)
	case *jobState:
		b = b.Int("thread", int64(m.Thread)).Text("trigger_id", m.ID).Text("target_agent_id", m.Target)
		b = b.Text("job_status", JobStatus(min(m.Status, uint8(FallbackSpawn))).String()).Bool("final", m.Final).Text("code", m.Code)
		return appendAt(b.Int("attempts", int64(m.Attempts)), m.UpdatedAt)
	case *notified:
		return b.Int("thread", int64(m.Number)).Text("agent_id", m.Agent).Int("seq", int64(m.Seq))
	case *archived:
		return appendAt(b.Int("up_to", int64(m.UpTo)).Text("set", m.Set.Name).Int("chunks", int64(m.Set.Chunks)), m.At)
	}
	return b
}

func appendAt(b jsonx.Builder, at int64) jsonx.Builder {
	return append(AppendTime(append(b.Name("at"), '"'), at), '"')
}

func appendAudited(b jsonx.Builder, ev *auditEvent) jsonx.Builder {
	b = b.Text("workspace_id", ev.Workspace).Text("actor_agent_id", ev.Actor).Text("operation", ev.Operation).Text("resource_id", ev.Resource)
	return appendAt(b.Text("result", ev.Result), ev.At)
}

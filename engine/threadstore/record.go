package threadstore

import (
	"errors"
	"fmt"

	"trunkline/codec/jsonx"
)

//go:generate go run github.com/tinylib/msgp -unexported -file record.go -o record_gen.go -tests=false -io=false

// The records of the journal and of snapshots, each behind one byte that names its kind. They are
// MessagePack tuples: a field is added at the end.

//msgp:tuple threadMade messagePosted cursorMoved statusChanged auditEvent sessionState
//msgp:tuple cursorState threadState engineState jobState notified unread loop
//msgp:tuple archived archivedSet archiveState participantsChanged
//msgp:tuple threadCut erasure rowBatch
//msgp:ignore Record

// The kinds of records. Those of a snapshot are upper case.
const (
	opThread  = 't' // threadMade
	opMessage = 'm' // messagePosted
	opCursor  = 'c' // cursorMoved
	opStatus  = 's' // statusChanged
	opSession = 'h' // sessionState
	opAudit   = 'a' // auditEvent
	opJob     = 'j' // jobState
	opNotify  = 'n' // notified
	opArchive = 'r' // archived
	opMembers = 'p' // participantsChanged
	opWebhook = 'w' // webhookState
	opBacklog = 'b' // backlogState
	opTimer   = 'd' // timerState
	opMoved   = 'g' // timerMoved
	opCut     = 'k' // threadCut
	opErasure = 'e' // erasure
	opRebuild = 'y' // archiveState
	opRows    = 'o' // rowBatch

	snapEngine  = 'E' // engineState
	snapThread  = 'T' // threadState
	snapSession = 'H' // sessionState
	snapJob     = 'J' // jobState
	snapWebhook = 'W' // webhookState; before the threads
	snapBacklog = 'B' // backlogState; behind its thread
	snapTimer   = 'D' // timerState
	snapCut     = 'K' // threadCut; behind the thread
	snapErasure = 'X' // erasure
	snapArchive = 'A' // archiveState; behind all of the others
)

// logged and snapshot make an empty record of each kind of the log and of snapshots.
var (
	logged = map[byte]func() unmarshaler{
		opThread:  func() unmarshaler { return new(threadMade) },
		opMessage: func() unmarshaler { return new(messagePosted) },
		opCursor:  func() unmarshaler { return new(cursorMoved) },
		opStatus:  func() unmarshaler { return new(statusChanged) },
		opSession: func() unmarshaler { return new(sessionState) },
		opAudit:   func() unmarshaler { return new(auditEvent) },
		opJob:     func() unmarshaler { return new(jobState) },
		opNotify:  func() unmarshaler { return new(notified) },
		opArchive: func() unmarshaler { return new(archived) },
		opMembers: func() unmarshaler { return new(participantsChanged) },
		opWebhook: func() unmarshaler { return new(webhookState) },
		opBacklog: func() unmarshaler { return new(backlogState) },
		opTimer:   func() unmarshaler { return new(timerState) },
		opMoved:   func() unmarshaler { return new(timerMoved) },
		opCut:     func() unmarshaler { return new(threadCut) },
		opErasure: func() unmarshaler { return new(erasure) },
		opRebuild: func() unmarshaler { return new(archiveState) },
		opRows:    func() unmarshaler { return new(rowBatch) },
	}
	snapshot = map[byte]func() unmarshaler{
		snapEngine:  func() unmarshaler { return new(engineState) },
		snapThread:  func() unmarshaler { return new(threadState) },
		snapSession: func() unmarshaler { return new(sessionState) },
		snapJob:     func() unmarshaler { return new(jobState) },
		snapWebhook: func() unmarshaler { return new(webhookState) },
		snapBacklog: func() unmarshaler { return new(backlogState) },
		snapTimer:   func() unmarshaler { return new(timerState) },
		snapCut:     func() unmarshaler { return new(threadCut) },
		snapErasure: func() unmarshaler { return new(erasure) },
		snapArchive: func() unmarshaler { return new(archiveState) },
	}
)

type unmarshaler interface {
	UnmarshalMsg(b []byte) ([]byte, error)
}

// decode reads a record of one of some kinds, nil with an error.
func decode(kinds map[byte]func() unmarshaler, rec []byte) (unmarshaler, error) {
	if len(rec) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errBadRecord)
	}
	empty := kinds[rec[0]]
	if empty == nil {
		return nil, badKind(rec[0])
	}
	made := empty()
	if err := unmarshal(made, rec[1:]); err != nil {
		return nil, err
	}
	return made, nil
}

func unmarshal(to unmarshaler, b []byte) error {
	rest, err := to.UnmarshalMsg(b)
	if err == nil && len(rest) > 0 {
		err = errors.New("more follows")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errBadRecord, err)
	}
	return nil
}

func badKind(kind byte) error { return fmt.Errorf("%w: kind %q", errBadRecord, kind) }

// threadMade begins a thread.
type threadMade struct {
	Number       uint64 // names the thread in rows and records
	At           int64
	ID           string
	Workspace    string
	Title        string
	Type         uint8
	Participants []string
	Creator      string // with Key: who may repeat the request
	Key          string
	Digest       []byte
	Audit        auditEvent
}

// messagePosted appends a message; Row is its row (row.go).
type messagePosted struct {
	Number uint64
	Seq    uint64
	Row    []byte
}

// cursorMoved moves the cursor of one agent.
type cursorMoved struct {
	Number uint64
	Agent  string
	Cursor cursorState
}

// statusChanged changes the status of a thread. A change to the status that it has is only audited.
type statusChanged struct {
	Number uint64
	At     int64
	Status uint8
	Audit  auditEvent
}

// participantsChanged adds participants to a thread, and then removes some.
type participantsChanged struct {
	Number  uint64
	At      int64
	Added   []string
	Removed []string
	Audit   auditEvent
}

// auditEvent is one row of the audit log (threads §3.3). Its number is the index of its record.
type auditEvent struct {
	At           int64
	Workspace    string
	Actor        string // empty: none
	Role         string
	Operation    string
	ResourceType string
	Resource     string
	Thread       string
	Request      string
	Result       string
	Payload      []byte // a JSON object, or nothing
}

// sessionState is the runtime of one agent (threads §3.3).
type sessionState struct {
	Workspace string
	Agent     string
	Session   string
	Runtime   string
	Managed   bool
	Resumable bool
	Status    uint8
	At        int64
	Index     uint64 // of its last record; in a snapshot only
}

// cursorState is how far an agent has read.
type cursorState struct {
	Agent   string
	Seq     uint64
	Message []byte // raw identifier of the message at Seq; empty at 0
	At      int64
}

// threadState is a thread in a snapshot, with everything up to the record Index.
type threadState struct {
	Index   uint64
	Made    threadMade
	Status  uint8
	Updated int64
	Latest  uint64
	LastID  []byte
	LastAt  int64
	Cursors []cursorState
	Unread  unread
	Loop    loop
}

// unread is what decides whether an agent has unread messages: the last message of an agent, not of
// the system, and the last one of another agent than that.
type unread struct {
	Sender      string
	Last, Other uint64
	Notified    []notified
}

// notified is up to where unread messages of an agent were reported.
type notified struct {
	Number uint64 // of the thread; in the journal only
	Agent  string
	Seq    uint64
}

// loop counts the final failures of a thread's jobs since the last success (threads §5.5).
type loop struct {
	Failures uint32
	Same     uint32 // in a row with Code
	Code     string
}

// jobState is a trigger job (threads §3.3).
type jobState struct {
	Number        uint64
	ID            string
	Thread        uint64
	ThreadID      string
	Workspace     string
	Caller        string // with Key: who may repeat the request
	Key           string
	Digest        []byte
	Target        string
	TargetSession string
	Reason        string
	Prompt        string
	Status        uint8
	Final         bool
	Ended         bool // this record made it final
	Started       bool // a fallback process was started, its end is not known
	Stale         bool // the session was stale at the request
	Attempts      uint32
	Resumes       uint32
	NextAt        int64
	Code          string
	DeliveredAt   int64
	AckedAt       int64
	CompletedAt   int64
	CreatedAt     int64
	UpdatedAt     int64
	Index         uint64     // of its last record; in a snapshot only
	Audit         auditEvent // without an operation: none
}

// engineState is what a snapshot has beside the threads.
type engineState struct {
	Stored   uint64 // the mark of the rows: they hold every record up to it
	Identity []byte // of the rows
}

// archived: the rows of the records up to UpTo are in the archive.
type archived struct {
	Lineage []byte // names the archive
	UpTo    uint64
	At      int64
	Set     archivedSet // that was begun or has grown; without a name: none
}

// archivedSet is a set of the archive: its first chunks, which count.
type archivedSet struct {
	Name   string
	Chunks uint32
	UpTo   uint64 // it goes from the end of the set before up to here
}

// archiveState is what is in the archive.
type archiveState struct {
	Lineage []byte
	UpTo    uint64
	Sets    []archivedSet // oldest first
}

// threadCut removes the messages of a thread before First.
type threadCut struct {
	Number, First uint64
}

// erasure erases the text of a thread, or of an agent in its workspace, that is before its record.
// A later record is that it is purged.
type erasure struct {
	Number    uint64
	At        int64
	Workspace string
	Thread    uint64 // 0: of an agent
	ThreadID  string
	Agent     string
	Reason    string
	Purged    int64  // when no file of the leader had it, nor the streams of a cluster; 0: not yet
	Index     uint64 // of its last record; in a snapshot only
	Audit     auditEvent
}

// rowBatch are rows as they are, keys and values in turn. In the journal it is padding.
type rowBatch struct {
	Rows [][]byte
}

// Record is a record of the journal, decoded for people.
type Record struct {
	kind byte
	rec  unmarshaler
}

var recordNames = map[byte]string{opThread: "create", opMessage: "message", opCursor: "cursor", opStatus: "status", opSession: "session",
	opAudit: "audit", opJob: "job", opNotify: "notified", opArchive: "archived", opMembers: "participants",
	opWebhook: "webhook", opBacklog: "backlog", opTimer: "timer", opMoved: "moved",
	opCut: "cut", opErasure: "erasure", opRebuild: "rebuilt", opRows: "rows"}

// ParseRecord decodes a record without its tag. It checks kind and parts; only a replay shows
// whether it fits the state.
func ParseRecord(rec []byte) (r Record, err error) {
	if r.rec, err = decode(logged, rec); err != nil {
		return r, err
	}
	r.kind = rec[0]
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
	case *participantsChanged:
		return appendAudited(b.Int("thread", int64(m.Number)).Texts("added", m.Added).Texts("removed", m.Removed), &m.Audit)
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
	case *threadCut:
		return b.Int("thread", int64(m.Number)).Int("first_seq", int64(m.First))
	case *erasure:
		b = b.Int("erasure", int64(m.Number)).Text("workspace_id", m.Workspace).Text("thread_id", m.ThreadID)
		return appendAt(b.Text("agent_id", m.Agent).Text("reason", m.Reason).Bool("purged", m.purged()), m.At)
	case *archived:
		return appendAt(b.Int("up_to", int64(m.UpTo)).Text("set", m.Set.Name).Int("chunks", int64(m.Set.Chunks)), m.At)
	case *webhookState:
		return b.Text("webhook", m.Webhook.Name).Bool("removed", m.Removed).Int("dead_letters", int64(len(m.Dead)))
	case *backlogState:
		b = b.Int("thread", int64(m.Thread)).Text("webhook", m.Webhook).Int("sent", int64(m.Sent))
		return b.Int("attempts", int64(m.Attempts)).Int("dead_letters", int64(len(m.Dead)))
	case *timerState:
		return appendAt(b.Int("thread", int64(m.Thread)).Text("id", m.Moved.ID).Text("agent_id", m.Agent), m.CreatedAt)
	case *timerMoved:
		return appendAt(b.Text("id", m.ID).Bool("paused", m.Paused).Bool("ended", m.Ended), m.At)
	}
	return b
}

func appendAt(b jsonx.Builder, at int64) jsonx.Builder { return appendMoment(b, "at", at) }

func appendMoment(b jsonx.Builder, name string, at int64) jsonx.Builder {
	return append(AppendTime(append(b.Name(name), '"'), at), '"')
}

func appendAudited(b jsonx.Builder, ev *auditEvent) jsonx.Builder {
	b = b.Text("workspace_id", ev.Workspace).Text("actor_agent_id", ev.Actor).Text("operation", ev.Operation).Text("resource_id", ev.Resource)
	return appendAt(b.Text("result", ev.Result), ev.At)
}

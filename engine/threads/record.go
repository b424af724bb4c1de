package threads

//go:generate go run github.com/tinylib/msgp -unexported -file record.go -o record_gen.go -tests=false -io=false

// The records of the journal and of snapshots, each behind one byte that names its kind. They are
// MessagePack tuples: a field is added at the end.

//msgp:tuple threadMade messagePosted cursorMoved statusChanged auditEvent sessionState
//msgp:tuple cursorState threadState engineState jobState notified unread loop
//msgp:tuple archived archivedSet archiveState

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

	snapEngine  = 'E' // engineState
	snapThread  = 'T' // threadState
	snapSession = 'H' // sessionState
	snapJob     = 'J' // jobState
	snapArchive = 'A' // archiveState; behind all of the others
)

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

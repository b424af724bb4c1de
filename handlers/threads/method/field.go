package method

// Type is what a field holds (threads §3.2).
type Type uint8

// The types. Those behind Enum occur in outputs only.
const (
	ID Type = iota
	Key
	Line
	Text
	Object
	Integer // from Min to Max
	Bool
	Enum
	IDs // 1 to maxParticipants texts of type ID
	Moment

	Time
	True
	Texts
	Messages
	Threads
	Objects
)

// Limits of fields (threads §3.2, §6).
const (
	maxID           = 256
	maxKey          = 200
	maxLine         = 1024
	maxReason       = 256 // of a trigger
	maxMetadata     = 256 << 10
	metadataDepth   = 32
	maxParticipants = 256
	maxSeq          = 1<<53 - 1
	maxWait         = 60_000 // milliseconds of wait_ms
	minEvery        = 1000   // milliseconds
	maxCron         = 256

	// MaxDelay bounds how far ahead a message is deferred, and an interval, in milliseconds.
	MaxDelay = 366 * 24 * 3600_000
)

// Field is a field of an input or an output.
type Field struct {
	Name     string
	Type     Type
	Required bool // of an output: it is always there
	Min, Max int64
	Values   []string // of an Enum
	Default  string   // JSON text; empty: none
	Fields   []Field  // of an Object; nil: any
	// slot is where the value goes; numSlots for outputs and objects with Fields.
	slot slot
}

// slot is a place in an Input.
type slot uint8

const (
	slotWorkspace slot = iota
	slotAgent
	slotSession
	slotRole
	slotCreatedBy
	slotSender
	slotSenderSession
	slotVersion
	slotThread
	slotTitle
	slotType
	slotParticipants
	slotKey
	slotKind
	slotBody
	slotMetadata
	slotInReplyTo
	slotSince
	slotLimit
	slotLastRead
	slotStatus
	slotReason
	slotMaxMessages
	slotRuntime
	slotResumable
	slotMode
	slotTarget
	slotPrompt
	slotUnread
	slotOrder
	slotCursor
	slotWait
	slotRemove
	slotDeliver
	slotTimer
	slotCron
	slotEvery
	slotZone
	slotMisfire
	slotPaused

	numSlots
)

// longest is how many bytes a text has at most.
func (f *Field) longest() int {
	switch {
	case f.Max > 0:
		return int(f.Max)
	case f.Type == Key:
		return maxKey
	case f.Type == Line:
		return maxLine
	}
	return maxID
}

func (f Field) optional() Field { f.Required = false; return f }

func (f Field) def(json string) Field { f.Default = json; return f.optional() }

func required(name string, t Type, s slot) Field {
	return Field{Name: name, Type: t, Required: true, slot: s}
}

func integer(name string, from, to int64, s slot) Field {
	return Field{Name: name, Type: Integer, Required: true, Min: from, Max: to, slot: s}
}

func enum(name string, s slot, values ...string) Field {
	return Field{Name: name, Type: Enum, Required: true, Values: values, slot: s}
}

func out(name string, t Type) Field { return required(name, t, numSlots) }

// hints are the fields that every method takes: they must be as in the token (threads §3.1).
var hints = []Field{
	required("workspace_id", ID, slotWorkspace).optional(),
	required("agent_id", ID, slotAgent).optional(),
	required("session_id", ID, slotSession).optional(),
	required("role", ID, slotRole).optional(),
	integer("schema_version", 1, 1, slotVersion).optional(),
}

// Values of enumerations, in the order of their numbers.
var (
	types    = []string{"conversation", "workflow", "incident"}
	statuses = []string{"active", "blocked", "resolved", "closed"}
	kinds    = []string{"chat", "event", "system"}
	sessions = []string{"active", "idle", "offline"}
	modes    = []string{"unmanaged", "managed"}
	orders   = []string{"updated", "created"}
)

package threadstore

import "trunkline/engine/journal"

// Bounds of the state (threads §3.2, §6), and of what a caller gives. Callers validate; the engine
// trusts them.
const (
	maxName = 256
	maxKey  = 200
	// maxSeq is the last number of a message.
	maxSeq = 1<<53 - 1
	// pageBytes bounds a page of messages, but for its first one.
	pageBytes = 4 << 20
)

// Kind is what a message is.
type Kind uint8

// The kinds of messages.
const (
	Chat Kind = iota
	Event
	System
)

var kindNames = [...]string{"chat", "event", "system"}

// String returns the name of k in the protocol.
func (k Kind) String() string { return kindNames[k] }

// Type is what a thread is for.
type Type uint8

// The types of threads.
const (
	Conversation Type = iota
	Workflow
	Incident
)

var typeNames = [...]string{"conversation", "workflow", "incident"}

// String returns the name of t in the protocol.
func (t Type) String() string { return typeNames[t] }

// Status is the state of a thread (threads §5.1).
type Status uint8

// The states of threads.
const (
	Active Status = iota
	Blocked
	Resolved
	Closed
)

var statusNames = [...]string{"active", "blocked", "resolved", "closed"}

// String returns the name of s in the protocol.
func (s Status) String() string { return statusNames[s] }

// Rank is what an actor may do (threads §3.1).
type Rank uint8

// The ranks: a coordinator's is an operator's too.
const (
	Participant Rank = iota
	Auditor
	Coordinator
)

// Actor is the agent behind a request: its verified claims.
type Actor struct {
	Workspace, Agent, Session string
	Rank                      Rank
	Role                      string // as in the token
	Request                   string // identifier of the request, for the audit
	// Seen is the index of the last change that the answers before this one show. The actor sees
	// messages up to it, durable or not, and its answers wait for it.
	Seen journal.Index
	// Last, if any, is where the thread of the last request is kept.
	Last *Last
}

// Last is the thread that an actor used last: many use one again and again. It is for one engine
// and one goroutine.
type Last struct{ t *thread }

// Code is why a request is refused; OK is 0.
type Code uint8

// The codes.
const (
	OK Code = iota
	NoThread
	OtherWorkspace
	NotMember
	NoMessage      // in_reply_to names none of the thread
	ThreadClosed   // Status is that of the thread
	KeyReused      // with another payload
	RateLimited    // N milliseconds until the next try
	TooMany        // a table is full
	AckBeyond      // N is the latest number
	AckBehind      // N is the number of the cursor
	BadTransition  // From and Status are the states
	NeedsAuthority // only a coordinator may do it
	NeedsOverride  // the reason is no override
	SessionHeld    // by another agent
	SeqExhausted   // a thread takes no more messages
	NotStored      // the disk is full, or what waits for it is too much
	Failed         // rows cannot be read
	NoTarget       // the target is no participant
	Unmanaged      // the target's runtime is not managed, and there is no fallback
	NoRuntime      // the target has no live runtime, and there is no fallback
	HumanBusy      // a person uses the runtime, and there is neither deferral nor fallback
	BadCount       // N is how many participants there would be
	NoTimer        // no schedule or message that waits has the identifier
	NotAuthor      // only the author and coordinators may change it
	BadCron        // Err begins with the name of the field
)

// Refusal is why a request is refused.
type Refusal struct {
	Code   Code
	From   Status
	Status Status
	N      int64
	Err    error // of Failed and BadCron
	// Index is what the journal has to be durable up to before the refusal is shown: a crash must
	// not take back its reason.
	Index journal.Index
}

// Receipt is what a change leaves.
type Receipt struct {
	// Index is what the journal has to be durable up to before the change is shown.
	Index journal.Index
	// At is the time of the change in milliseconds since 1970.
	At int64
	// Replay is set where an earlier request with the same key made the change.
	Replay bool
}

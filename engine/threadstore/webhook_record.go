package threadstore

//go:generate go run github.com/tinylib/msgp -unexported -file webhook_record.go -o webhook_record_gen.go -tests=false -io=false

//msgp:tuple Webhook webhookState backlogState Letter

// Webhook selects what a target receives; an empty field selects everything. Events are those of
// metadata, "message" for kind chat, and "unread_dormant" for reports of unread messages.
type Webhook struct {
	Name, Workspace string
	Types, Events   []string // Types of threads
}

// webhookState is a webhook. Removed is in the journal only, Index in a snapshot: that of the last
// record with a change.
type webhookState struct {
	Webhook Webhook
	Removed bool
	Dead    []Letter // oldest first
	Dropped uint64   // dead letters beyond maxDeadLetters
	Index   uint64
}

// backlogState is what a webhook has still to deliver of one thread: the messages behind Sent, and
// Extra by number, each behind the messages up to its number. The next delivery has failed Attempts
// times. Dead is in the journal only: what a record adds to the dead letters.
type backlogState struct {
	Thread      uint64
	Webhook     string
	Sent        uint64
	Extra, Dead []Letter
	Attempts    uint32
	First, Next int64 // times of attempts
}

// Letter is a delivery of message Seq, or of a report at a time of an agent's unread messages up to
// it. One that was given up has the time of its first attempt, and the status of the last answer.
type Letter struct {
	Thread string `json:"thread_id"`
	Seq    uint64 `json:"seq"`
	Agent  string `json:"agent_id,omitempty"`
	At     int64  `json:"reported_at_ms,omitempty"`
	First  int64  `json:"first_attempt_ms"`
	Status uint32 `json:"last_status"`
}

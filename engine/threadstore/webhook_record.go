package threadstore

//go:generate go run github.com/tinylib/msgp -unexported -file webhook_record.go -o webhook_record_gen.go -tests=false -io=false

//msgp:tuple Webhook webhookState backlogState Letter

// Webhook selects what the target of a webhook receives; an empty field selects everything. Events
// are event types of messages, "message" for kind chat, "unread_dormant" for reports of unread ones.
type Webhook struct {
	Name      string
	Workspace string
	Types     []string // of threads
	Events    []string
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

// backlogState is what a webhook has still to deliver of one thread.
type backlogState struct {
	Thread   uint64
	Webhook  string
	Sent     uint64   // messages up to it are delivered, dead or not selected
	Extra    []Letter // by number; each goes behind the messages up to its number
	Attempts uint32   // of the next delivery, that have failed
	First    int64    // time of the first of them
	Next     int64    // time of the next one
	Dead     []Letter // that this record adds to those of the webhook; in the journal only
}

// Letter is a delivery of message Seq, or of a report at a time of an agent's unread messages up to
// it. One that was given up has the time of its first attempt, and the status of the last answer.
type Letter struct {
	Thread string `json:"thread_id"`
	Seq    uint64 `json:"seq"`
	Agent  string `json:"agent_id,omitempty"` // of a report
	At     int64  `json:"reported_at_ms,omitempty"`
	First  int64  `json:"first_attempt_ms"`
	Status uint32 `json:"last_status"`
}

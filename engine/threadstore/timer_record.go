package threadstore

//go:generate go run github.com/tinylib/msgp -unexported -file timer_record.go -o timer_record_gen.go -tests=false -io=false

// The records of timers: see record.go.

//msgp:tuple Plan timerState timerMoved

// Plan is what a schedule does and when, or a deferred message, which has neither Cron nor Every.
type Plan struct {
	Cron, Zone             string
	Every                  int64 // an interval in milliseconds, in place of Cron
	Once                   bool  // one firing makes up for those that were missed, else none does
	Kind                   uint8 // of the message, as that of a Post
	Body, Metadata         []byte
	InReplyTo              string
	Target, Reason, Prompt string // of a job in place of a message
	Key                    string
	Digest                 []byte
}

// timerState is a schedule or a deferred message.
type timerState struct {
	Moved                timerMoved
	Thread               uint64
	Plan                 Plan
	Agent, Session, Role string // who made it, and sends its messages
	Rank                 uint8
	CreatedAt            int64
	Index                uint64 // of its last record; in a snapshot only
}

// timerMoved is the state of a timer that changes.
type timerMoved struct {
	ID     string
	At     int64 // up to it moments do not count any more; of a deferred message: when it is due
	Last   int64 // the moment that was fired last; 0: none
	Paused bool
	Reason string // why the server paused it
	Ended  bool   // nothing is kept of it
}

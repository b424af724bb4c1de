package method

import (
	"trunkline/engine/obs"
	"trunkline/handlers/threads/token"
)

// Dialect is the vocabulary of error codes that a surface speaks (threads §2, D1).
type Dialect uint8

// The dialects.
const (
	Spec Dialect = iota
	Legacy
)

// Caller is who asks, and how. It is lent for a call.
type Caller struct {
	Claims *token.Claims
	// RequestID names the request; FromClient is set where the client chose it, so that it is the
	// idempotency key of trigger_participant (threads §4.9).
	RequestID  []byte
	FromClient bool
	// BadRequestID is set where the client gave one that is not valid: trigger_participant refuses
	// it, all others replace it (threads §2.1).
	BadRequestID bool
	Dialect      Dialect
	// Seen is the index of the last change that the answers before this one show: readers see
	// messages up to it, durable or not. Such answers wait for it.
	Seen uint64
	// Now is the wall clock in milliseconds since 1970; 0: it is read.
	Now int64
	// Checked is set where the input is part of a text that passed the Scan of a jsonx.Strict.
	Checked bool
	// Picked is what the surface picked of the input, which need not be read then; nil: it has to.
	Picked *Picked
	// NoWait is set where the call must not wait for a disk.
	NoWait bool
}

// Fault is why a request is refused.
type Fault struct {
	Condition Condition
	// Message is one line for people, at most 300 bytes. It has no secret, and nothing of another
	// workspace.
	Message string
	// Details is a JSON object; nil for none.
	Details []byte
}

// Outcome is the answer to one call of a method.
type Outcome struct {
	// Fault is nil after a success. The result is what the call appended.
	Fault *Fault
	// Replay is set where the answer repeats that of an earlier request with the same key.
	Replay bool
	// Index is what the journal has to be durable up to before the answer is sent; 0: it need not
	// wait.
	Index uint64
	// Waits is set where Caller.NoWait is and the call would wait: nothing was done.
	Waits bool
}

// Dispatcher runs methods. Any goroutine may call it.
type Dispatcher interface {
	// Call runs one method with doc, the text of its input, not checked yet, from gate G3's
	// decoding on (threads §2.1). It appends the result, a JSON object, to dst. doc and c are lent
	// until it returns. It may wait for a disk, but not for the durability of the answer: the
	// caller waits for Outcome.Index.
	Call(dst []byte, c *Caller, row *Row, doc []byte) ([]byte, Outcome)
	// Await returns once the journal is durable up to an index, or with an error once it has
	// stopped.
	Await(index uint64) error
	// Refused notes a request that was refused with 401 or 403, for the audit (threads §6).
	// c.Claims is nil where there are none.
	Refused(c *Caller, operation string, f *Fault)
}

// Aside is what a surface answers beside the methods.
type Aside int

// What is answered aside.
const (
	AsideAuth     Aside = iota // an auth line
	AsidePing                  // a ping line
	AsideEndpoint              // a request to MCP that calls no tool
	AsideOther                 // any other path of HTTP
	AsideInvalid               // what reaches no method
	asides
)

// NewMeter returns the meter of agent threads, one for all surfaces. Its rows are the numbers of
// the methods, then those of what is answered aside. rec may be nil.
func NewMeter(rec *obs.Recorder) *obs.Meter {
	names := make([]string, len(Rows), len(Rows)+int(asides))
	for i := range Rows {
		names[i] = Rows[i].Name
	}
	return rec.Meter("threads", append(names, "auth", "ping", "mcp_endpoint", "other", obs.InvalidMethod))
}

// Number returns the row of a meter.
func (a Aside) Number() int { return len(Rows) + int(a) }

// Failed returns how many of one answer are errors.
func Failed(failed bool) int64 {
	if failed {
		return 1
	}
	return 0
}

package method

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

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
	// Waited is set where Outcome.Wait was served: the call is answered as it is.
	Waited bool
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
	// Wait is set where the caller is to wait for a message first and then to repeat the call with
	// Caller.Waited: nothing was done.
	Wait *Wait
}

// Wait is what a call of read_messages with wait_ms waits for (threads §4.12): a message of a
// thread with a number behind Since, at most For.
type Wait struct {
	Thread []byte
	Since  uint64
	For    time.Duration
	// Again is the input with which the call is repeated, which no caller may have made long.
	Again []byte
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
	AsideStream                // a subscription, or a stream
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
	return rec.Meter("threads", append(names, "auth", "ping", "mcp_endpoint", "other", "stream", obs.InvalidMethod))
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

// Condition is why a request is refused: a row of the table in threads §3.4.
type Condition uint8

// The conditions, named as in the contract.
const (
	Unauthorized     Condition = iota + 1 // C1
	UnknownKey                            // C1, where the key may be in the next key set
	KeysUnavailable                       // C18
	Forbidden                             // C2
	OtherWorkspace                        // C3
	ClaimMismatch                         // C4
	NoAuthority                           // C5
	NotFound                              // C6
	NoSuchMessage                         // C7
	Invalid                               // C8
	WrongHTTPMethod                       // C8a
	TooLarge                              // C8b
	WrongMediaType                        // C8c
	BadTransition                         // C9
	Conflict                              // C10
	KeyReused                             // C11
	RateLimited                           // C12
	UnmanagedRuntime                      // C13
	HumanBusy                             // C14
	WakeFailed                            // C15
	Unavailable                           // C16
	Defect                                // C17
	BodyTimeout                           // C8, when the body does not come in time

	numConditions
)

// Codes is what a condition is called, and how it is answered.
type Codes struct {
	// Spec and Legacy are the codes of the two dialects.
	Spec, Legacy string
	// Status and LegacyStatus are those of HTTP.
	Status, LegacyStatus int
	Retryable            bool
}

var codes = [numConditions]Codes{
	Unauthorized:     {"UNAUTHORIZED", "UNAUTHORIZED", http.StatusUnauthorized, http.StatusUnauthorized, false},
	UnknownKey:       {"UNAUTHORIZED", "UNAUTHORIZED", http.StatusUnauthorized, http.StatusUnauthorized, true},
	KeysUnavailable:  {"INTERNAL", "INTERNAL", http.StatusServiceUnavailable, http.StatusServiceUnavailable, true},
	Forbidden:        {"FORBIDDEN", "FORBIDDEN", http.StatusForbidden, http.StatusForbidden, false},
	OtherWorkspace:   {"OUT_OF_SCOPE_WORKSPACE", "WORKSPACE_MISMATCH", http.StatusForbidden, http.StatusForbidden, false},
	ClaimMismatch:    {"CLAIM_MISMATCH", "FORBIDDEN", http.StatusForbidden, http.StatusForbidden, false},
	NoAuthority:      {"INSUFFICIENT_AUTHORITY", "FORBIDDEN", http.StatusForbidden, http.StatusForbidden, false},
	NotFound:         {"NOT_FOUND", "NOT_FOUND", http.StatusNotFound, http.StatusNotFound, false},
	NoSuchMessage:    {"NOT_FOUND", "INVALID_ARGUMENT", http.StatusNotFound, http.StatusBadRequest, false},
	Invalid:          {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusBadRequest, http.StatusBadRequest, false},
	WrongHTTPMethod:  {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusMethodNotAllowed, http.StatusMethodNotAllowed, false},
	TooLarge:         {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusRequestEntityTooLarge, http.StatusRequestEntityTooLarge, false},
	WrongMediaType:   {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusUnsupportedMediaType, http.StatusUnsupportedMediaType, false},
	BadTransition:    {"CONFLICT", "INVALID_THREAD_TRANSITION", http.StatusConflict, http.StatusConflict, false},
	Conflict:         {"CONFLICT", "CONFLICT", http.StatusConflict, http.StatusConflict, false},
	KeyReused:        {"IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_CONFLICT", http.StatusConflict, http.StatusConflict, false},
	RateLimited:      {"RATE_LIMITED", "RATE_LIMITED", http.StatusTooManyRequests, http.StatusTooManyRequests, true},
	UnmanagedRuntime: {"UNMANAGED_RUNTIME", "CONFLICT", http.StatusConflict, http.StatusConflict, false},
	HumanBusy:        {"HUMAN_INPUT_COLLISION", "CONFLICT", http.StatusConflict, http.StatusConflict, true},
	WakeFailed:       {"WAKE_FAILED", "INTERNAL", http.StatusBadGateway, http.StatusBadGateway, false},
	Unavailable:      {"INTERNAL", "INTERNAL", http.StatusServiceUnavailable, http.StatusServiceUnavailable, true},
	Defect:           {"INTERNAL", "INTERNAL", http.StatusInternalServerError, http.StatusInternalServerError, false},
	BodyTimeout:      {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusRequestTimeout, http.StatusRequestTimeout, true},
}

// Codes returns how c is answered.
func (c Condition) Codes() *Codes { return &codes[c] }

// Bounds of the memory of requests.
const (
	// defaultBudget is the size of a Budget that names none.
	defaultBudget = 256 << 20
	// freeBytes are those of small requests, which do not count: connections bound them.
	freeBytes = 64 << 10
)

// Budget bounds the memory of the bodies and answers of all requests together. Any goroutine may
// call its methods, which do not allocate.
type Budget struct {
	most int64
	used atomic.Int64
}

// NewBudget returns a budget of so many bytes; 0: the default.
func NewBudget(bytes int) *Budget {
	bytes = cmp.Or(bytes, defaultBudget)
	return &Budget{most: int64(bytes)}
}

// Fit reports whether a request may have so many bytes in memory, and then makes them its part,
// which held is.
func (b *Budget) Fit(held *int, bytes int) bool {
	if bytes <= freeBytes {
		return true
	}
	more := int64(bytes - *held)
	if b.used.Add(more) > b.most {
		b.used.Add(-more)
		return false
	}
	*held = bytes
	return true
}

// Free gives the part of a request back.
func (b *Budget) Free(held *int) {
	b.used.Add(-int64(*held))
	*held = 0
}

// Crowded is the refusal of a request for whose bytes there is no room.
var Crowded = &Fault{Condition: Unavailable, Message: "the server holds too much for other requests"}

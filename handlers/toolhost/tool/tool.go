// Package tool defines a tool: its call, its answer, its description and its trust.
//
//	Tool            anything that can be run: built in, a worker process, a wasm module
//	Call, Result    what goes in and what comes out (toolhost §3.2, §3.5)
//	Status          OK, INVALID_PICK, TOOL_ERROR, BREAKER_TRIP (toolhost §3.5)
//	DispatchError   the tool could not be run, or not to its end (toolhost §3.5)
//	Worked, Aside   how a built-in tool keeps out of the way of shorter ones
//	Breaker         refuses calls of a tool or policy that fails again and again (toolhost §5)
//	Descriptor      what a list shows and an executor must know (toolhost §4.1)
//	TierOf          what a tool may do to the world, as a number (toolhost §4.4)
//
// It knows no tool and no transport.
package tool

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
)

// Tool is anything that can be run, by several goroutines at once, each with its own Call. Run must
// return soon after ctx is done; a built-in that does not is abandoned (toolhost §4.3 step 12). A
// Fast tool (Descriptor) runs on an event loop and must not wait for anything.
type Tool interface {
	Run(ctx context.Context, c *Call) Result
}

// Call is what a tool is run with. It and what it lends are valid until Run returns.
type Call struct {
	// AID is the action id the caller named, for example "AID.NOOP.v1".
	AID string
	// Input is the text of a JSON object, checked against the grammar, in the spelling of the
	// caller (toolhost §3.1). It is lent: a tool that keeps it copies it.
	Input []byte
	// State is the caller's state for the tool to read and write, by its methods only: writes count
	// from the clone that it is. They are kept if the result is OK (toolhost §4.3 step 13).
	State *sessionstate.State
	// Now is the wall clock, for timestamps (toolhost §6 "Clocks").
	Now func() time.Time
}

// Result is what a tool answers (toolhost §3.2). The zero Result is success with the output {}. It
// is four words, the most that the compiler keeps in registers on its way through the callers.
type Result struct {
	// Output is JSON text for output_json, "" for "{}" and of a failure. The caller of Run owns it.
	Output []byte
	// Failure is what went wrong, nil if nothing did.
	Failure *Failure
}

// Failure is how a tool failed. It does not change once it is made, and may be shared.
type Failure struct {
	// Status is not OK; where it is, ToolError is meant.
	Status Status
	// Error is what went wrong; where it is empty, the wire has the status instead.
	Error string
	// Dispatch is set when the tool failed to run, and nil when it ran and failed.
	Dispatch *DispatchError
}

// Fail returns the result of a tool that ran and failed, with its reason. It allocates the failure.
func Fail(text string) Result { return Result{Failure: &Failure{Status: ToolError, Error: text}} }

// Status returns how it went.
func (r Result) Status() Status {
	switch {
	case r.Failure == nil:
		return OK
	case r.Failure.Status == OK:
		return ToolError
	}
	return r.Failure.Status
}

// ErrorText returns in words what went wrong, and nothing if all went well.
func (r Result) ErrorText() string {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Error
}

// Dispatch returns why the tool could not be run to its end, nil if it could. It is shared.
func (r Result) Dispatch() *DispatchError {
	if r.Failure == nil {
		return nil
	}
	return r.Failure.Dispatch
}

// Descriptor describes a tool (toolhost §4.1). It is set up once and then only read.
type Descriptor struct {
	// AID is the action id, the name a tool is called by; compared byte by byte.
	AID string
	// Name is for people and models.
	Name string
	// Deterministic means that equal input and state give equal results.
	Deterministic bool
	// Tags choose the tool in a run's menu (toolhost §4.8).
	Tags []string
	// SideEffects is what the tool does beside answering; "none" alone if nothing.
	SideEffects []string
	// ReplayInputs names what else a replay needs to give the same result.
	ReplayInputs []string
	// Tier is 0 safe, 1 write, 2 system, 3 dangerous: above 0 needs a lease where leases are
	// enforced (toolhost §4.4). TierOf gives the least it may be.
	Tier int
	// External means that a worker runs it: it has a breaker (toolhost §4.9).
	External bool
	// Fast means that the tool never blocks and takes less than 50 us: it may run on an event loop.
	Fast bool
}

// Status is how a call of a tool went (toolhost §3.5 "StepStatus").
type Status uint8

// The statuses. No other goes over the wire.
const (
	OK          Status = iota // the tool succeeded
	InvalidPick               // a selector chose what it must not
	ToolError                 // the tool failed, or could not be run, or its result is too large
	BreakerTrip               // not run: its breaker is open, or the run's budget is spent
)

var statusNames = [...]string{"OK", "INVALID_PICK", "TOOL_ERROR", "BREAKER_TRIP"}

// String returns the status as it is on the wire. It does not allocate.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return statusNames[ToolError]
}

// ParseStatus reads a worker's status; anything unknown is ToolError (§3.5). It does not allocate.
func ParseStatus(text []byte) Status {
	for s, name := range statusNames {
		if name == string(text) {
			return Status(s)
		}
	}
	return ToolError
}

// DispatchType is why a tool could not be run to its end (toolhost §3.5).
type DispatchType string

// The types of dispatch errors: the whole set (toolhost D30).
const (
	Timeout    DispatchType = "timeout"     // the deadline passed, or no worker was free before it
	Crash      DispatchType = "crash"       // it ended, or closed its output, without a reply
	ParseError DispatchType = "parse_error" // the worker's reply is not a reply
	NotFound   DispatchType = "not_found"   // no such executable or module, or it must not be run
	Exception  DispatchType = "exception"   // a fault inside the server or a built-in tool
)

// MaxDetail is how many bytes of a worker's stderr a detail has, the last ones (toolhost §3.5).
const MaxDetail = 2048

// DispatchError means that what a tool did is not known (toolhost §3.5). It may be shared.
type DispatchError struct {
	// AID is the action id that was called.
	AID string
	// Type is what happened.
	Type DispatchType
	// Detail is for people: see Detail.
	Detail string
	// Waited marks a Timeout of a call that reached no worker, because none was free in time: it
	// does not count for the tool's breaker (toolhost §4.9). It is not on the wire.
	Waited bool
}

// AppendJSON appends the error as an object (toolhost §3.5). It allocates only if dst has no room.
func (e *DispatchError) AppendJSON(dst []byte) []byte {
	return jsonx.Build(dst).Bool("error", true).Text("aid", e.AID).Text("type", string(e.Type)).
		Text("detail", e.Detail).End()
}

// Broken returns the result of a tool that was not run to its end, with the text of its type
// (toolhost §3.5). Only a crash shows exit, 128 and the signal's number if one ended it. detail
// goes through Detail.
func Broken(aid string, kind DispatchType, exit int, detail string) Result {
	detail = Detail(detail)
	return Result{Failure: &Failure{
		Status:   ToolError,
		Error:    brokenText(aid, kind, exit, detail),
		Dispatch: &DispatchError{AID: aid, Type: kind, Detail: detail},
	}}
}

// brokenText returns the error member of the reply, which is never empty (toolhost §3.2).
func brokenText(aid string, kind DispatchType, exit int, detail string) string {
	switch kind {
	case Timeout:
		return "toolhost timed out for " + aid
	case Crash:
		return "toolhost exit " + strconv.Itoa(exit) + ": " + detail
	case ParseError:
		return "toolhost invalid response JSON"
	case NotFound:
		return "toolhost launch failed: " + detail
	}
	if detail == "" {
		return string(Exception)
	}
	return detail
}

// Detail returns what a reply may show of text: at most the last MaxDetail bytes, from the start of
// a character on, with spaces for control characters (toolhost §3.5).
func Detail(text string) string {
	if cut := len(text) - MaxDetail; cut > 0 {
		// Three bytes at most follow a character's first: after more, the text is not UTF-8.
		for n := 0; n < utf8.UTFMax-1 && cut < len(text) && !utf8.RuneStart(text[cut]); n++ {
			cut++
		}
		text = text[cut:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// MaxTier is the highest tier (toolhost §4.4).
const MaxTier = 3

// tierRule is one line of the table of toolhost §4.4.
type tierRule struct {
	part string // what the name contains
	tier int
}

var aidTiers = [...]tierRule{
	{"GENESIS", 3},
	{"SHELL", 2},
	{"NET.HTTP", 2},
	{"FILE.WRITE", 1},
	{"MEMORY.APPEND", 1},
	{"VECDB.UPSERT", 1},
}

var effectTiers = [...]tierRule{
	{"library_load", 3},
	{"exec", 2},
	{"network", 2},
	{"process", 2},
	{"spawn", 2},
	{"write", 1},
	{"append", 1},
	{"delete", 1},
	{"create", 1},
}

// harmless lists the side effects of tier 0.
var harmless = []string{"none", "read", "filesystem_read", "gpu_probe"}

// unknownTier is the tier of a side effect that is in no list: closed rather than open.
const unknownTier = 2

// TierOf returns the highest tier of a name and side effects, 0 safe to 3 dangerous (toolhost §4.4,
// D24). Names are compared with their case. It does not allocate.
func TierOf(aid string, sideEffects []string) int {
	tier, _ := highest(aidTiers[:], aid)
	for _, effect := range sideEffects {
		if slices.Contains(harmless, effect) {
			continue
		}
		least, known := highest(effectTiers[:], effect)
		if !known {
			least = unknownTier
		}
		tier = max(tier, least)
	}
	return tier
}

func highest(rules []tierRule, name string) (tier int, known bool) {
	for _, r := range rules {
		if strings.Contains(name, r.part) {
			tier, known = max(tier, r.tier), true
		}
	}
	return tier, known
}

// Pool is how many workers a tool has, and for how long (toolhost §4.9).
type Pool struct {
	// Min workers are kept though idle; at most Max processes are there, ending ones too.
	Min, Max int
	// Idle is how long a worker above Min may be idle; 0: not at all.
	Idle time.Duration
	// MaxRequests is how many calls a worker serves before another takes its place.
	MaxRequests int
}

// DefaultPool returns the pool of a tool whose manifest does not set it.
func DefaultPool() Pool { return Pool{Max: 4, Idle: 60 * time.Second, MaxRequests: 1000} }

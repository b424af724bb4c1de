package tool

import (
	"context"
	"time"

	"trunkline/handlers/toolhost/dsstate"
)

// Tool is anything that can be run. Run may be called by several goroutines at once, each with its own Call. It must return
// soon after ctx is done; a built-in that does not is abandoned and its result ignored (toolhost §4.3 step 12). A tool that is
// Fast (Descriptor) runs on an event loop and must not wait for anything.
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
	State *dsstate.State
	// Now is the wall clock, for timestamps (toolhost §6 "Clocks").
	Now func() time.Time
}

// Result is what a tool answers (toolhost §3.2). The zero Result is success with the output {}. It
// is four words, the most that the compiler keeps in registers on its way through the callers.
type Result struct {
	// Output is JSON text for output_json, empty for "{}". It belongs to the caller of Run. A tool that failed has none.
	Output []byte
	// Failure is what went wrong, nil if nothing did.
	Failure *Failure
}

// Failure is how a tool failed. It does not change once it is made, and may be shared.
type Failure struct {
	// Status is not OK; where it is, ToolError is meant.
	Status Status
	// Error is in words what went wrong: never empty on the wire, where the status stands in for it.
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

// Descriptor describes a tool (toolhost §4.1). It is set up once and then only read, by any goroutine.
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
	// Fast means that the tool never blocks, sleeps or touches a disk and takes less than 50 us: it
	// may run on an event loop (toolhost §2.3).
	Fast bool
}

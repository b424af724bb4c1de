package kernel

import "trunkline/engine/connection"

// Instant is one reading of both clocks: Mono for leases, windows and elapsed time, Wall for
// events.
type Instant = connection.Instant

// maxIDLen is the longest identifier in bytes (kernel-ipc §6), and the longest kept BLOCKED reason.
const maxIDLen = 1024

// State is a process state (kernel-ipc §4.0, §5.1).
type State uint8

// The process states. The first is StateNew because New makes a Kernel.
const (
	StateNew State = iota
	Ready
	Running
	Waiting
	Blocked
	Terminated
	Zombie
)

// NumStates is the number of process states.
const NumStates = 7

var stateNames = [NumStates]string{"NEW", "READY", "RUNNING", "WAITING", "BLOCKED", "TERMINATED", "ZOMBIE"}

// String returns the wire name in upper case, "UNKNOWN" beyond the table. It does not allocate.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "UNKNOWN"
}

// terminal reports whether s is TERMINATED or ZOMBIE.
func (s State) terminal() bool { return s >= Terminated }

// ParseState reads a state name in any ASCII letter case. It does not allocate.
func ParseState(b []byte) (State, bool) {
	for i, name := range stateNames {
		if equalFold(b, name) {
			return State(i), true
		}
	}
	return 0, false
}

// reachable[from] has bit to set when table §5.1 has the pair from -> to.
var reachable = [NumStates]uint8{
	StateNew:   1<<Ready | 1<<Terminated,
	Ready:      1<<Running | 1<<Terminated,
	Running:    1<<Ready | 1<<Waiting | 1<<Blocked | 1<<Terminated,
	Waiting:    1<<Ready | 1<<Terminated,
	Blocked:    1<<Ready | 1<<Terminated,
	Terminated: 1 << Zombie,
}

// CanBecome reports whether the table of kernel-ipc §5.1 allows the transition from s to to.
func (s State) CanBecome(to State) bool {
	return int(s) < NumStates && int(to) < NumStates && reachable[s]&(1<<to) != 0
}

// Priority is a scheduling class; lower values run first (kernel-ipc §4.4).
type Priority uint8

// The priorities, best first.
const (
	Realtime Priority = iota
	High
	Normal
	Low
	Idle
)

// NumPriorities is the number of priorities.
const NumPriorities = 5

var priorityNames = [NumPriorities]string{"REALTIME", "HIGH", "NORMAL", "LOW", "IDLE"}

// String returns the wire name in upper case, "UNKNOWN" beyond the table. It does not allocate.
func (p Priority) String() string {
	if int(p) < len(priorityNames) {
		return priorityNames[p]
	}
	return "UNKNOWN"
}

// ParsePriority reads a priority name in any ASCII letter case. It does not allocate.
func ParsePriority(b []byte) (Priority, bool) {
	for i, name := range priorityNames {
		if equalFold(b, name) {
			return Priority(i), true
		}
	}
	return 0, false
}

// equalFold reports whether b is name, which is upper case ASCII letters, in any letter case.
func equalFold(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	if string(b) == name { // as nearly all clients write it
		return true
	}
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// Result is the outcome of an operation; anything but OK changed nothing and emitted nothing.
type Result uint8

// The outcomes.
const (
	// OK: done.
	OK Result = iota
	// NotFound: no process has that pid.
	NotFound
	// AlreadyExists: a process in any state has that pid (kernel-ipc §4.1, D19).
	AlreadyExists
	// TableFull: max_processes are held and none is terminal, or an identifier is not 1 (others: 0)
	// to maxIDLen bytes long, so that no row can hold it.
	TableFull
	// RateLimited: the user is over the rate limit in the RateDecision.
	RateLimited
	// BadTransition: the pair is not in the table of kernel-ipc §5.1.
	BadTransition
	// NotSchedulable: ScheduleProcess on a state other than NEW and READY.
	NotSchedulable
	// NoRunnable: the ready queue is empty.
	NoRunnable
)

var resultNames = [...]string{"ok", "not found", "already exists", "table full", "rate limited", "bad transition",
	"not schedulable", "no runnable"}

// String names the outcome for logs and tests.
func (r Result) String() string {
	if int(r) < len(resultNames) {
		return resultNames[r]
	}
	return "unknown"
}

// UsageField is a counter of a Usage. The order is that of the journal; replies show the first
// five.
type UsageField int

// The counters.
const (
	LLMCalls UsageField = iota
	ToolCalls
	AgentHops
	TokensIn
	TokensOut
	Iterations
	InferenceRequests
	InferenceInputChars
	numUsageFields

	// elapsed is no counter: checks hold the time since the start against a quota too.
	elapsed = numUsageFields
)

var usageNames = [elapsed + 1]string{"llm_calls", "tool_calls", "agent_hops", "tokens_in", "tokens_out", "iterations",
	"inference_requests", "inference_input_chars", "elapsed_seconds"}

// String returns the wire key. It does not allocate.
func (f UsageField) String() string { return usageNames[f] }

// Usage is what a process has used, by UsageField; counters saturate (kernel-ipc §4.8).
type Usage [numUsageFields]int64

// sum sets u to a plus delta, saturating at the largest int64. Negative parts of delta count as 0.
func (u *Usage) sum(a, delta *Usage) {
	for f := range u {
		u[f] = saturate(a[f], delta[f])
	}
}

// set copies a counter by counter. Copying the array whole would move wider words than the counters
// were just written in, and wait until those have left the store buffer.
func (u *Usage) set(a *Usage) {
	for f := range u {
		u[f] = a[f]
	}
}

func (u *Usage) zero() bool {
	all := int64(0)
	for _, v := range u {
		all |= v
	}
	return all == 0
}

func saturate(a, b int64) int64 {
	if b < 0 {
		return a
	}
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}

// PCB is a snapshot of a process (kernel-ipc §4.0), copied out under the lock. The caller owns and
// reuses it: its byte slices point into its own buffer and are valid until the next call that fills
// it.
type PCB struct {
	PID, RequestID, UserID, SessionID []byte
	State                             State
	Priority                          Priority
	Usage                             Usage
	// Created is the creation sequence, the cursor of List; it starts at 1.
	Created uint64
	// Recorded is the index of the last record about the process, from Get; 0 without a journal.
	Recorded uint64

	buf []byte
}

// Need is what operations on a process read beside its row and its pid (see Ahead).
type Need uint8

// The needs.
const (
	// NeedIDs: all of its identifiers.
	NeedIDs Need = 1 << iota
	// NeedQueue: its place in the scheduler.
	NeedQueue
)

// CreateArgs describes a new process. The byte slices are lent: the kernel copies what it keeps.
// The caller has filled in default ids and user (kernel-ipc §4.1).
type CreateArgs struct {
	PID, RequestID, UserID, SessionID []byte
	Priority                          Priority
	Quota                             QuotaPatch
	// NoSchedule leaves the process NEW and out of the queue.
	NoSchedule bool
}

func (a *CreateArgs) fits() bool {
	return len(a.PID) > 0 && len(a.PID) <= maxIDLen && len(a.RequestID) <= maxIDLen && len(a.UserID) <= maxIDLen &&
		len(a.SessionID) <= maxIDLen && a.Priority < NumPriorities
}

// Counts is one consistent view of the table (kernel-ipc §4.11).
type Counts struct {
	ByState [NumStates]int64
	// Total is the sum of ByState.
	Total int64
	// QueueDepth counts queued processes; leased ones are not queued.
	QueueDepth int64
	// Unheard counts the events since the start that had no subscriber.
	Unheard int64
}

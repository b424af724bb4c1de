// Package projects is the core of projects (exacta §4, §5): what a project does with a request, in
// which states, and which events report it. It decides only. Disk and Host do the work.
//
//	request ─► Project.Handle ─► gate (§5.3) ─► operation ─► events into the Journal, one answer
//	             ▲                                │
//	             └──────── Project.Finished ◄─────┘ work off the queue: planning, steps, diffs
//
// The methods of a Project are called one at a time, by the goroutine of its queue. The Journal of
// a project and the Replays of a server may be used by any goroutine.
package projects

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// State is the state of a project (exacta §5.1).
type State uint8

// The states, in the order of texts.
const (
	Idle State = iota
	ExtractingIntent
	Planning
	AwaitingApproval
	Executing
	Paused
	Failed
	Completed
	Cancelling
	states
)

// String returns the name of a state.
func (s State) String() string {
	switch s {
	case Idle:
		return "Idle"
	case ExtractingIntent:
		return "ExtractingIntent"
	case Planning:
		return "Planning"
	case AwaitingApproval:
		return "AwaitingApproval"
	case Executing:
		return "Executing"
	case Paused:
		return "Paused"
	case Failed:
		return "Failed"
	case Completed:
		return "Completed"
	}
	return "Cancelling"
}

// Runs reports whether something runs in the state that ends by itself.
func (s State) Runs() bool {
	return s == ExtractingIntent || s == Planning || s == Executing || s == Cancelling
}

// ParseState returns the state of a name.
func ParseState(name string) (s State, ok bool) {
	for s = range states {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// set is a set of states.
type set uint16

func of(list ...State) (s set) {
	for _, state := range list {
		s |= 1 << state
	}
	return s
}

func (s set) has(state State) bool { return s>>state&1 != 0 }

// gate returns in which states a command is allowed, and what it leads to (exacta §5.3).
func gate(c codec.Command) (allowed set, to string) {
	rest := of(Idle, Failed, Completed)
	switch c {
	case codec.OpenProject, codec.ExportDiagnostics:
		return 1<<states - 1, ""
	case codec.CloseProject:
		return rest | of(AwaitingApproval), c.String()
	case codec.ExtractIntent:
		return rest, ExtractingIntent.String()
	case codec.GeneratePlan:
		return rest | of(AwaitingApproval), Planning.String()
	case codec.ValidatePlan, codec.ApprovePlan:
		return of(AwaitingApproval), c.String()
	case codec.RejectPlan:
		return of(AwaitingApproval), Idle.String()
	case codec.ExecutePlan:
		return of(AwaitingApproval), Executing.String()
	case codec.Pause:
		return of(Executing), Paused.String()
	case codec.Resume:
		return of(Paused), Executing.String()
	case codec.Cancel:
		return of(ExtractingIntent, Planning, AwaitingApproval, Executing, Paused, Cancelling), Cancelling.String()
	case codec.Preview:
		return of(Idle, Completed), c.String()
	}
	return rest, c.String() // ApplyDiffSet, Build
}

// refuse returns the refusal of a command in a state (exacta §5.3).
func refuse(c codec.Command, now State) *errcode.Fault {
	allowed, to := gate(c)
	detail := ""
	for s := State(0); s < states; s++ {
		if !allowed.has(s) {
			continue
		}
		if detail != "" {
			if allowed>>(s+1) == 0 {
				detail += " or "
			} else {
				detail += ", "
			}
		}
		detail += s.String()
	}
	return errcode.New("ST-001", "Expected "+detail+" before "+to+".", now.String(), to)
}

// transitions has for each state where it may lead (exacta §5.2).
var transitions = [states]set{
	Idle:             of(ExtractingIntent, Planning, Paused, Failed, Completed, Cancelling),
	ExtractingIntent: of(Idle, Failed),
	Planning:         of(AwaitingApproval, Failed, Idle),
	AwaitingApproval: of(Planning, Executing, Idle),
	Executing:        of(Completed, Failed, Paused, Cancelling),
	Paused:           of(Executing, Cancelling, Failed),
	Failed:           of(Idle, Planning),
	Completed:        of(Idle),
	Cancelling:       of(Idle, Failed),
}

// Counts count what the projects of a server do. Any goroutine may read them.
type Counts struct {
	Events, StepsDone, StepsFailed atomic.Uint64
	entered                        [states]atomic.Uint64
}

// Entered returns how many transitions led to a state.
func (c *Counts) Entered(s State) uint64 { return c.entered[s].Load() }

// event counts an event of a project in a state.
func (c *Counts) event(name string, s State) {
	c.Events.Add(1)
	if name == "StateChanged" {
		c.entered[s].Add(1)
	}
}

// step counts a step that ended.
func (c *Counts) step(done bool) {
	if done {
		c.StepsDone.Add(1)
	} else {
		c.StepsFailed.Add(1)
	}
}

// States returns all states, in the order of texts.
func States() []State {
	all := make([]State, states)
	for s := range all {
		all[s] = State(s)
	}
	return all
}

// Limits are those of the options of a server that its projects know (exacta §6.1). A zero field
// has its default.
type Limits struct {
	MaxParkedPerProject int // requests that wait for an activity, and cancels that wait
	JournalEvents       int // of a project
	JournalBytes        int // the same
	ReplayCacheEntries  int // answers that are kept for repeats
	ReplayCacheBytes    int // the same
	PlanValidity        time.Duration
	LogEventLevel       string // least important level of a LogEntry that is sent
}

// The defaults of Limits.
const (
	DefaultParked        = 64
	DefaultJournalEvents = 10_000
	DefaultJournalBytes  = 16 << 20
	DefaultReplayEntries = 4096
	DefaultReplayBytes   = 32 << 20
	DefaultPlanValidity  = 1800 * time.Second
	DefaultLevel         = "INFO"
)

// WithDefaults returns l with its defaults.
func (l Limits) WithDefaults() Limits {
	l.MaxParkedPerProject = cmp.Or(l.MaxParkedPerProject, DefaultParked)
	l.JournalEvents = cmp.Or(l.JournalEvents, DefaultJournalEvents)
	l.JournalBytes = cmp.Or(l.JournalBytes, DefaultJournalBytes)
	l.ReplayCacheEntries = cmp.Or(l.ReplayCacheEntries, DefaultReplayEntries)
	l.ReplayCacheBytes = cmp.Or(l.ReplayCacheBytes, DefaultReplayBytes)
	l.PlanValidity = cmp.Or(l.PlanValidity, DefaultPlanValidity)
	l.LogEventLevel = cmp.Or(l.LogEventLevel, DefaultLevel)
	return l
}

// Levels returns the levels of a LogEntry (exacta §3.4), the most important one first.
func Levels() []string { return []string{"ERROR", "WARN", "INFO", "DEBUG", "TRACE"} }

// logs reports whether a LogEntry of a level is sent.
func (l *Limits) logs(level string) bool {
	return slices.Index(Levels(), level) <= slices.Index(Levels(), l.LogEventLevel)
}

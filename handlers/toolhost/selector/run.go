package selector

import (
	"context"
	"encoding/hex"

	"github.com/google/uuid"

	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// Limits of a run (toolhost §6).
const (
	maxSteps        = 64 // selections, refused ones included
	maxInvalidPicks = 8  // refused selections; one more ends the run
	maxRepeats      = 3  // selections with the same menu and the same state; one more ends the run
)

// The reasons in Step.Ended.
const (
	endedNoop    = "noop"
	endedAskSup  = "ask_sup"
	endedBreaker = "breaker"
)

// Config is what the runs of one server share. It does not change once a run is open.
type Config struct {
	// Tools are the tools that can be run, sorted by AID.
	Tools []tool.Descriptor
	// Policy is the external policy; nil: there is none.
	Policy *Policy
}

// newRunID returns a run id: a random UUIDv4 in 32 lower-case hexadecimal digits, from a cryptographic source (toolhost D32).
func newRunID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// seen is a place where a run has been.
type seen struct{ menu, state string }

// Run is an open run (toolhost §4.8). It belongs to one session; one goroutine at a time may use it.
type Run struct {
	cfg     *Config
	req     Request
	tools   []candidate
	tags    []string // the step tags that every step has
	inputs  []byte   // never changed in place: steps share it
	steps   int
	invalid int
	visits  map[seen]int // at most maxSteps entries
}

// Open opens a run. why is "" or the text of the error (toolhost §3.3), and then there is no run. r is kept.
func Open(cfg *Config, r Request) (run *Run, why string) {
	if why = r.validate(); why != "" {
		return nil, why
	}
	if r.RunID == "" {
		r.RunID = newRunID()
	}
	if len(r.Inputs) == 0 {
		r.Inputs = []byte("{}")
	}
	run = &Run{
		cfg:    cfg,
		tools:  candidates(cfg.Tools, r.Allowed, r.Blocked),
		tags:   baseTags(r.GoalID, r.CandidateTags),
		inputs: r.Inputs,
		visits: make(map[seen]int),
	}
	// What was worked out of these is kept instead.
	r.Inputs, r.CandidateTags, r.Allowed, r.Blocked = nil, nil, nil, nil
	run.req = r
	return run, ""
}

// ID returns the run id. It does not allocate.
func (r *Run) ID() string { return r.req.RunID }

// Steps returns how many steps the run has taken.
func (r *Run) Steps() int { return r.steps }

// Select takes one step: it builds the menu for the state s, lets the mode's selector choose and judges the choice. It hashes the whole
// state and may run the policy process, which takes seconds, so it is not for event loops; ctx ends the process early. s is only
// read. After a step with Ended the run is closed, and the caller drops it.
func (r *Run) Select(ctx context.Context, s *dsstate.State) Step {
	v := viewOf(s)
	tags := stepTags{r.tags, v.wantsReport()}
	m := newMenu(r.tools, &tags)
	sha, _ := s.Digest()
	st := Step{RunID: r.req.RunID, Number: r.steps, MenuDigest: m.digest(), StateDigest: string(sha[:])}
	if why := r.limit(&st); why != "" {
		st.trip(why)
	} else {
		var sel Selection
		sel, st.ShadowRaw = r.choose(ctx, m, &question{
			goal: r.req.GoalID, view: &v, tags: &tags, stateDigest: st.StateDigest, mode: r.req.Mode, inputs: r.inputs, menu: m,
		})
		r.settle(&st, m, sel)
	}
	st.Inputs = r.inputs
	return st
}

// limit returns which budget of the run this step would exceed: "" for none.
func (r *Run) limit(st *Step) string {
	if r.steps >= maxSteps {
		return "max_steps"
	}
	at := seen{st.MenuDigest, st.StateDigest}
	if r.visits[at] >= maxRepeats {
		return "loop_guard"
	}
	r.visits[at]++
	return ""
}

// settle judges a selection and does what follows from it.
func (r *Run) settle(st *Step, m menu, sel Selection) {
	st.Selection = sel
	switch sel.Kind {
	case Noop:
		st.Ended = endedNoop
		return
	case AskSup:
		st.Ended = endedAskSup
		return
	case Pick:
		if it := m.sid(sel.SID); it != nil {
			st.PickAID = it.AID
			r.inputs = merge(r.inputs, []byte(sel.Patch))
			r.steps++
			return
		}
		st.Error = "sid_not_in_menu"
	default:
		st.Error = "invalid_pick"
	}
	st.Status = tool.InvalidPick
	r.steps++
	if r.invalid++; r.invalid > maxInvalidPicks {
		st.trip("max_invalid_picks")
	}
}

// choose asks whom the mode names (toolhost §4.8 "control_mode"). shadow is the answer of the policy where that is only reported.
func (r *Run) choose(ctx context.Context, m menu, q *question) (sel Selection, shadow string) {
	own := heuristic(m, r.req.GoalID, q.view)
	if r.req.Mode == FallbackOnly || r.cfg.Policy == nil && r.req.Mode == ShadowPolicy {
		return own, ""
	}
	theirs, why, asked := r.cfg.Policy.ask(ctx, q)
	if !asked {
		return own, ""
	}
	if why != "" {
		theirs = own
		theirs.Raw = "[policy_failure]" + why + "\n" + own.Raw
	}
	switch {
	case r.req.Mode == ShadowPolicy:
		return own, theirs.Raw
	case r.req.Mode == Blended && theirs.Kind == Invalid:
		return own, ""
	}
	return theirs, ""
}

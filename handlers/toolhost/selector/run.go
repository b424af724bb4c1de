package selector

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// Limits of a run (toolhost §6).
const (
	maxSteps        = 64 // selections, refused ones included
	maxInvalidPicks = 8  // refused selections; one more ends the run
	maxRepeats      = 3  // selections with the same menu and the same state; one more ends the run
)

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

// newRunID returns 32 hexadecimal digits of a random UUIDv4 (toolhost D32).
func newRunID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

type seen struct{ menu, state string }

// Run is an open run (toolhost §4.8) of one session; one goroutine at a time may use it.
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

// Open opens a run and keeps r. Without one, why is the text of the error (toolhost §3.3).
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

// Select takes one step. It hashes the state s and may run the policy process for seconds, so it is
// not for event loops; ctx ends the process. After a step with Ended the run is closed.
func (r *Run) Select(ctx context.Context, s *sessionstate.State) Step {
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

// choose asks the selector of the mode (toolhost §4.8). shadow is a policy's answer to report only.
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

// Step is what came of one Select. It shares nothing that changes with its run.
type Step struct {
	// Status is OK, INVALID_PICK or BREAKER_TRIP; Error is why it is not OK.
	Status tool.Status
	Error  string
	RunID  string
	// Number counts the steps of the run from 0.
	Number int
	// Selection is what was chosen; it is unset with BREAKER_TRIP.
	Selection Selection
	// PickAID is the tool that was picked, or empty.
	PickAID string
	// Inputs is the text of the run's inputs after the step. Read only.
	Inputs []byte
	// MenuDigest and StateDigest identify what was chosen from, in lower-case hexadecimal.
	MenuDigest, StateDigest string
	// Ended is why the run is closed now; empty while it goes on.
	Ended string
	// ShadowRaw is the policy's answer for the event toolhost.selector.shadow; "" for none.
	ShadowRaw string
}

func (st *Step) trip(why string) {
	st.Status, st.Error, st.Ended = tool.BreakerTrip, why, endedBreaker
	st.Selection, st.PickAID = Selection{}, ""
}

// Append appends the reply to _run.select but for its closing brace (toolhost §4.8).
func (st *Step) Append(dst []byte) []byte {
	o := jsonx.Build(dst).Bool("ok", st.Status == tool.OK).Text("status", st.Status.String()).
		Text("error", st.Error).Text("run_id", st.RunID).Int("step", int64(st.Number))
	if st.Status != tool.BreakerTrip {
		o = st.Selection.appendJSON(o.Name("selection"))
	}
	if st.PickAID != "" {
		o = o.Text("pick_aid", st.PickAID)
	}
	o = o.Bytes("inputs_json", st.Inputs).Text("menu_digest", st.MenuDigest).Text("state_digest", st.StateDigest)
	if st.Ended != "" {
		o = o.Text("ended", st.Ended)
	}
	return o
}

// AppendHeader appends the run header as a compact object (toolhost §3.7).
func (r *Run) AppendHeader(dst []byte) []byte {
	o := jsonx.Build(dst).Text("spec_version", r.req.SpecVersion).Text("profile_id", r.req.ProfileID).Text("run_id", r.req.RunID)
	if r.req.HasRequestID {
		o = o.Text("request_id", r.req.RequestID)
	}
	return o.End()
}

// AppendOpened appends the reply to _run.open but for its closing brace (toolhost §4.8).
func (r *Run) AppendOpened(dst []byte) []byte {
	o := jsonx.Builder(r.AppendHeader(jsonx.Build(dst).Bool("ok", true).Name("run_header")))
	return o.Int("max_steps", maxSteps).Int("max_invalid_picks", maxInvalidPicks)
}

// AppendClosed appends the reply to _run.close but for its closing brace (toolhost §4.8).
func (r *Run) AppendClosed(dst []byte) []byte {
	return jsonx.Build(dst).Bool("ok", true).Text("run_id", r.req.RunID).
		Int("steps", int64(r.steps)).Int("invalid_picks", int64(r.invalid))
}

// reserved is what the keys begin with that a selector must not set (toolhost §4.8 "Patch merge").
var reserved = []string{"_system", "_queue", "_meta"}

// change is one member of a patch: the key as it is spelled and the text of the value.
type change struct {
	key, value []byte
	done       bool
}

// merge returns base with the members of patch, in their spelling; both are checked objects. A key
// that is there keeps its place. Neither text changes; without a change base is returned.
func merge(base, patch []byte) []byte {
	changes, order := readPatch(patch)
	if len(order) == 0 {
		return base
	}
	out := append(make([]byte, 0, len(base)+len(patch)), '{')
	o := jsonx.OpenObject(base)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		c := changes[string(jsonx.Unescape(key))]
		switch {
		case c == nil:
			out = appendMember(out, key, v.Raw)
		case !c.done:
			// A repeated key is written once: a reader of the first must not see the old value.
			c.done = true
			out = appendMember(out, key, c.value)
		}
	}
	for _, c := range order {
		if !c.done {
			out = appendMember(out, c.key, c.value)
		}
	}
	return append(out, '}')
}

// readPatch returns what patch sets, by key and in order. The last of a repeated key counts (§2.4).
func readPatch(patch []byte) (byKey map[string]*change, order []*change) {
	byKey = make(map[string]*change)
	o := jsonx.OpenObject(patch)
	for key, v, ok := o.Next(); ok; key, v, ok = o.Next() {
		name := string(jsonx.Unescape(key))
		if slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		c := byKey[name]
		if c == nil {
			c = &change{key: key}
			byKey[name] = c
			order = append(order, c)
		}
		c.value = v.Raw
	}
	return byKey, order
}

func appendMember(dst, key, value []byte) []byte {
	dst = append(append(append(jsonx.AppendComma(dst), '"'), key...), `":`...)
	return append(dst, value...)
}

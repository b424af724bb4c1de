package selector

import (
	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// Step is what came of one Select. It shares nothing that changes with its run.
type Step struct {
	// Status is OK, INVALID_PICK or BREAKER_TRIP; Error is why it is not OK.
	Status tool.Status
	Error  string
	RunID  string
	// Number counts the steps of the run from 0.
	Number int
	// Selection is what was chosen; it means nothing with BREAKER_TRIP.
	Selection Selection
	// PickAID is the tool that was picked, or empty.
	PickAID string
	// Inputs is the text of the run's inputs after the step. Read only.
	Inputs []byte
	// MenuDigest and StateDigest identify what was chosen from, in lower-case hexadecimal.
	MenuDigest, StateDigest string
	// Ended is why the run is closed now; empty while it goes on.
	Ended string
	// ShadowRaw is the answer of the policy, for the event toolhost.selector.shadow; empty if there is nothing to report.
	ShadowRaw string
}

// trip turns the step into the end of the run.
func (st *Step) trip(why string) {
	st.Status, st.Error, st.Ended = tool.BreakerTrip, why, endedBreaker
	st.Selection, st.PickAID = Selection{}, ""
}

// Append appends the members of the reply to _run.select to dst, with the opening brace and without
// the closing one, and returns the result (toolhost §4.8). It allocates only if dst has no room.
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

// AppendHeader appends the run header as a compact object to dst and returns the result (toolhost
// §3.7). It allocates only if dst has no room.
func (r *Run) AppendHeader(dst []byte) []byte {
	o := jsonx.Build(dst).Text("spec_version", r.req.SpecVersion).Text("profile_id", r.req.ProfileID).Text("run_id", r.req.RunID)
	if r.req.HasRequestID {
		o = o.Text("request_id", r.req.RequestID)
	}
	return o.End()
}

// AppendOpened appends the members of the reply to _run.open to dst, with the opening brace and without
// the closing one, and returns the result (toolhost §4.8). It allocates only if dst has no room.
func (r *Run) AppendOpened(dst []byte) []byte {
	o := jsonx.Builder(r.AppendHeader(jsonx.Build(dst).Bool("ok", true).Name("run_header")))
	return o.Int("max_steps", maxSteps).Int("max_invalid_picks", maxInvalidPicks)
}

// AppendClosed appends the members of the reply to _run.close to dst, with the opening brace and without
// the closing one, and returns the result (toolhost §4.8). It allocates only if dst has no room.
func (r *Run) AppendClosed(dst []byte) []byte {
	return jsonx.Build(dst).Bool("ok", true).Text("run_id", r.req.RunID).
		Int("steps", int64(r.steps)).Int("invalid_picks", int64(r.invalid))
}

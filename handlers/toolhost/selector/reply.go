package selector

import (
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// Step is what came of one Select. It shares nothing that changes with its run.
type Step struct {
	// Status is OK, INVALID_PICK or BREAKER_TRIP; Error says why it is not OK.
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
	// MenuDigest and StateDigest say what was chosen from, in lower-case hexadecimal.
	MenuDigest, StateDigest string
	// Ended says why the run is closed now; empty while it goes on.
	Ended string
	// ShadowRaw is what the policy said, for the event toolhost.selector.shadow; empty if there is nothing to report.
	ShadowRaw string
}

// trip turns the step into the end of the run.
func (st *Step) trip(why string) {
	st.Status, st.Error, st.Ended = tool.BreakerTrip, why, endedBreaker
	st.Selection, st.PickAID = Selection{}, ""
}

// Append appends the members of the reply to _run.select to dst, with the opening brace and without the closing one, and returns the
// result (toolhost §4.8). It allocates only if dst has no room.
func (st *Step) Append(dst []byte) []byte {
	dst = strconv.AppendBool(append(dst, `{"ok":`...), st.Status == tool.OK)
	dst = append(append(append(dst, `,"status":"`...), st.Status.String()...), '"')
	dst = jsonx.AppendString(append(dst, `,"error":`...), st.Error)
	dst = jsonx.AppendString(append(dst, `,"run_id":`...), st.RunID)
	dst = strconv.AppendInt(append(dst, `,"step":`...), int64(st.Number), 10)
	if st.Status != tool.BreakerTrip {
		dst = st.Selection.appendJSON(append(dst, `,"selection":`...))
	}
	if st.PickAID != "" {
		dst = jsonx.AppendString(append(dst, `,"pick_aid":`...), st.PickAID)
	}
	dst = jsonx.AppendString(append(dst, `,"inputs_json":`...), st.Inputs)
	dst = jsonx.AppendString(append(dst, `,"menu_digest":`...), st.MenuDigest)
	dst = jsonx.AppendString(append(dst, `,"state_digest":`...), st.StateDigest)
	if st.Ended != "" {
		dst = jsonx.AppendString(append(dst, `,"ended":`...), st.Ended)
	}
	return dst
}

// appendHeader appends the run header as a compact object to dst and returns the result (toolhost §3.7). It allocates only if dst has
// no room.
func (r *Run) appendHeader(dst []byte) []byte {
	dst = jsonx.AppendString(append(dst, `{"spec_version":`...), r.req.SpecVersion)
	dst = jsonx.AppendString(append(dst, `,"profile_id":`...), r.req.ProfileID)
	dst = jsonx.AppendString(append(dst, `,"run_id":`...), r.req.RunID)
	if r.req.HasRequestID {
		dst = jsonx.AppendString(append(dst, `,"request_id":`...), r.req.RequestID)
	}
	return append(dst, '}')
}

// AppendOpened appends the members of the reply to _run.open to dst, with the opening brace and without the closing one, and returns
// the result (toolhost §4.8). It allocates only if dst has no room.
func (r *Run) AppendOpened(dst []byte) []byte {
	dst = r.appendHeader(append(dst, `{"ok":true,"run_header":`...))
	dst = strconv.AppendInt(append(dst, `,"max_steps":`...), maxSteps, 10)
	return strconv.AppendInt(append(dst, `,"max_invalid_picks":`...), maxInvalidPicks, 10)
}

// AppendClosed appends the members of the reply to _run.close to dst, with the opening brace and without the closing one, and returns
// the result (toolhost §4.8). It allocates only if dst has no room.
func (r *Run) AppendClosed(dst []byte) []byte {
	dst = jsonx.AppendString(append(dst, `{"ok":true,"run_id":`...), r.req.RunID)
	dst = strconv.AppendInt(append(dst, `,"steps":`...), int64(r.steps), 10)
	return strconv.AppendInt(append(dst, `,"invalid_picks":`...), int64(r.invalid), 10)
}

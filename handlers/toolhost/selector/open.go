// Package selector runs the part of a run context that needs no session (toolhost §3.7, §4.8): it
// shows a caller's goal and state to a selector that chooses the next tool, and judges the choice.
//
//	ReadOpen         a _run.open line as a Request, every member judged
//	Open             a Request as a Run
//	Run.Select       one step: menu ──► limits ──► selector ──► judgement, patch merged
//	parseSelection   the text of a selector as a Selection
//	Policy           an external program that chooses, with its guards and its breaker
//
// The grammar of a selector's text; white space may stand around it and between its parts:
//
//	<ASK_SUP> <END>
//	<NOOP> <END>
//	<PICK> <SIDdddd> [ <INP>object</INP> | <INP64>base64 of object</INP64> ] <END>
//
// Anything else is INVALID (toolhost D14). Nothing may follow <END>, so the patch of <INP> reaches
// to the last </INP>.
//
// A policy program is started without a shell, as workers are (see workerexec): in its own process
// group, with its limits and no_new_privs, and few variables; its group is killed when it ends or
// its time is over. Its question is in a file that only this user can read and that is removed
// afterwards. Guards do not contain an enemy. A descendant with a session of its own is not ended.
//
// Out of scope: a policy's stderr (toolhost D27), and further selectors in the
// server.
package selector

import (
	"bytes"
	"strings"

	"trunkline/codec/jsonx"
)

// The members of a _run.open request that the scan picks.
const (
	nameRequestID = iota
	nameGoal
	nameSpec
	nameProfile
	nameRunID
	nameTags
	nameMode
	nameInputJSON
	nameInputs
	nameCapabilities
	numNames
)

var openNames = jsonx.NewNames("request_id", "goal_id", "spec_version", "profile_id", "run_id", "candidate_tags", "control_mode",
	"input_json", "inputs", "_capabilities")

// ReadOpen reads the line of a _run.open request. why is "" or the text of the error (toolhost
// §3.3): the first in the order of openNames, types before values. null is as good as absent, but
// for request_id (toolhost §3.1). Nothing of line is kept. It allocates what it returns.
func ReadOpen(line []byte) (r Request, why string) {
	var f fields
	switch result, which := openNames.Scan(line, maxDepth, f.m[:]); result {
	case jsonx.ScanOK:
	case jsonx.ScanDuplicate:
		return Request{}, "duplicate key: " + openNames.Name(which)
	case jsonx.ScanNotObject:
		return Request{}, "missing aid"
	default:
		return Request{}, "invalid JSON"
	}
	r.RequestID, r.HasRequestID = f.requestID()
	r.GoalID = f.goal()
	r.SpecVersion = f.text(nameSpec, specVersion)
	r.ProfileID = f.text(nameProfile, defaultProfile)
	r.RunID = f.runID()
	r.CandidateTags = f.tags()
	r.Mode = f.mode()
	r.Inputs = f.inputs()
	r.Allowed, r.Blocked = f.capabilities()
	if f.why == "" {
		f.why = r.validate()
	}
	if f.why != "" {
		return Request{}, f.why
	}
	return r, ""
}

// fields reads members one by one and keeps the first fault.
type fields struct {
	m   [numNames]jsonx.Member
	why string
}

func (f *fields) fail(name int, why string) {
	if f.why == "" {
		f.why = fault(name, why)
	}
}

func (f *fields) given(name int) bool {
	return f.m[name].Kind != jsonx.Absent && f.m[name].Kind != jsonx.Null
}

func (f *fields) text(name int, without string) string {
	if !f.given(name) {
		return without
	}
	if f.m[name].Kind != jsonx.String {
		f.fail(name, "must be a string")
	}
	return string(jsonx.Unescape(f.m[name].Raw))
}

func (f *fields) goal() string {
	if !f.given(nameGoal) {
		f.fail(nameGoal, "required")
	}
	return f.text(nameGoal, "")
}

// runID returns the caller's run id; a given one must not be empty: Open would make one.
func (f *fields) runID() string {
	id := f.text(nameRunID, "")
	if id == "" && f.given(nameRunID) {
		f.fail(nameRunID, whyRunID)
	}
	return id
}

func (f *fields) requestID() (id string, given bool) {
	switch m := &f.m[nameRequestID]; m.Kind {
	case jsonx.Absent:
		return "", false
	case jsonx.String:
		if id = string(jsonx.Unescape(m.Raw)); len(id) <= maxRequestID {
			return id, true
		}
	case jsonx.Number:
		if _, ok := jsonx.ParseInt(m.Raw); ok {
			return string(m.Raw), true
		}
	}
	f.fail(nameRequestID, "must be a string or integer")
	return "", false
}

func (f *fields) mode() Mode {
	if !f.given(nameMode) {
		return FallbackOnly
	}
	if f.m[nameMode].Kind == jsonx.String {
		text := string(jsonx.Unescape(f.m[nameMode].Raw))
		for i, name := range modeNames {
			if text == name {
				return Mode(i)
			}
		}
	}
	f.fail(nameMode, "unknown")
	return FallbackOnly
}

// part judges the size of a member that a run keeps.
func (f *fields) part(name int, text []byte) bool {
	if len(text) > maxPart {
		f.fail(name, "exceeds 1MB limit")
	}
	return f.why == ""
}

func (f *fields) tags() []string {
	if m := &f.m[nameTags]; f.given(nameTags) && f.part(nameTags, m.Raw) {
		tags, ok := jsonx.Value{Kind: m.Kind, Raw: m.Raw}.Texts()
		if !ok {
			f.fail(nameTags, "must be an array of strings")
		}
		return tags
	}
	return nil
}

// inputs returns the effective inputs (toolhost §3.1): the decoded input_json, or inputs as it is.
func (f *fields) inputs() []byte {
	text := []byte(nil)
	if f.given(nameInputJSON) {
		if text = bytes.TrimFunc([]byte(f.text(nameInputJSON, "")), isSpace); len(text) == 0 {
			text = []byte("{}")
		}
		if f.part(nameInputJSON, text) && !isObject(string(text)) {
			f.fail(nameInputJSON, "not a JSON object")
		}
	}
	if m := &f.m[nameInputs]; f.given(nameInputs) {
		if m.Kind != jsonx.ObjectStart {
			f.fail(nameInputs, "must be an object")
		}
		if text == nil && f.part(nameInputs, m.Raw) {
			text = bytes.Clone(m.Raw)
		}
	}
	return text
}

// capabilities reads the two lists. Other members are ignored; the last of one name counts (§2.4).
func (f *fields) capabilities() (allowed, blocked []string) {
	m := &f.m[nameCapabilities]
	if !f.given(nameCapabilities) || !f.part(nameCapabilities, m.Raw) {
		return nil, nil
	}
	if m.Kind != jsonx.ObjectStart {
		f.fail(nameCapabilities, "must be an object")
		return nil, nil
	}
	var lists [2]jsonx.Value
	jsonx.Pick(m.Raw, []string{"allowed_tools", "blocked_tools"}, lists[:])
	return f.capability("allowed_tools", lists[0]), f.capability("blocked_tools", lists[1])
}

func (f *fields) capability(name string, v jsonx.Value) []string {
	if v.Kind == jsonx.Absent || v.Kind == jsonx.Null {
		return nil
	}
	list, ok := v.Texts()
	if !ok {
		f.fail(nameCapabilities, name+" must be an array of strings")
	}
	return list
}

// specVersion is the only version of the run context there is (toolhost §3.7).
const specVersion = "1.4.2"

const defaultProfile = "A"

// Limits of a _run.open request. maxPart has no row in the contract: a run is kept as long as its
// session, and inputs over it could never be answered, because inputs_json goes into every reply.
const (
	maxGoalID    = 256     // bytes
	maxProfileID = 16      // bytes
	maxRunID     = 64      // bytes
	maxRequestID = 128     // bytes
	maxPart      = 1 << 20 // bytes of inputs, of candidate_tags and of _capabilities, each
	maxShown     = 256     // bytes of a caller's text in an error, cut at a character
)

// Mode is who chooses in a run (toolhost §4.8 "control_mode").
type Mode uint8

// The modes.
const (
	FallbackOnly Mode = iota // the heuristic; no policy is run
	ShadowPolicy             // the heuristic; the policy is run and reported
	Blended                  // the policy; the heuristic where the policy is INVALID
	PolicyOnly               // the policy
)

var modeNames = [...]string{"FALLBACK_ONLY", "SHADOW_POLICY", "BLENDED", "POLICY_ONLY"}

// String returns the mode as it is on the wire. It does not allocate.
func (m Mode) String() string { return modeNames[m%Mode(len(modeNames))] }

// Request is what a caller opens a run with (toolhost §4.8). It shares no memory with its line.
type Request struct {
	GoalID, SpecVersion, ProfileID string
	// RunID is empty when the caller leaves it to the server.
	RunID string
	// RequestID is the tracing id if HasRequestID is set; an integer is kept as it is spelled.
	RequestID     string
	CandidateTags []string
	Mode          Mode
	// Inputs is the text of a JSON object, checked, in the spelling of the caller.
	Inputs []byte
	// Allowed and Blocked are the capabilities: AIDs, or prefixes ending in "*".
	Allowed, Blocked []string
	HasRequestID     bool
}

// validate judges values whose types are right already. why is the text of the error, or "".
func (r *Request) validate() (why string) {
	switch {
	case r.GoalID == "":
		return fault(nameGoal, "must not be empty")
	case len(r.GoalID) > maxGoalID:
		return fault(nameGoal, "too long")
	case r.SpecVersion != specVersion:
		return "unsupported spec_version: " + jsonx.Clip(r.SpecVersion, maxShown)
	case len(r.ProfileID) > maxProfileID || !isName(r.ProfileID, "_-"):
		return fault(nameProfile, "must be 1..16 bytes of [A-Za-z0-9_-]")
	case r.RunID != "" && (len(r.RunID) > maxRunID || !isName(r.RunID, "._-")):
		return fault(nameRunID, whyRunID)
	}
	return ""
}

const whyRunID = "must be 1..64 bytes of [A-Za-z0-9._-]"

func fault(name int, why string) string { return "invalid field: " + openNames.Name(name) + ": " + why }

// isName reports whether text is not empty and has only letters, digits and the bytes of more.
func isName(text, more string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+more) == ""
}

package selector

import (
	"strings"
	"unicode/utf8"
)

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
	maxPart      = 1 << 20 // bytes of the text of inputs, of candidate_tags and of _capabilities, each
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

// Request is what a caller opens a run with (toolhost §4.8). It shares no memory with the line it came from.
type Request struct {
	GoalID, SpecVersion, ProfileID string
	// RunID is empty when the caller leaves it to the server.
	RunID string
	// RequestID is the caller's tracing id if HasRequestID is set; an integer is kept as it is spelled.
	RequestID     string
	CandidateTags []string
	Mode          Mode
	// Inputs is the text of a JSON object, checked, in the spelling of the caller.
	Inputs []byte
	// Allowed and Blocked are the capabilities: AIDs, or prefixes ending in "*".
	Allowed, Blocked []string
	HasRequestID     bool
}

// validate judges the values of the header and the goal, whose types are right already. why is the text of the error, or "".
func (r *Request) validate() (why string) {
	switch {
	case r.GoalID == "":
		return fault(nameGoal, "must not be empty")
	case len(r.GoalID) > maxGoalID:
		return fault(nameGoal, "too long")
	case r.SpecVersion != specVersion:
		return "unsupported spec_version: " + shown(r.SpecVersion)
	case len(r.ProfileID) > maxProfileID || !isName(r.ProfileID, "_-"):
		return fault(nameProfile, "must be 1..16 bytes of [A-Za-z0-9_-]")
	case r.RunID != "" && (len(r.RunID) > maxRunID || !isName(r.RunID, "._-")):
		return fault(nameRunID, whyRunID)
	}
	return ""
}

const whyRunID = "must be 1..64 bytes of [A-Za-z0-9._-]"

// fault returns the text of the error about one member (toolhost §3.3).
func fault(name int, why string) string { return "invalid field: " + openNames.Name(name) + ": " + why }

// isName reports whether text is not empty and has only letters, digits and the bytes of more.
func isName(text, more string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+more) == ""
}

// shown cuts what a caller sent to what an error may repeat of it.
func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

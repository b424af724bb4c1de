package envelope

import "time"

// InterruptKind is what a waiting envelope waits for (envelope §3.5).
type InterruptKind uint8

// The kinds of interrupt of envelope §3.5.
const (
	// UnknownKind is every other text: "unspecified", empty, or a kind of a later version.
	UnknownKind InterruptKind = iota
	Clarification
	Confirmation
	AgentReview
	Checkpoint
	ResourceExhausted
	TimedOut
	SystemError
	numInterruptKinds
)

// oldAgentReview is the name of AgentReview in older envelopes.
const oldAgentReview = "critic_review"

var interruptKinds = [numInterruptKinds]struct {
	name      string
	retention time.Duration
}{
	UnknownKind:       {"unknown", 0},
	Clarification:     {"clarification", 24 * time.Hour},
	Confirmation:      {"confirmation", time.Hour},
	AgentReview:       {"agent_review", time.Hour},
	Checkpoint:        {"checkpoint", 24 * time.Hour},
	ResourceExhausted: {"resource_exhausted", time.Hour},
	TimedOut:          {"timeout", time.Hour},
	SystemError:       {"system_error", time.Hour},
}

// parseInterruptKind returns the kind that s spells in any ASCII case, old name included, or
// UnknownKind. It does not allocate.
func parseInterruptKind(s []byte) InterruptKind {
	for k := Clarification; k < numInterruptKinds; k++ {
		if equalFold(s, interruptKinds[k].name) {
			return k
		}
	}
	if equalFold(s, oldAgentReview) {
		return AgentReview
	}
	return UnknownKind
}

// Retention returns for how long a session that waits on an interrupt of this kind is kept at least
// (envelope §5.3). An unknown kind asks for nothing beyond the retention of every session: 0.
func (k InterruptKind) Retention() time.Duration {
	if k >= numInterruptKinds {
		return 0
	}
	return interruptKinds[k].retention
}

// String returns the name as the engine writes it; "unknown" for UnknownKind.
func (k InterruptKind) String() string {
	if k >= numInterruptKinds {
		k = UnknownKind
	}
	return interruptKinds[k].name
}

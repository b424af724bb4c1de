package envelope

import (
	"fmt"
	"strings"
)

// Reason is why an envelope is terminated, or waits for an answer (envelope §3.4).
type Reason uint8

// The reasons of envelope §3.4.
const (
	NoReason Reason = iota
	CompletedSuccessfully
	ClarificationRequired
	ConfirmationRequired
	DeniedByPolicy
	ToolFailedRecoverably
	ToolFailedFatally
	MaxIterationsExceeded
	MaxLLMCallsExceeded
	MaxAgentHopsExceeded
	MaxCriticFiresExceeded
	UserCancelled
	LLMFailedFatally
	// OtherReason stands for free text, which callers put there and which is kept (envelope D45).
	OtherReason
)

// reasonNames are the two spellings of each reason. The one of boundary B in lower case is accepted
// as well as the one it is written in.
var reasonNames = [1 << 8]struct{ exchange, wire string }{
	CompletedSuccessfully:  {"completed_successfully", "COMPLETED"},
	ClarificationRequired:  {"clarification_required", "CLARIFICATION_REQUIRED"},
	ConfirmationRequired:   {"confirmation_required", "CONFIRMATION_REQUIRED"},
	DeniedByPolicy:         {"denied_by_policy", "POLICY_VIOLATION"},
	ToolFailedRecoverably:  {"tool_failed_recoverably", "TOOL_FAILED_RECOVERABLY"},
	ToolFailedFatally:      {"tool_failed_fatally", "TOOL_FAILED_FATALLY"},
	MaxIterationsExceeded:  {"max_iterations_exceeded", "MAX_ITERATIONS_EXCEEDED"},
	MaxLLMCallsExceeded:    {"max_llm_calls_exceeded", "MAX_LLM_CALLS_EXCEEDED"},
	MaxAgentHopsExceeded:   {"max_agent_hops_exceeded", "MAX_AGENT_HOPS_EXCEEDED"},
	MaxCriticFiresExceeded: {"max_critic_fires_exceeded", "MAX_CRITIC_FIRES_EXCEEDED"},
	UserCancelled:          {"user_cancelled", "USER_CANCELLED"},
	LLMFailedFatally:       {"llm_failed_fatally", "LLM_FAILED_FATALLY"},
}

// ParseReason returns the reason that s spells, in either column of envelope §3.4 and any ASCII
// case; NoReason for empty text and OtherReason for every other. It does not allocate. The alias
// "completed" is the spelling of boundary B in lower case.
func ParseReason(s []byte) Reason {
	if len(s) == 0 {
		return NoReason
	}
	for r := CompletedSuccessfully; r < OtherReason; r++ {
		names := &reasonNames[r]
		if equalFold(s, names.exchange) || equalFold(s, names.wire) {
			return r
		}
	}
	return OtherReason
}

// Exchange returns the spelling of boundary A in the flat shape (envelope §3.4, left column); empty
// for NoReason and OtherReason.
func (r Reason) Exchange() string { return reasonNames[r].exchange }

// Wire returns the spelling of boundary B and of the nested shape (envelope §3.4, right column);
// empty for NoReason and OtherReason.
func (r Reason) Wire() string { return reasonNames[r].wire }

// bound reports whether r is one of the four bounds, max_..._exceeded, which make a process command
// fail (envelope §4.2).
func (r Reason) bound() bool {
	return MaxIterationsExceeded <= r && r <= MaxCriticFiresExceeded
}

// equalFold reports whether s and name, which is ASCII, are equal but for the case of letters. A
// look-alike outside ASCII has more bytes, and differs by its length.
func equalFold(s []byte, name string) bool {
	return len(s) == len(name) && strings.EqualFold(string(s), name)
}

// overBound returns which bound of boundary A an agent's run would exceed (S9): iterations count
// retries and may reach their maximum, the others may not (envelope D9). It is NoReason within
// bounds.
func (e *Env) overBound() (r Reason, text string) {
	var n, limit Key
	var format string
	switch {
	case e.Int(Iteration) > e.Int(MaxIterations):
		r, format, n, limit = MaxIterationsExceeded, "Iteration limit exceeded (%d > %d)", Iteration, MaxIterations
	case e.Int(LLMCallCount) >= e.Int(MaxLLMCalls):
		r, format, n, limit = MaxLLMCallsExceeded, "LLM call limit reached (%d >= %d)", LLMCallCount, MaxLLMCalls
	case e.Int(AgentHopCount) >= e.Int(MaxAgentHops):
		r, format, n, limit = MaxAgentHopsExceeded, "Agent hop limit reached (%d >= %d)", AgentHopCount, MaxAgentHops
	default:
		return NoReason, ""
	}
	return r, fmt.Sprintf(format, e.Int(n), e.Int(limit))
}

// Exhausted returns which bound of boundary B is met (envelope §4.6), NoReason for none. It does
// not allocate.
func (e *Env) Exhausted() Reason {
	switch {
	case e.Int(LLMCallCount) >= e.Int(MaxLLMCalls):
		return MaxLLMCallsExceeded
	case e.Int(Iteration) >= e.Int(MaxIterations):
		return MaxIterationsExceeded
	case e.Int(AgentHopCount) >= e.Int(MaxAgentHops):
		return MaxAgentHopsExceeded
	}
	return NoReason
}

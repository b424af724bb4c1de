package envelope

import "fmt"

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

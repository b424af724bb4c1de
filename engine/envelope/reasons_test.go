package envelope

import (
	"strings"
	"testing"
)

func TestReasons(t *testing.T) {
	seen := map[Reason]bool{}
	f := func(r Reason, exchange, wire string, bound bool) {
		t.Helper()
		seen[r] = true
		if r.Exchange() != exchange || r.Wire() != wire || r.bound() != bound {
			t.Errorf("%d: %q, %q, bound %v; want %q, %q, %v", r, r.Exchange(), r.Wire(), r.bound(), exchange, wire, bound)
		}
		mixed := strings.ToUpper(wire[:3]) + strings.ToLower(wire[3:])
		for _, s := range []string{exchange, strings.ToUpper(exchange), wire, strings.ToLower(wire), mixed} {
			if got := ParseReason([]byte(s)); got != r {
				t.Errorf("ParseReason(%q) = %v, want %v", s, got, r)
			}
		}
	}
	f(CompletedSuccessfully, "completed_successfully", "COMPLETED", false)
	f(ClarificationRequired, "clarification_required", "CLARIFICATION_REQUIRED", false)
	f(ConfirmationRequired, "confirmation_required", "CONFIRMATION_REQUIRED", false)
	f(DeniedByPolicy, "denied_by_policy", "POLICY_VIOLATION", false)
	f(ToolFailedRecoverably, "tool_failed_recoverably", "TOOL_FAILED_RECOVERABLY", false)
	f(ToolFailedFatally, "tool_failed_fatally", "TOOL_FAILED_FATALLY", false)
	f(MaxIterationsExceeded, "max_iterations_exceeded", "MAX_ITERATIONS_EXCEEDED", true)
	f(MaxLLMCallsExceeded, "max_llm_calls_exceeded", "MAX_LLM_CALLS_EXCEEDED", true)
	f(MaxAgentHopsExceeded, "max_agent_hops_exceeded", "MAX_AGENT_HOPS_EXCEEDED", true)
	f(MaxCriticFiresExceeded, "max_critic_fires_exceeded", "MAX_CRITIC_FIRES_EXCEEDED", true)
	f(UserCancelled, "user_cancelled", "USER_CANCELLED", false)
	f(LLMFailedFatally, "llm_failed_fatally", "LLM_FAILED_FATALLY", false)
	if len(seen) != 12 || int(OtherReason) != 12+1 {
		t.Fatalf("%d rows tested, %d reasons", len(seen), OtherReason)
	}
}

func TestOtherReasons(t *testing.T) {
	f := func(s string, want Reason) {
		t.Helper()
		r := ParseReason([]byte(s))
		if r != want || r.Exchange() != "" || r.Wire() != "" || r.bound() {
			t.Errorf("ParseReason(%q) = %v (%q, %q, %v)", s, r, r.Exchange(), r.Wire(), r.bound())
		}
	}
	f("", NoReason)
	f("the user went home", OtherReason)
	f("completed ", OtherReason)
	f("complete", OtherReason)
	f("COMPLETED_SUCCESSFULL", OtherReason)
	f("user-cancelled", OtherReason)
	f("u\u017fer_cancelled", OtherReason) // a long s is no s
	f("USER\x7fCANCELLED", OtherReason)
	f("MAX_TOOL_CALLS_EXCEEDED", OtherReason)
	f(strings.Repeat("x", 5000), OtherReason)
	if r := Reason(200); r.Exchange() != "" || r.Wire() != "" || r.bound() {
		t.Errorf("reason out of range: %v", r)
	}
}

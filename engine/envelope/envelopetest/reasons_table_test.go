package envelopetest_test

// reasons is the left column of envelope §3.4: is the reason one of the four exceeded bounds?
var reasons = map[string]bool{
	"completed_successfully": false, "clarification_required": false, "confirmation_required": false, "denied_by_policy": false,
	"tool_failed_recoverably": false, "tool_failed_fatally": false, "max_iterations_exceeded": true,
	"max_llm_calls_exceeded": true, "max_agent_hops_exceeded": true, "max_critic_fires_exceeded": true,
	"user_cancelled": false, "llm_failed_fatally": false,
}

package orchtest

import (
	"testing"

	"trunkline/codec/wire"
)

// TestCheckBounds: the first bound that is met, and what remains, never below zero (envelope §4.6,
// §3.10).
func TestCheckBounds(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		f := func(over obj, reason string, llm, hops, iterations int) {
			t.Helper()
			want := obj{"can_continue": reason == "", "terminal_reason": reason, "llm_calls_remaining": llm, "agent_hops_remaining": hops, "iterations_remaining": iterations}
			env := make("e", over)
			k.want(k.checkBounds(env), want)
			k.want(k.checkBounds(obj{"envelope": env}), want)
			k.want(k.checkBounds(obj{"envelope": jsonText(env)}), want)
		}
		f(obj{}, "", 10, 21, 3)
		f(obj{"llm_call_count": 9, "iteration": 2, "agent_hop_count": 20}, "", 1, 1, 1)
		f(obj{"llm_call_count": 10}, "MAX_LLM_CALLS_EXCEEDED", 0, 21, 3)
		f(obj{"iteration": 3}, "MAX_ITERATIONS_EXCEEDED", 10, 21, 0)
		f(obj{"agent_hop_count": 21}, "MAX_AGENT_HOPS_EXCEEDED", 10, 0, 3)
		f(obj{"llm_call_count": 10, "iteration": 3, "agent_hop_count": 21}, "MAX_LLM_CALLS_EXCEEDED", 0, 0, 0)
		f(obj{"iteration": 3, "agent_hop_count": 21}, "MAX_ITERATIONS_EXCEEDED", 10, 0, 0)
		f(obj{"llm_call_count": maxCounter, "iteration": maxCounter, "agent_hop_count": maxCounter}, "MAX_LLM_CALLS_EXCEEDED", 0, 0, 0)
		f(obj{"max_llm_calls": 0}, "MAX_LLM_CALLS_EXCEEDED", 0, 21, 3)
		f(obj{"max_iterations": 0}, "MAX_ITERATIONS_EXCEEDED", 10, 21, 0)
		f(obj{"max_agent_hops": 0}, "MAX_AGENT_HOPS_EXCEEDED", 10, 0, 3)
		f(obj{"max_llm_calls": maxCounter, "max_iterations": maxCounter, "max_agent_hops": maxCounter}, "", maxCounter, maxCounter, maxCounter)
		f(obj{"llm_call_count": nil, "max_llm_calls": nil}, "", 10, 21, 3)
		f(obj{"terminated": true, "terminal_reason": "USER_CANCELLED"}, "", 10, 21, 3)
		f(obj{"interrupt_pending": true, "interrupt": obj{"kind": "clarification"}}, "", 10, 21, 3)
		f(obj{"tokens_in": int64(maxTokens), "tool_call_count": maxCounter}, "", 10, 21, 3)
		if k.e.Active() != 0 {
			t.Error("asking made a session")
		}
		k.refuse(k.update(make("e")), wire.NotFound, "Envelope e not found")
	})
}

// TestCheckBoundsUnwraps: an envelope under the key envelope is taken only when nothing else makes
// the body one.
func TestCheckBoundsUnwraps(t *testing.T) {
	k := newTalk(t)
	inner := nested("in", obj{"llm_call_count": 10})
	k.has(k.checkBounds(obj{"envelope": inner, "endpoint": "x"}), obj{"can_continue": false})
	k.has(k.checkBounds(flat("out", obj{"envelope": inner})), obj{"can_continue": true})
	k.has(k.checkBounds(with(nested("out"), obj{"envelope": inner})), obj{"can_continue": true})
	k.invalid(k.checkBounds(obj{"envelope": "no json"}), "")
	k.invalid(k.checkBounds(obj{"envelope": 5}), "")
	k.invalid(k.checkBounds(obj{"envelope": nil}), "")
}

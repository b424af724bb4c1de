package orchtest

import (
	"fmt"
	"testing"

	"trunkline/codec/wire"
)

// TestReportOutputs: whose output is written where, and what a failure adds to it (envelope §5.2
// steps 1, 2 and 4, D31, D35).
func TestReportOutputs(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.start("p", cycle(nil), make("e", obj{"outputs": obj{"a1": obj{"old": 1}, "kept": obj{}}, "metadata": obj{"m": 1}}))
		set := func(names ...any) any {
			if path("metadata") != "metadata" {
				return arr(names)
			}
			m := obj{}
			for _, n := range names {
				m[n.(string)] = true
			}
			return m
		}
		in := func(key string) string { return "envelope." + path(key) }
		k.has(k.report("p", giving("a1", obj{"new": arr{2}})), obj{
			in("outputs"): obj{"a1": obj{"new": arr{2}}, "kept": obj{}}, in("completed_stage_set"): set("s1"), in("failed_stages"): absent{},
		})
		r := failing("a2", "")
		r.output = obj{"success": "mine", "x": 1}
		k.has(k.report("p", r), obj{
			in("outputs"):             obj{"a1": obj{"new": arr{2}}, "kept": obj{}, "a2": obj{"success": false, "error": "", "x": 1}},
			in("completed_stage_set"): set("s1"), in("failed_stages"): obj{"s2": ""},
			in("metadata"): obj{"m": 1, "last_agent_failure": obj{"agent_name": "a2", "error": ""}},
		})
		k.has(k.report("p", failing("a1", "sorry")), obj{
			in("outputs.a1"): obj{"success": false, "error": "sorry"}, in("completed_stage_set"): set("s1"), in("failed_stages"): obj{"s2": "", "s1": "sorry"},
			in("metadata"): obj{"m": 1, "last_agent_failure": obj{"agent_name": "a1", "error": "sorry"}},
		})
		k.has(k.report("p", by("a2")), obj{
			in("outputs.a2"): obj{}, in("failed_stages"): obj{"s1": "sorry"}, in("metadata") + ".last_agent_failure.agent_name": "a1",
		})
		got, _ := at(k.body(k.state("p")), in("completed_stage_set"))
		if diff := matchSet(got, nameSet{names: map[string]bool{"s1": true, "s2": true}, list: path("metadata") != "metadata"}); diff != "" {
			t.Errorf("completed%s", diff)
		}
	})
}

// TestReportNames: the agent's or the stage's name will do; the output goes under the name that was
// reported.
func TestReportNames(t *testing.T) {
	k := newTalk(t)
	k.start("p", line(2), flat("e"))
	k.has(k.report("p", by("s1")), obj{"kind": "RUN_AGENT", "agent_name": "a2", "envelope.outputs": obj{"s1": obj{}}, "envelope.completed_stage_set": obj{"s1": true}})
	k.terminates(k.report("p", failing("s2", "x")), "TOOL_FAILED_FATALLY", "Agent s2 failed: x")
	k.has(k.state("p"), obj{"envelope.metadata.last_agent_failure.agent_name": "s2", "envelope.failed_stages": obj{"s2": "x"}})
}

// TestReportRefusals: a refused report changes nothing (envelope §4.12, D32).
func TestReportRefusals(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.start("p", line(3), make("e"))
		k.report("p", by("a1"))
		k.unchanged("p", func() {
			for _, agent := range []string{"a1", "s1", "a3", "A2", "", "x'y"} {
				k.refuse(k.report("p", giving(agent, obj{"x": 1})), wire.FailedPrecondition, "Expected result from agent 'a2', got '%s'", agent)
			}
		})
		k.runs(k.next("p"), "a2")
		k.start("w", line(1), make("f", obj{"interrupt_pending": true}))
		k.unchanged("w", func() {
			k.refuse(k.report("w", by("a1")), wire.FailedPrecondition, "Process w is waiting on an interrupt")
			k.refuse(k.report("w", by("nobody")), wire.FailedPrecondition, "Process w is waiting on an interrupt")
		})
		k.start("d", line(1), make("g"))
		k.terminates(k.report("d", by("a1")), "COMPLETED", "Pipeline completed")
		k.unchanged("d", func() {
			k.terminates(k.report("d", failing("a1", "late")), "COMPLETED", endedBefore)
			k.terminates(k.report("d", by("nobody")), "COMPLETED", endedBefore)
			k.terminates(k.next("d"), "COMPLETED", endedBefore)
		})
	})
}

// TestCounters: what a report adds, saturating (envelope §5.2 step 3, D33, D41).
func TestCounters(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.start("p", cycle(obj{"max_llm_calls": maxCounter}), make("e", obj{"tool_call_count": maxCounter - 3, "tokens_in": int64(maxTokens) - 5, "tokens_out": 1}))
		n := 0
		f := func(llm, tool, in, out int64, want ...any) {
			t.Helper()
			n++
			got := k.report("p", report{agent: fmt.Sprint("a", 2-n%2), llm: llm, tool: tool, tokensIn: in, tokensOut: out})
			k.has(got, obj{
				"envelope." + path("llm_call_count"): want[0], "envelope." + path("tool_call_count"): want[1], "envelope." + path("tokens_in"): want[2],
				"envelope." + path("tokens_out"): want[3], "envelope." + path("iteration"): n,
			})
		}
		f(1, 2, -1, -1, 1, maxCounter-1, int64(maxTokens)-5, 1)
		f(0, 1, 5, 0, 1, maxCounter, int64(maxTokens), 1)
		f(2, 1, 1, maxTokens, 3, maxCounter, int64(maxTokens), int64(maxTokens))
		f(0, maxCounter, maxTokens, maxTokens, 3, maxCounter, int64(maxTokens), int64(maxTokens))
		f(maxCounter, 0, 0, 0, maxCounter, maxCounter, int64(maxTokens), int64(maxTokens))
		k.has(k.next("p"), obj{"terminal_reason": "MAX_LLM_CALLS_EXCEEDED"})
	})
	k := newTalk(t)
	k.start("p", line(1), flat("e", obj{"iteration": maxCounter, "agent_hop_count": maxCounter}))
	k.has(k.report("p", by("a1")), obj{"terminal_reason": "COMPLETED", "envelope.iteration": maxCounter, "envelope.agent_hop_count": maxCounter})
}

// TestFinishingWins: the end of the pipeline is the end whatever the bounds are (D29); bounds stop
// what would go on, before the edge's limit, and the stage stays.
func TestFinishingWins(t *testing.T) {
	k := newTalk(t)
	tight := obj{"max_iterations": 3, "max_llm_calls": 1, "max_agent_hops": 3}
	k.start("p", with(line(3), tight), flat("e"))
	k.report("p", by("a1"))
	k.report("p", by("a2"))
	last := by("a3")
	last.llm = 7
	k.terminates(k.report("p", last), "COMPLETED", "Pipeline completed")
	k.has(k.state("p"), obj{"current_stage": "s3", "envelope.iteration": 3, "envelope.llm_call_count": 7, "envelope.completed_at": stamp(k.now)})

	f := func(over, env obj, r report, reason string) {
		t.Helper()
		k.body(k.initialize("q", with(line(3), obj{"edge_limits": arr{obj{"from_stage": "s1", "to_stage": "s2", "max_count": 0}}}, over), flat("e", env), true))
		r.agent = "a1"
		k.terminates(k.report("q", r), reason, "Bounds exceeded: "+reason)
		k.has(k.state("q"), obj{
			"current_stage": "s1", "edge_traversals": obj{}, "terminated": true, "terminal_reason": reason, "envelope.terminal_reason": reason,
			"envelope.termination_reason": "Bounds exceeded: " + reason, "envelope.completed_at": stamp(k.now), "envelope.completed_stage_set": obj{"s1": true},
			"envelope.agent_hop_count": env["agent_hop_count"],
		})
	}
	f(obj{"max_llm_calls": 5}, obj{"agent_hop_count": 0}, report{llm: 5}, "MAX_LLM_CALLS_EXCEEDED")
	f(obj{"max_iterations": 1}, obj{"agent_hop_count": 0}, report{}, "MAX_ITERATIONS_EXCEEDED")
	f(obj{}, obj{"agent_hop_count": 100}, report{}, "MAX_AGENT_HOPS_EXCEEDED")
	f(obj{"max_llm_calls": 1, "max_iterations": 1}, obj{"agent_hop_count": 100}, report{llm: 1}, "MAX_LLM_CALLS_EXCEEDED")
	f(obj{"max_iterations": 1}, obj{"agent_hop_count": 100}, report{}, "MAX_ITERATIONS_EXCEEDED")
}

// TestBoundsBeforeRunning: GetNextInstruction stops a session over a bound; a bound of 0 is met at
// once.
func TestBoundsBeforeRunning(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		f := func(over, env obj, reason string) {
			t.Helper()
			k := newTalk(t)
			k.start("p", with(line(2), over), make("e", env))
			k.has(k.state("p"), obj{"terminated": false, "terminal_reason": ""})
			k.terminates(k.next("p"), reason, "Bounds exceeded: "+reason)
			k.has(k.state("p"), obj{
				"terminated": true, "terminal_reason": reason, "current_stage": "s1", "envelope." + path("terminal_reason"): reason,
				"envelope." + path("termination_reason"): "Bounds exceeded: " + reason, "envelope." + path("completed_at"): stamp(k.now),
			})
			k.now = after(k.now, 1e9)
			k.unchanged("p", func() { k.terminates(k.next("p"), reason, endedBefore) })
		}
		f(obj{"max_iterations": 0}, obj{}, "MAX_ITERATIONS_EXCEEDED")
		f(obj{"max_llm_calls": 0}, obj{}, "MAX_LLM_CALLS_EXCEEDED")
		f(obj{"max_agent_hops": 0}, obj{}, "MAX_AGENT_HOPS_EXCEEDED")
		f(obj{}, obj{"iteration": 100, "agent_hop_count": 100}, "MAX_ITERATIONS_EXCEEDED")
		f(obj{}, obj{"iteration": maxCounter, "llm_call_count": 100}, "MAX_LLM_CALLS_EXCEEDED")
	})
}

// TestCompletedAtStays: it is set when absent, and only then.
func TestCompletedAtStays(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.now = after(k.now, 1_234_000_000)
		k.start("p", line(1), make("e", obj{"completed_at": "2020-01-01T00:00:00"}))
		k.has(k.report("p", by("a1")), obj{"envelope." + path("completed_at"): "2020-01-01T00:00:00", "envelope." + path("termination_reason"): "Pipeline completed"})
		k.start("q", line(1), make("e", obj{"completed_at": nil, "termination_reason": "old"}))
		k.has(k.report("q", by("a1")), obj{"envelope." + path("completed_at"): "2026-01-02T03:04:06.234000Z", "envelope." + path("termination_reason"): "Pipeline completed"})
	})
}

// TestNextRepeats: without a report between, the same bytes come back (envelope §4.11).
func TestNextRepeats(t *testing.T) {
	k := newTalk(t)
	k.start("p", line(2), nested("e"))
	first := string(k.next("p").body)
	for range 3 {
		k.now = after(k.now, 1e9)
		if again := string(k.next("p").body); again != first {
			t.Fatalf("%q then %q", first, again)
		}
	}
	told := string(k.report("p", by("a1")).body)
	if again := string(k.next("p").body); again != told {
		t.Errorf("the report says %q, then %q", told, again)
	}
}

package orchtest

import (
	"testing"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// TestEntryStage: where a session starts (envelope §4.10, D27).
func TestEntryStage(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		f := func(config, over obj, want string) {
			t.Helper()
			k := newTalk(t)
			k.has(k.initialize("p", config, make("e", over), false), obj{"current_stage": want, "envelope." + path("current_stage"): want})
			if got := k.stage("p"); got != want {
				t.Errorf("CurrentStage %q, want %q", got, want)
			}
		}
		f(line(3), obj{}, "s1")
		f(line(3), obj{"current_stage": nil}, "s1")
		f(line(3), obj{"current_stage": ""}, "s1")
		f(line(3), obj{"current_stage": "start"}, "s1")
		f(line(3), obj{"current_stage": "end"}, "s1")
		f(line(3), obj{"current_stage": "s2"}, "s2")
		f(line(3), obj{"current_stage": "s3", "stage_order": arr{"s3"}}, "s3")
		named := plan(obj{"agents": arr{obj{"name": "a"}, obj{"name": "start"}, obj{"name": "end"}}})
		f(named, obj{"current_stage": "start"}, "start")
		f(named, obj{"current_stage": "end"}, "end")
		f(named, obj{}, "a")
		k := newTalk(t)
		for _, s := range []string{"zzz", "S1", "clarification", "s1 ", "confirmation"} {
			k.refuse(k.initialize("p", line(3), make("e", obj{"current_stage": s}), false), wire.InvalidArgument, "Stage not found in pipeline: %s", s)
		}
		if k.e.Active() != 0 || k.stage("p") != "" {
			t.Error("a session came of an unknown stage")
		}
	})
}

// TestInitialState: what comes from the config and what from the envelope (envelope §4.10, D28).
func TestInitialState(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		given := obj{
			"iteration": 2, "llm_call_count": 4, "agent_hop_count": 6, "tool_call_count": 8, "tokens_in": int64(1) << 40, "tokens_out": 3,
			"max_iterations": 1, "max_llm_calls": 1, "max_agent_hops": 1, "stage_order": arr{"other"}, "outputs": obj{"a": obj{"b": 1}},
			"interrupt_pending": true, "interrupt": obj{"kind": "checkpoint", "id": "int_1"},
		}
		want := received(make("e", given), stamp(k.now))
		want.set("current_stage", "s1")
		want.set("stage_order", arr{"s1", "s2"})
		for _, key := range []string{"max_iterations", "max_llm_calls", "max_agent_hops"} {
			want.set(key, 100)
		}
		k.want(k.initialize("p", line(2), make("e", given), false), obj{
			"process_id": "p", "current_stage": "s1", "stage_order": arr{"s1", "s2"}, "envelope": want.m, "edge_traversals": obj{},
			"terminated": false, "terminal_reason": "",
		})
		k.want(k.next("p"), obj{
			"kind": "WAIT_INTERRUPT", "agent_name": "", "envelope": want.m, "terminal_reason": "", "termination_message": "",
			"interrupt_pending": true, "interrupt": given["interrupt"],
		})
	})
}

// TestTerminatedEnvelopes: a session over an ended envelope answers TERMINATE at once (D28), in the
// spelling of §3.4 whatever spelling came in, which itself is echoed.
func TestTerminatedEnvelopes(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		f := func(given, want string) {
			t.Helper()
			k.body(k.initialize("p", line(2), make("e", obj{"terminated": true, "terminal_reason": given, "termination_reason": "because"}), true))
			k.has(k.state("p"), obj{"terminated": true, "terminal_reason": want})
			k.unchanged("p", func() {
				k.has(k.next("p"), obj{
					"kind": "TERMINATE", "terminal_reason": want, "termination_message": endedBefore,
					"envelope." + path("terminal_reason"): given, "envelope." + path("termination_reason"): "because",
				})
				k.terminates(k.report("p", by("a1")), want, endedBefore)
				k.terminates(k.report("p", by("nobody")), want, endedBefore)
				k.ended("p")
			})
		}
		for given, want := range map[string]string{
			"completed_successfully": "COMPLETED", "Completed": "COMPLETED", "COMPLETED": "COMPLETED", "denied_by_policy": "POLICY_VIOLATION",
			"policy_violation": "POLICY_VIOLATION", "tool_failed_recoverably": "TOOL_FAILED_RECOVERABLY", "Tool_Failed_Fatally": "TOOL_FAILED_FATALLY",
			"max_iterations_exceeded": "MAX_ITERATIONS_EXCEEDED", "MAX_LLM_CALLS_EXCEEDED": "MAX_LLM_CALLS_EXCEEDED",
			"max_agent_hops_exceeded": "MAX_AGENT_HOPS_EXCEEDED", "max_critic_fires_exceeded": "MAX_CRITIC_FIRES_EXCEEDED",
			"user_cancelled": "USER_CANCELLED", "llm_failed_fatally": "LLM_FAILED_FATALLY", "clarification_required": "CLARIFICATION_REQUIRED",
			"confirmation_required": "CONFIRMATION_REQUIRED",
		} {
			f(given, want)
		}
		k.body(k.initialize("p", line(2), make("e", obj{"terminated": true}), true))
		k.terminates(k.next("p"), "", endedBefore)
		k.body(k.initialize("p", line(2), make("e", obj{"terminated": true, "interrupt_pending": true, "interrupt": obj{"kind": "timeout"}}), true))
		k.terminates(k.next("p"), "", endedBefore)
	})
}

// TestExistingSession: without force refused, with force replaced; counters come with the envelope
// (envelope §4.10, D28, D42).
func TestExistingSession(t *testing.T) {
	k := newTalk(t)
	k.start("p", cycle(nil), flat("e"))
	k.report("p", by("a1"))
	k.unchanged("p", func() {
		k.refuse(k.initialize("p", line(3), flat("f"), false), wire.InvalidArgument, "Session already exists for process: p (use force=true to replace)")
		k.refuse(k.initialize("p", line(3), flat("f", obj{"current_stage": "zzz"}), false), wire.InvalidArgument, "Session already exists for process: p (use force=true to replace)")
		k.refuse(k.initialize("p", line(3), flat("f", obj{"current_stage": "zzz"}), true), wire.InvalidArgument, "Stage not found in pipeline: zzz")
		k.refuse(k.initialize("p", plan(obj{"name": ""}), obj{}, false), wire.InvalidArgument, "Pipeline name is required")
		k.refuse(k.initialize("p", line(3), obj{}, false), wire.InvalidArgument, "Invalid envelope: missing field `identity`")
		k.refuse(k.initialize("p", line(3), obj{}, true), wire.InvalidArgument, "Invalid envelope: missing field `identity`")
		k.refuse(k.initialize("p", line(3), absent{}, true), wire.InvalidArgument, "Missing required field: envelope")
		k.refuse(k.initialize("p", absent{}, absent{}, true), wire.InvalidArgument, "Missing required field: pipeline_config")
		for _, v := range []mpack.Value{{Kind: mpack.Int, Int: 5}, {Kind: mpack.Bool, Int: 1}, {Kind: mpack.Float}, {Kind: mpack.Array, Data: []byte{0x90}}} {
			k.invalid(k.initialize("p", line(3), v, true), "")
			k.invalid(k.initialize("p", v, flat("f"), true), "")
			k.invalid(k.execute(v, line(3)), "")
			k.invalid(k.execute(flat("f"), v), "")
			k.invalid(k.update(v), "")
			k.invalid(k.clone(v), "")
		}
	})
	if n := k.e.Active(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	k.has(k.initialize("p", line(3), flat("f", obj{"iteration": 7}), true), obj{
		"current_stage": "s1", "stage_order": arr{"s1", "s2", "s3"}, "edge_traversals": obj{}, "envelope.iteration": 7, "envelope.envelope_id": "f", "envelope.agent_hop_count": 0,
	})
	if n := k.e.Active(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	k.has(k.initialize("q", line(3), flat("f"), true), obj{"process_id": "q"})
}

// TestOwnCopy: one envelope under two processes is two envelopes.
func TestOwnCopy(t *testing.T) {
	k := newTalk(t)
	k.start("p", line(2), flat("e"))
	k.start("q", line(2), flat("e"))
	k.runs(k.report("p", by("a1")), "a2")
	k.runs(k.next("q"), "a1")
	k.has(k.state("q"), obj{"envelope.iteration": 0, "envelope.outputs": obj{}, "edge_traversals": obj{}})
}

// TestJSONText: text at B follows the rules of JSON (envelope §3.1, §6).
func TestJSONText(t *testing.T) {
	k := newTalk(t)
	env := `  {"envelope_id":"old","envelope_id":"e\u00e9","iteration":1,"iteration":2,"x":[1,-1,18446744073709551615,0.5,1e3,"\ud83d\ude00",null,true,{}],"outputs":{}}
	`
	config := `{"name":"x","name":"n","agents":[{"name":"a","name":"b"}],"max_iterations":7}`
	k.has(k.initialize("p", config, env, false), obj{
		"stage_order": arr{"b"}, "envelope.envelope_id": "eé", "envelope.iteration": 2, "envelope.max_iterations": 7,
	})
	x, _ := at(k.body(k.state("p")), "envelope.x")
	want := arr{int64(1), int64(-1), uint64(1<<64 - 1), 0.5, 1000.0, "😀", nil, true, obj{}}
	if !equal(x, want) {
		t.Errorf("opaque values %s, want %s", show(x), show(want))
	}
	deep := func(n int) string {
		s := make([]byte, 0, 2*n)
		for range n {
			s = append(s, '[')
		}
		for range n {
			s = append(s, ']')
		}
		return `{"envelope_id":"e","x":` + string(s) + `}`
	}
	k.body(k.initialize("q", config, deep(509), false))
	k.invalid(k.initialize("r", config, deep(510), false), "")
	k.invalid(k.initialize("r", config, deep(512), false), "")
	k.refuse(k.next("r"), wire.NotFound, "Unknown process: r")
}

// TestUnknownProcess: envelope §4.11 to §4.13.
func TestUnknownProcess(t *testing.T) {
	k := newTalk(t)
	k.start("p", line(1), flat("e"))
	for _, pid := range []string{"e", "P", "p ", "pp", "no ☂"} {
		k.refuse(k.next(pid), wire.NotFound, "Unknown process: %s", pid)
		k.refuse(k.state(pid), wire.NotFound, "Unknown process: %s", pid)
		k.refuse(k.report(pid, by("a1")), wire.NotFound, "Unknown process: %s", pid)
		if s := k.stage(pid); s != "" {
			t.Errorf("%s is at stage %q", pid, s)
		}
	}
}

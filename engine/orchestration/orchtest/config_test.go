package orchtest

import (
	"testing"

	"trunkline/codec/wire"
)

// plan is a valid pipeline over which the tests lay what they are about; the stages' names are a
// and b.
func plan(over ...obj) obj {
	return with(obj{"name": "n", "agents": arr{obj{"name": "a"}, obj{"name": "b"}}}, over...)
}

// stageA is plan with members over its first stage.
func stageA(over obj) obj {
	return plan(obj{"agents": arr{with(obj{"name": "a"}, over), obj{"name": "b"}}})
}

func edges(limits ...any) obj { return plan(obj{"edge_limits": arr(limits)}) }

func limit(over ...obj) obj {
	return with(obj{"from_stage": "a", "to_stage": "b", "max_count": 1}, over...)
}

// TestPipelineRefusals: the texts of envelope §3.9; no session comes of it, and with force the old
// one lives on (D44).
func TestPipelineRefusals(t *testing.T) {
	k := newTalk(t)
	k.start("old", line(2), flat("e"))
	k.report("old", by("a1"))
	f := func(config any, want string) {
		t.Helper()
		k.refuse(k.initialize("new", config, flat("e"), false), wire.InvalidArgument, "%s", want)
		k.refuse(k.execute(flat("x"), config), wire.InvalidArgument, "%s", want)
		k.unchanged("old", func() {
			k.refuse(k.initialize("old", config, flat("e"), true), wire.InvalidArgument, "%s", want)
			k.refuse(k.initialize("old", config, flat("e"), false), wire.InvalidArgument, "%s", want)
		})
		if n := k.e.Active(); n != 1 {
			t.Errorf("%s: %d sessions, want 1", want, n)
		}
	}
	f(without(plan(), "name"), "Pipeline name is required")
	f(plan(obj{"name": ""}), "Pipeline name is required")
	f(plan(obj{"name": nil}), "Pipeline name is required")
	f(jsonText(plan(obj{"name": ""})), "Pipeline name is required")
	f(without(plan(), "agents"), "Pipeline must have at least one stage")
	f(plan(obj{"agents": arr{}}), "Pipeline must have at least one stage")
	f(plan(obj{"agents": nil}), "Pipeline must have at least one stage")
	f(plan(obj{"agents": arr{obj{"name": "a"}, obj{"name": "b"}, obj{"name": "a"}}}), "Duplicate stage name: a")
	f(stageA(obj{"default_next": "zz"}), "Stage 'a' has default_next 'zz' which does not exist in pipeline")
	f(stageA(obj{"error_next": "start"}), "Stage 'a' has error_next 'start' which does not exist in pipeline")
	f(stageA(obj{"routing": arr{obj{"target": "zz"}}}), "Stage 'a' has routing target 'zz' which does not exist in pipeline")
	f(stageA(obj{"routing_rules": arr{obj{"target": "b"}, obj{"condition": "x", "target": "zz"}}}), "Stage 'a' has routing target 'zz' which does not exist in pipeline")
	f(edges(limit(obj{"from_stage": "zz"})), "Edge limit from_stage 'zz' does not exist")
	f(edges(limit(obj{"from_stage": "end"})), "Edge limit from_stage 'end' does not exist")
	f(edges(limit(), limit(obj{"to_stage": "zz"})), "Edge limit to_stage 'zz' does not exist")
}

// TestPipelineTypes: faults of type begin with the same words (envelope §3.9).
func TestPipelineTypes(t *testing.T) {
	k := newTalk(t)
	check := func(prefix string, config obj) {
		t.Helper()
		k.invalid(k.initialize("p", config, flat("e"), true), prefix)
		if k.e.Active() != 0 {
			t.Errorf("a session came of %s", show(config))
			k.removed("p")
		}
	}
	f := func(config obj) { t.Helper(); check("Invalid pipeline_config: ", config) }
	for _, wrong := range []any{5, "x", true, arr{}} {
		f(plan(obj{"agents": arr{wrong}}))
		f(plan(obj{"edge_limits": arr{wrong}}))
		f(stageA(obj{"routing": arr{wrong}}))
	}
	for _, wrong := range []any{5, "x", true, obj{}} {
		f(plan(obj{"agents": wrong}))
		f(plan(obj{"edge_limits": wrong}))
		f(stageA(obj{"routing": wrong}))
		f(stageA(obj{"routing_rules": wrong}))
	}
	for _, wrong := range []any{5, true, arr{}, obj{}} {
		f(plan(obj{"name": wrong}))
		for _, key := range []string{"name", "agent", "default_next", "error_next"} {
			f(stageA(obj{key: wrong}))
		}
		f(stageA(obj{"routing": arr{obj{"target": wrong}}}))
		f(stageA(obj{"routing": arr{obj{"target": "b", "condition": wrong}}}))
		f(edges(limit(obj{"from_stage": wrong})))
		f(edges(limit(obj{"to_stage": wrong})))
	}
	for _, wrong := range []any{"3", 1.0, 2.5, true, -1, int64(1) << 31, uint64(1) << 63, arr{}} {
		for _, key := range []string{"max_iterations", "max_llm_calls", "max_agent_hops"} {
			f(plan(obj{key: wrong}))
		}
		f(edges(limit(obj{"max_count": wrong})))
	}
	for _, wrong := range []any{"1", true, 1.5, arr{}} {
		f(stageA(obj{"stage_order": wrong}))
	}
	for _, lacking := range []obj{
		plan(obj{"agents": arr{obj{}}}), plan(obj{"agents": arr{obj{"name": ""}}}), plan(obj{"agents": arr{obj{"name": nil}}}),
		stageA(obj{"routing": arr{obj{}}}), stageA(obj{"routing": arr{obj{"target": nil}}}), stageA(obj{"routing": arr{obj{"target": ""}}}),
		edges(without(limit(), "from_stage")), edges(without(limit(), "to_stage")), edges(obj{}),
	} {
		check("", lacking)
	}
}

// TestPipelineWhole: what is no pipeline at all.
func TestPipelineWhole(t *testing.T) {
	k := newTalk(t)
	k.refuse(k.initialize("p", absent{}, flat("e"), false), wire.InvalidArgument, "Missing required field: pipeline_config")
	k.refuse(k.execute(flat("e"), absent{}), wire.InvalidArgument, "Missing required field: pipeline_config")
	for _, text := range []string{"", "{", `{"name":"n"} {}`, `{"name":NaN}`, "[1]", `"x"`, "null", "5", "\xff", "{\"name\":\"\xff\"}"} {
		k.invalid(k.initialize("p", text, flat("e"), false), "")
	}
}

// TestPipelineReading: the two dialects and the defaults, seen in the first state and the way the
// session goes.
func TestPipelineReading(t *testing.T) {
	f := func(config obj, order arr, max ...int) {
		t.Helper()
		k := newTalk(t)
		got := k.initialize("p", config, flat("e", obj{"max_iterations": 77, "stage_order": arr{"x"}}), false)
		k.has(got, obj{"stage_order": order, "envelope.stage_order": order, "current_stage": order[0],
			"envelope.max_iterations": max[0], "envelope.max_llm_calls": max[1], "envelope.max_agent_hops": max[2]})
	}
	f(plan(), arr{"a", "b"}, 3, 10, 21)
	f(plan(obj{"max_iterations": nil, "max_llm_calls": nil, "max_agent_hops": nil, "edge_limits": nil}), arr{"a", "b"}, 3, 10, 21)
	f(plan(obj{"max_iterations": 0, "max_llm_calls": 1, "max_agent_hops": maxCounter}), arr{"a", "b"}, 0, 1, maxCounter)
	f(plan(obj{"unknown": obj{"x": 1}, "version": "9"}), arr{"a", "b"}, 3, 10, 21)
	stages := func(orders ...any) obj {
		agents := arr{}
		for i, o := range orders {
			s := obj{"name": string(rune('a' + i)), "output_key": "k"}
			if o != nil {
				s["stage_order"] = o
			}
			agents = append(agents, s)
		}
		return plan(obj{"agents": agents})
	}
	f(stages(3, 1, 2), arr{"b", "c", "a"}, 3, 10, 21)
	f(stages(1, nil, -1, 0, nil), arr{"c", "b", "d", "e", "a"}, 3, 10, 21)
	f(stages(nil, nil, nil), arr{"a", "b", "c"}, 3, 10, 21)
	f(stages(1, 1, 0, 0), arr{"c", "d", "a", "b"}, 3, 10, 21)
}

// TestPipelineEnd: "end" is the end, unless a stage has that name; a missing or empty agent is the
// stage's name.
func TestPipelineEnd(t *testing.T) {
	k := newTalk(t)
	k.start("p", plan(obj{"agents": arr{obj{"name": "a", "agent": "", "default_next": "end"}, obj{"name": "b"}}}), flat("e"))
	k.runs(k.next("p"), "a")
	k.terminates(k.report("p", by("a")), "COMPLETED", "Pipeline completed")
	k.start("q", plan(obj{"agents": arr{obj{"name": "a", "agent": nil, "default_next": "end"}, obj{"name": "end", "agent": "last"}}}), flat("f"))
	k.runs(k.report("q", by("a")), "last")
	k.terminates(k.report("q", by("last")), "COMPLETED", "Pipeline completed")
	k.start("r", plan(obj{"agents": arr{obj{"name": "a", "routing": arr{obj{"target": "end"}}, "default_next": "b"}, obj{"name": "b"}}}), flat("g"))
	k.terminates(k.report("r", by("a")), "COMPLETED", "Pipeline completed")
}

// TestEdgeLimits: zero forbids the edge (D37), of a repeated edge the first entry counts.
func TestEdgeLimits(t *testing.T) {
	f := func(want int, counts ...int) {
		t.Helper()
		limits := arr{}
		for _, n := range counts {
			limits = append(limits, obj{"from_stage": "s1", "to_stage": "s1", "max_count": n})
		}
		k := newTalk(t)
		k.start("p", obj{"name": "n", "max_iterations": 50, "edge_limits": limits, "agents": arr{obj{"name": "s1", "default_next": "s1"}, obj{"name": "s2"}}}, nested("e"))
		for range want {
			k.runs(k.report("p", by("s1")), "s1")
		}
		k.terminates(k.report("p", by("s1")), "MAX_AGENT_HOPS_EXCEEDED", "Edge limit exceeded: s1 -> s1")
		traversals := obj{"s1->s1": want}
		if want == 0 {
			traversals = obj{}
		}
		k.has(k.state("p"), obj{"edge_traversals": traversals, "envelope.bounds.agent_hop_count": want})
	}
	f(0, 0)
	f(1, 1)
	f(2, 2, 0)
	f(0, 0, 5)
	f(7, 7)
}

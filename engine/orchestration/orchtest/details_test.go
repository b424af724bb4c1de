package orchtest

import (
	"math"
	"strings"
	"testing"

	"trunkline/codec/wire"
)

// TestNilMembers: a member that is nil reads as its default, whatever it is (envelope §3.3).
func TestNilMembers(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		for _, members := range []obj{flatMembers, nestedMembers, {"received_at": 0, "completed_at": 0, "interrupt": 0, "completed_stage_set": 0, "failed_stages": 0, "active_stages": 0}} {
			for key := range members {
				t.Run(key, func(t *testing.T) { nilMember(newTalk(t), make("e", obj{key: nil}), path) })
			}
		}
		k := newTalk(t)
		k.start("p", line(1), make("e", obj{"outputs": obj{"gone": nil, "kept": obj{"n": nil}}}))
		k.has(k.report("p", by("a1")), obj{"envelope.outputs.kept": obj{"n": nil}, "envelope.outputs.a1": obj{}})
	})
}

func nilMember(k *talk, env obj, path func(string) string) {
	k.start("p", line(3), env)
	k.runs(k.report("p", report{agent: "a1", llm: 1, tool: 2, tokensIn: 3, tokensOut: 4}), "a2")
	k.runs(k.report("p", failing("a2", "x")), "a3")
	want := obj{"current_stage": "s3", "edge_traversals": obj{"s1->s2": 1, "s2->s3": 1}, "terminated": false, "terminal_reason": "", "stage_order": arr{"s1", "s2", "s3"}}
	after := obj{
		"iteration": 2, "llm_call_count": 1, "tool_call_count": 2, "tokens_in": 3, "tokens_out": 4, "agent_hop_count": 2, "terminated": false,
		"outputs": obj{"a1": obj{}, "a2": obj{"success": false, "error": "x"}}, "failed_stages": obj{"s2": "x"},
		"metadata": obj{"last_agent_failure": obj{"agent_name": "a2", "error": "x"}},
	}
	for name, v := range after {
		want["envelope."+path(name)] = v
	}
	k.has(k.state("p"), want)
	k.terminates(k.report("p", by("a3")), "COMPLETED", "Pipeline completed")
	k.has(k.state("p"), obj{"envelope." + path("completed_at"): stamp(k.now)})
}

// TestLongNames: identifiers up to their limit, and over it (envelope §3.7, kernel-ipc §3.4).
func TestLongNames(t *testing.T) {
	limit := strings.Repeat("é", 512)
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.body(k.initialize(limit, line(1), make(limit, obj{"request_id": limit, "user_id": limit, "session_id": limit}), false))
		k.has(k.state(limit), obj{"process_id": limit, "envelope." + path("envelope_id"): limit})
		k.refuse(k.next(limit[1:]), wire.NotFound, "Unknown process: %s", limit[1:])
		for _, key := range []string{"envelope_id", "request_id", "user_id", "session_id"} {
			k.refuse(k.clone(make("e", obj{key: limit + "x"})), wire.InvalidArgument, "Invalid envelope: %s exceeds 1024 bytes", path(key))
		}
		k.removed(limit)
		k.runs(k.execute(make(limit, obj{"user_id": "u"}), line(1)), "a1")
	})
}

// TestStrangeNames: names of stages and agents are any text.
func TestStrangeNames(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.start("p", obj{"name": "ñ", "max_iterations": 9, "agents": arr{
			obj{"name": "a->b", "agent": "it's \"x\"", "default_next": "☂"}, obj{"name": "☂", "agent": "a\x00b\n", "default_next": "END"}, obj{"name": "END", "agent": "'"},
		}}, make("e"))
		k.refuse(k.report("p", by("☂")), wire.FailedPrecondition, "Expected result from agent 'it's \"x\"', got '☂'")
		k.runs(k.report("p", by("it's \"x\"")), "a\x00b\n")
		k.runs(k.report("p", failing("a\x00b\n", "é'\x00")), "'")
		k.terminates(k.report("p", failing("END", "no '%s'")), "TOOL_FAILED_FATALLY", "Agent END failed: no '%s'")
		k.has(k.state("p"), obj{
			"edge_traversals": obj{"a->b->☂": 1, "☂->END": 1}, "envelope." + path("failed_stages"): obj{"☂": "é'\x00", "END": "no '%s'"},
			"envelope." + path("stage_order"): arr{"a->b", "☂", "END"},
		})
		k.removed("p")
		many := arr{}
		for i := range 40 {
			many = append(many, obj{"name": strings.Repeat("n", i+1), "default_next": strings.Repeat("n", (i+7)%40+1)})
		}
		k.start("p", obj{"name": "n", "agents": many, "max_iterations": 100, "max_llm_calls": 100, "max_agent_hops": 100}, make("e"))
		at, edges := 0, obj{}
		for range 99 {
			next := (at + 7) % 40
			k.runs(k.report("p", by(strings.Repeat("n", at+1))), strings.Repeat("n", next+1))
			name := strings.Repeat("n", at+1) + "->" + strings.Repeat("n", next+1)
			have, _ := edges[name].(int)
			edges[name], at = have+1, next
		}
		k.has(k.state("p"), obj{"edge_traversals": edges})
	})
}

// TestFreeReasons: free text as a reason is kept, and shown (D45).
func TestFreeReasons(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.start("p", line(1), make("e", obj{"terminated": true, "terminal_reason": "Whatever you say"}))
		k.has(k.next("p"), obj{"kind": "TERMINATE", "terminal_reason": "Whatever you say", "envelope." + path("terminal_reason"): "Whatever you say"})
	})
}

// TestRepeatedKeys: of a repeated key the last one counts, and the reply states what the engine
// goes by.
func TestRepeatedKeys(t *testing.T) {
	twice := func(m obj, key string, first any) rawMsg {
		b := packHead(nil, 0x80, 0xde, len(m)+1)
		b = pack(packText(b, key), first)
		return append(b, pack(nil, m)[1:]...)
	}
	f := func(name string, env any, path ...string) {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			got := k.initialize("p", line(3), env, false)
			for n := range 3 {
				if got.code != wire.OK {
					t.Fatalf("%s %s", got.code, got.msg)
				}
				if v, _ := lastOf(got.body, path...); v != int64(2+n) {
					t.Errorf("after %d reports iteration is %v, want %d", n, v, 2+n)
				}
				if got = k.report("p", by([]string{"a1", "a2", "a3"}[n])); n < 2 {
					if agent, _ := lastOf(got.body, "agent_name"); agent != []string{"a2", "a3"}[n] {
						t.Errorf("report %d leads to %v", n, agent)
					}
				}
			}
			if v, _ := lastOf(got.body, "terminal_reason"); v != "COMPLETED" {
				t.Errorf("the end is %v", v)
			}
		})
	}
	f("flat", twice(flat("e", obj{"iteration": 2}), "iteration", 70), "envelope", "iteration")
	f("group", twice(nested("e", obj{"iteration": 2}), "pipeline", obj{"iteration": 70}), "envelope", "pipeline", "iteration")
	inner := nested("e", obj{"iteration": 2})
	inner["pipeline"] = twice(inner["pipeline"].(obj), "iteration", 70)
	f("member", inner, "envelope", "pipeline", "iteration")
	f("text", `{"envelope_id":"x","iteration":70,"iteration":2,"envelope_id":"e"}`, "envelope", "iteration")
	f("nested text", `{"identity":{"envelope_id":"e"},"bounds":{},"pipeline":{"iteration":70},"pipeline":{"iteration":9,"iteration":2}}`, "envelope", "pipeline", "iteration")
	f("flat after all", twice(flat("e", obj{"iteration": 2, "identity": nil}), "identity", obj{"envelope_id": "q"}), "envelope", "iteration")

	k := newTalk(t)
	config := twice(plan(obj{"max_iterations": 5}), "max_iterations", "no number")
	k.has(k.initialize("p", config, flat("e"), false), obj{"envelope.max_iterations": 5})
	k.start("q", obj{"name": "n", "agents": arr{obj{"name": "a", "routing": arr{obj{"condition": "v", "value": 1, "target": "b"}}}, obj{"name": "b"}}}, flat("e"))
	raw := twice(obj{"v": 1}, "v", 2)
	c, out := k.begin()
	got := k.done(k.reportRaw(c, "q", "a", raw, out))
	if agent, _ := lastOf(got.body, "agent_name"); agent != "b" {
		t.Errorf("an output with v twice leads to %v: %s", agent, got.msg)
	}
}

// TestNotANumber: NaN and the infinities read as nil (kernel-ipc §3.3).
func TestNotANumber(t *testing.T) {
	k := newTalk(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		k.body(k.initialize("p", plan(obj{"agents": arr{
			obj{"name": "a", "routing": arr{obj{"condition": "v", "value": v, "target": "c"}, obj{"condition": "v", "target": "b"}}}, obj{"name": "b"}, obj{"name": "c"},
		}}), flat("e"), true))
		k.runs(k.report("p", giving("a", obj{"v": nil})), "c")
		k.body(k.initialize("p", stageA(obj{"routing": arr{obj{"condition": "v", "target": "b"}}}), flat("e"), true))
		k.runs(k.report("p", giving("a", obj{"v": v})), "b")
	}
}

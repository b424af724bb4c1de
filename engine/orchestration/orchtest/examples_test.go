package orchtest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

const exampleConfig = `{"name":"n","agents":[{"name":"s1","agent":"a1","routing":[{"condition":null,"value":null,"target":"s2"}]},
	{"name":"s2","agent":"a2","routing":[]}],"max_iterations":5,"max_llm_calls":10,"max_agent_hops":10,"edge_limits":[]}`

const exampleEnvelope = `{"envelope_id":"e1","current_stage":"start","outputs":{},"request_context":{"request_id":"r"}}`

// TestFlatSession is envelope §9.13, once with maps and once with JSON text.
func TestFlatSession(t *testing.T) {
	t.Run("maps", func(t *testing.T) { flatSession(newTalk(t), fromJSON(exampleConfig), fromJSON(exampleEnvelope)) })
	t.Run("text", func(t *testing.T) { flatSession(newTalk(t), exampleConfig, exampleEnvelope) })
}

func flatSession(k *talk, config, env any) {
	got := k.initialize("p2", config, env, false)
	k.want(got, obj{
		"process_id": "p2", "current_stage": "s1", "stage_order": arr{"s1", "s2"}, "edge_traversals": obj{}, "terminated": false, "terminal_reason": "",
		"envelope": fromJSON(`{"envelope_id":"e1","current_stage":"s1","outputs":{},"request_context":{"request_id":"r"},"stage_order":["s1","s2"],
			"iteration":0,"max_iterations":5,"llm_call_count":0,"max_llm_calls":10,"agent_hop_count":0,"max_agent_hops":10,"terminated":false,
			"terminal_reason":null,"termination_reason":null,"interrupt_pending":false,"metadata":{}}`),
	})
	first := giving("a1", obj{"v": 1})
	first.llm = 1
	k.want(k.report("p2", first), fromJSON(`{"kind":"RUN_AGENT","agent_name":"a2","envelope":{"envelope_id":"e1","current_stage":"s2","outputs":{"a1":{"v":1}},
		"request_context":{"request_id":"r"},"stage_order":["s1","s2"],"iteration":1,"max_iterations":5,"llm_call_count":1,"max_llm_calls":10,
		"agent_hop_count":1,"max_agent_hops":10,"terminated":false,"interrupt_pending":false,"tool_call_count":0,"tokens_in":0,"tokens_out":0,
		"terminal_reason":null,"termination_reason":null,"completed_stage_set":{"s1":true},"metadata":{}},"terminal_reason":"",
		"termination_message":"","interrupt_pending":false,"interrupt":null}`))
	end := fromJSON(`{"kind":"TERMINATE","agent_name":"","envelope":{"envelope_id":"e1","current_stage":"s2",
		"outputs":{"a1":{"v":1},"a2":{"success":false,"error":"boom"}},
		"request_context":{"request_id":"r"},"stage_order":["s1","s2"],"iteration":2,"max_iterations":5,"llm_call_count":1,"max_llm_calls":10,
		"agent_hop_count":1,"max_agent_hops":10,"terminated":true,"interrupt_pending":false,"tool_call_count":0,"tokens_in":0,"tokens_out":0,
		"terminal_reason":"TOOL_FAILED_FATALLY","termination_reason":"Agent a2 failed: boom","completed_at":"2026-01-02T03:04:05.000000Z",
		"completed_stage_set":{"s1":true},"failed_stages":{"s2":"boom"},"metadata":{"last_agent_failure":{"agent_name":"a2","error":"boom"}}},
		"terminal_reason":"TOOL_FAILED_FATALLY","termination_message":"Agent a2 failed: boom","interrupt_pending":false,"interrupt":null}`)
	k.want(k.report("p2", failing("a2", "boom")), end)
	end["termination_message"] = endedBefore
	k.want(k.next("p2"), end)
	k.want(k.next("p2"), end)
}

// TestCycle is envelope §9.14.
func TestCycle(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		k.start("p", cycle(obj{"edge_limits": arr{obj{"from_stage": "s2", "to_stage": "s1", "max_count": 2}}}), make("e"))
		for i := range 5 {
			k.runs(k.next("p"), fmt.Sprint("a", i%2+1))
			k.runs(k.report("p", by(fmt.Sprint("a", i%2+1))), fmt.Sprint("a", (i+1)%2+1))
		}
		k.terminates(k.report("p", by("a2")), "MAX_AGENT_HOPS_EXCEEDED", "Edge limit exceeded: s2 -> s1")
		k.has(k.state("p"), obj{
			"edge_traversals": obj{"s1->s2": 3, "s2->s1": 2}, "terminated": true, "terminal_reason": "MAX_AGENT_HOPS_EXCEEDED", "current_stage": "s2",
			"envelope." + path("agent_hop_count"): 5, "envelope." + path("iteration"): 6,
		})

		k.start("q", cycle(obj{"max_iterations": 4}), make("f"))
		for i := range 3 {
			k.runs(k.report("q", by(fmt.Sprint("a", i%2+1))), fmt.Sprint("a", (i+1)%2+1))
		}
		k.terminates(k.report("q", by("a2")), "MAX_ITERATIONS_EXCEEDED", "Bounds exceeded: MAX_ITERATIONS_EXCEEDED")
		k.has(k.state("q"), obj{"current_stage": "s2", "edge_traversals": obj{"s1->s2": 2, "s2->s1": 1}, "envelope." + path("iteration"): 4})
	})
}

// TestRouting is envelope §9.15.
func TestRouting(t *testing.T) {
	config := obj{"name": "n", "max_iterations": 9, "agents": arr{
		obj{"name": "s1", "routing": arr{obj{"condition": "v", "value": 1, "target": "s3"}}, "default_next": "s2", "error_next": "s4"},
		obj{"name": "s2"}, obj{"name": "s3"}, obj{"name": "s4"},
	}}
	f := func(r report, want string) {
		t.Helper()
		k := newTalk(t)
		k.start("p", config, flat("e"))
		r.agent, r.tokensIn, r.tokensOut = "s1", -1, -1
		k.runs(k.report("p", r), want)
	}
	f(report{output: obj{"v": 1}}, "s3")
	f(report{output: obj{"v": 1.0}}, "s3")
	f(report{output: obj{"v": true}}, "s2")
	f(report{output: obj{}}, "s2")
	f(report{}, "s2")
	f(report{output: obj{"v": 1}, failed: true}, "s4")
}

// TestBoundsBytes is the body of bounds_rsp in envelope §9.16.
func TestBoundsBytes(t *testing.T) {
	want := strings.ReplaceAll(`85 ac 63 61 6e 5f 63 6f 6e 74 69 6e 75 65 c3 af 74 65 72 6d 69 6e 61 6c 5f 72 65 61 73 6f 6e a0 b3 6c 6c 6d 5f 63 61 6c 6c 73 5f
		72 65 6d 61 69 6e 69 6e 67 0a b4 61 67 65 6e 74 5f 68 6f 70 73 5f 72 65 6d 61 69 6e 69 6e 67 15 b4 69 74 65 72 61 74 69 6f 6e 73 5f 72 65
		6d 61 69 6e 69 6e 67 03`, " ", "")
	want = strings.NewReplacer("\n", "", "\t", "").Replace(want)
	k := newTalk(t)
	got := k.checkBounds(flat("e"))
	k.body(got)
	if h := hex.EncodeToString(got.body); h != want {
		t.Errorf("got  %s\nwant %s", h, want)
	}
}

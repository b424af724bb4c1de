package orchtest

import (
	"sort"
	"strings"
	"testing"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

const tooLarge = "Envelope too large"

// reserved bounds the room a session's envelope leaves for the rest of whatever reply shows it
// later.
const reserved = 4096

// TestReplyLimit: what makes a reply larger than MaxReply is refused before any effect, at the
// limit it is taken (D40). The replies that are an envelope and nothing else have no rest to leave
// room for.
func TestReplyLimit(t *testing.T) {
	filler := strings.Repeat("x", 3000)
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		f := func(name string, rest int, call func(k *talk) reply, untouched func(k *talk)) {
			t.Run(name, func(t *testing.T) {
				with := func(most int) (*talk, reply) {
					k := newTalk(t, func(c *orchestration.Config) { c.MaxReply = most })
					return k, call(k)
				}
				k, got := with(wire.DefaultMaxFrame)
				k.body(got)
				size := len(got.body)
				least := sort.Search(size+2*reserved, func(most int) bool {
					_, got := with(most)
					return got.code == wire.OK
				})
				if least < size || least > size+rest {
					t.Errorf("a reply of %d bytes needs a limit of %d", size, least)
				}
				k, got = with(least)
				k.body(got)
				k, got = with(least - 1)
				k.refuse(got, wire.ResourceExhausted, tooLarge)
				untouched(k)
			})
		}
		big := obj{"raw_input": filler}
		none := func(k *talk) {
			if k.e.Active() != 0 {
				k.t.Error("a session came of it")
			}
		}
		f("CreateEnvelope", 0, func(k *talk) reply {
			return k.create(orchestration.CreateArgs{RawInput: []byte(filler), RequestID: []byte("r"), SessionID: []byte("s")})
		}, func(k *talk) {
			none(k)
			k.refuse(k.update(make("env_0000000000000001")), wire.NotFound, "Envelope env_0000000000000001 not found")
		})
		f("CloneEnvelope", 0, func(k *talk) reply { return k.clone(make("e", big)) }, none)
		f("UpdateEnvelope", 0, func(k *talk) reply {
			id := "env_0000000000000001"
			if got := k.create(orchestration.CreateArgs{}); got.code != wire.OK {
				return got
			}
			return k.update(make(id, big))
		}, none)
		f("InitializeSession", reserved, func(k *talk) reply { return k.initialize("p", line(3), make("e", big), false) }, none)
		f("ExecutePipeline", reserved, func(k *talk) reply { return k.execute(make("e", big), line(3)) }, none)
		f("ReportAgentResult", reserved, func(k *talk) reply {
			k.body(k.initialize("p", line(3), make("e"), false))
			return k.report("p", giving("a1", obj{"x": filler}))
		}, func(k *talk) {
			k.has(k.state("p"), obj{"envelope." + path("iteration"): 0, "envelope.outputs": obj{}, "edge_traversals": obj{}, "current_stage": "s1"})
			k.runs(k.next("p"), "a1")
			k.runs(k.report("p", giving("a1", obj{"x": "smaller"})), "a2")
		})
	})
}

// TestGrowth: outputs pile up to the limit and no further, the worker may report a smaller one, and
// no reply is ever larger.
func TestGrowth(t *testing.T) {
	const most = 20_000
	k := newTalk(t, func(c *orchestration.Config) { c.MaxReply = most })
	agents := arr{}
	for i := range 26 {
		name := strings.Repeat(string(rune('a'+i)), 40)
		agents = append(agents, obj{"name": name, "default_next": strings.Repeat(string(rune('a'+(i+1)%26)), 40)})
	}
	check := func(got reply) reply {
		t.Helper()
		if len(got.body) > most {
			t.Fatalf("a reply of %d bytes, at most %d", len(got.body), most)
		}
		return got
	}
	k.body(check(k.initialize("p", obj{"name": "n", "agents": agents, "max_iterations": 1000, "max_llm_calls": 1000, "max_agent_hops": 1000}, nested("e"), false)))
	refusals, smaller := 0, 0
	for range 60 {
		agent := k.agentOf("p")
		got := check(k.report("p", giving(agent, obj{"x": strings.Repeat("y", 900)})))
		if got.code != wire.OK {
			refusals++
			k.refuse(got, wire.ResourceExhausted, tooLarge)
			if got = check(k.report("p", giving(agent, obj{}))); got.code == wire.OK {
				smaller++
			}
		}
		k.body(check(k.next("p")))
		k.body(check(k.state("p")))
	}
	k.ended("p")
	k.body(check(k.next("p")))
	k.body(check(k.state("p")))
	if refusals == 0 || smaller == 0 {
		t.Errorf("%d of 60 reports were refused, %d of them taken when smaller", refusals, smaller)
	}
}

// agentOf asks which agent a running session waits for.
func (k *talk) agentOf(pid string) string {
	k.t.Helper()
	return k.body(k.next(pid))["agent_name"].(string)
}

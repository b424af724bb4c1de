package orchtest

import (
	"testing"

	"trunkline/codec/wire"
)

// TestWaiting: a waiting session states what it waits for, checks no bounds, takes no report and
// never ends by itself (§5.2).
func TestWaiting(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		full := obj{
			"kind": "unspecified", "id": "", "question": nil, "message": "", "data": nil, "response": nil, "expires_at": nil, "created_at": nil, "trace_id": arr{1},
		}
		k.start("p", with(line(1), obj{"max_iterations": 0}), make("e", obj{"interrupt_pending": true, "interrupt": full, "llm_call_count": maxCounter}))
		for range 3 {
			k.now = after(k.now, 1e18)
			k.has(k.next("p"), obj{
				"kind": "WAIT_INTERRUPT", "agent_name": "", "terminal_reason": "", "termination_message": "", "interrupt_pending": true, "interrupt": full,
				"envelope." + path("interrupt"): full, "envelope." + path("interrupt_pending"): true,
			})
		}
		k.start("q", line(1), make("e", obj{"interrupt_pending": true}))
		k.has(k.next("q"), obj{"kind": "WAIT_INTERRUPT", "interrupt_pending": true, "interrupt": nil})
		k.start("r", line(1), make("e", obj{"interrupt_pending": false, "interrupt": full}))
		k.runs(k.next("r"), "a1")
	})
}

// TestResolving: UpdateEnvelope answers a session's interrupt and touches nothing else of it
// (envelope §4.7, D39).
func TestResolving(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		k := newTalk(t)
		id := k.storedID()
		ask := obj{"kind": "clarification", "id": "int_00000000000000aa", "question": "Which?"}
		answered := with(ask, obj{"response": obj{"text": "that", "received_at": "2026-01-02T03:04:05Z"}})
		k.start("p", line(2), make(id, obj{"interrupt_pending": true, "interrupt": ask, "iteration": 5}))
		k.unchanged("p", func() {
			k.body(k.update(make(id, obj{"interrupt_pending": true, "interrupt": answered})))
			k.refuse(k.update(make("other", obj{"interrupt": answered})), wire.NotFound, "Envelope other not found")
		})
		before := k.body(k.state("p"))
		k.body(k.update(make(id, obj{
			"interrupt_pending": false, "interrupt": answered, "iteration": 0, "max_iterations": 1000, "llm_call_count": 99, "current_stage": "s2",
			"outputs": obj{"x": obj{}}, "terminated": true, "terminal_reason": "USER_CANCELLED", "raw_input": "new", "metadata": obj{"n": 1},
		})))
		want := envelope{path("metadata") != "metadata", before["envelope"].(obj)}
		want.set("interrupt_pending", false)
		want.set("interrupt", answered)
		k.want(k.state("p"), before)
		k.runs(k.next("p"), "a1")
		k.runs(k.report("p", by("a1")), "a2")
		k.has(k.state("p"), obj{"envelope." + path("iteration"): 6, "envelope." + path("interrupt"): answered})
	})
}

// TestResolvingFromTheOtherShape: the update's shape does not matter to the session's.
func TestResolvingFromTheOtherShape(t *testing.T) {
	k := newTalk(t)
	id := k.storedID()
	answered := obj{"kind": "confirmation", "response": obj{"approved": true}}
	k.start("p", line(1), flat(id, obj{"interrupt_pending": true, "interrupt": obj{"kind": "confirmation"}}))
	k.body(k.update(nested(id, obj{"interrupt": answered})))
	k.has(k.next("p"), obj{"kind": "RUN_AGENT", "envelope.interrupt": answered, "envelope.interrupt_pending": false})
	k.body(k.initialize("p", line(1), nested(id, obj{"interrupt_pending": true, "interrupt": obj{"kind": "confirmation"}}), true))
	k.body(k.update(jsonText(flat(id, obj{"interrupt": answered}))))
	k.has(k.next("p"), obj{"kind": "RUN_AGENT", "envelope.interrupts.interrupt": answered, "envelope.interrupts.interrupt_pending": false})
}

// TestResolvingOtherSessions: only a waiting session that has not ended is touched.
func TestResolvingOtherSessions(t *testing.T) {
	k := newTalk(t)
	id := k.storedID()
	old := obj{"kind": "timeout", "n": 1}
	k.start("run", line(1), flat(id, obj{"interrupt": old}))
	k.start("end", line(1), flat(id, obj{"interrupt": old, "interrupt_pending": true, "terminated": true}))
	k.start("far", line(1), flat(id+"x", obj{"interrupt": old, "interrupt_pending": true}))
	for _, pid := range []string{"run", "end", "far"} {
		k.unchanged(pid, func() { k.body(k.update(flat(id, obj{"interrupt": obj{"kind": "timeout", "n": 2}}))) })
	}
}

// TestForceAnswers: a forced initialization answers as well, and forgets the edges (D39).
func TestForceAnswers(t *testing.T) {
	k := newTalk(t)
	k.start("p", cycle(nil), flat("e"))
	k.report("p", by("a1"))
	k.has(k.initialize("p", cycle(nil), flat("e", obj{"interrupt_pending": true}), true), obj{"edge_traversals": obj{}})
	k.has(k.next("p"), obj{"kind": "WAIT_INTERRUPT"})
	k.body(k.initialize("p", cycle(nil), flat("e", obj{"current_stage": "s2"}), true))
	k.runs(k.next("p"), "a2")
}

// TestProcessEnded: termination of the process ends the session of its id (envelope §5.2, last
// table).
func TestProcessEnded(t *testing.T) {
	bothShapes(t, func(t *testing.T, make func(string, ...obj) obj, path func(string) string) {
		ask := obj{"kind": "checkpoint", "id": "int_1"}
		for name, over := range map[string]obj{"running": {}, "waiting": {"interrupt_pending": true, "interrupt": ask}} {
			k := newTalk(t)
			k.start("p", line(2), make("e", over))
			k.start("other", line(2), make("p", over))
			k.now = after(k.now, 5e9)
			k.unchanged("other", func() { k.ended("p") })
			k.has(k.state("p"), obj{
				"terminated": true, "terminal_reason": "USER_CANCELLED", "current_stage": "s1", "edge_traversals": obj{},
				"envelope." + path("terminated"): true, "envelope." + path("terminal_reason"): "USER_CANCELLED",
				"envelope." + path("termination_reason"): "Process terminated", "envelope." + path("completed_at"): stamp(k.now),
				"envelope." + path("interrupt_pending"): false, "envelope." + path("iteration"): 0,
			})
			k.now = after(k.now, 5e9)
			k.unchanged("p", func() {
				k.terminates(k.next("p"), "USER_CANCELLED", endedBefore)
				k.terminates(k.report("p", by("a1")), "USER_CANCELLED", endedBefore)
				k.ended("p")
			})
			if n := k.e.Active(); n != 2 {
				t.Errorf("%s: %d sessions held, want 2", name, n)
			}
		}
	})
}

// TestProcessRemoved: a process that is gone takes its session with it, and its id is free.
func TestProcessRemoved(t *testing.T) {
	k := newTalk(t)
	k.start("p", line(2), flat("e"))
	k.start("q", line(2), flat("e"))
	k.report("p", by("a1"))
	k.removed("p")
	k.removed("p")
	k.removed("nobody")
	k.refuse(k.next("p"), wire.NotFound, "Unknown process: p")
	k.refuse(k.state("p"), wire.NotFound, "Unknown process: p")
	k.runs(k.next("q"), "a1")
	if n := k.e.Active(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	k.has(k.initialize("p", line(2), flat("e"), false), obj{"edge_traversals": obj{}, "current_stage": "s1"})
}

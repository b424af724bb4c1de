package fuzz

import (
	"testing"

	"trunkline/fuzz/rounds"
)

// furnish gives the first connection of a house something to find: processes in several states, a
// subscription, handlers.
func furnish(h *house) (owner, client *peer) {
	owner, client = h.open(), h.open()
	owner.ask("kernel", "CreateProcess", object{{"pid", "p1"}, {"request_id", "r1"}, {"session_id", "s1"}, {"user_id", "u1"}})
	owner.ask("kernel", "TransitionState", object{{"pid", "p1"}, {"new_state", "RUNNING"}})
	owner.ask("kernel", "CreateProcess", object{{"pid", "p2"}, {"priority", "HIGH"}, {"quota", object{{"max_llm_calls", 1}}}})
	owner.ask("kernel", "CreateProcess", object{{"pid", "p3"}, {"schedule", false}})
	owner.request("s1", "commbus", "Subscribe", object{{"event_types", []any{"a", "process.created", "process.state_changed",
		"process.terminated", "resource.exhausted"}}, {"subscriber_id", "w1"}})
	owner.request("h1", "commbus", "RegisterCommandHandler", object{{"command_types", []any{"run"}}})
	owner.request("h2", "commbus", "RegisterQueryHandler", object{{"query_types", []any{"sum"}}})
	owner.deliver(len(owner.wire))
	return owner, client
}

// FuzzRequestBytes: any payload of a REQUEST frame is answered as the contract has it, and the
// session goes on.
func FuzzRequestBytes(f *testing.F) {
	for _, payload := range requests() {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) { tryRequest(t, payload[:min(len(payload), 1<<20)]) })
}

func tryRequest(t *testing.T, payload []byte) {
	h := newHouse(t, defaultSettings())
	defer h.svc.Runtime().Close()
	owner, client := furnish(h)
	replies := 0
	h.told = func(f received) {
		if f.typ == response || f.typ == errorFrame {
			replies++
		}
	}
	r := readRequest(payload)
	client.wire = appendFrame(nil, request, payload)
	client.deliver(len(client.wire))
	if want := 1 - opened(client, r); replies != want {
		t.Fatalf("%d replies at once, want %d", replies, want)
	}
	owner.drain()
	client.drain()
	client.ask("kernel", "GetSystemStatus", object{})
	client.ask("kernel", "ListProcesses", object{})
	if want := 3 - opened(client, r); replies != want {
		t.Fatalf("%d replies in all, want %d", replies, want)
	}
}

// opened is 1 when the request was accepted as one that has no reply at once: a stream, a query
// that waits for its handler.
func opened(client *peer, r head4) int {
	if r.service == "commbus" && client.conn.busy() {
		return 1
	}
	return 0
}

// TestRandomRequests sends random requests of the alphabet, damaged ones among them, to a furnished
// house.
func TestRandomRequests(t *testing.T) {
	for seed := range uint64(rounds.Of(300, 400)) {
		s := speaker{source: source{randomProgram(seed, 60)}, set: defaultSettings()}
		if typ, payload, _ := cut(s.frame(), s.set.maxFrame); typ == request {
			tryRequest(t, payload)
		}
	}
}

package fuzz

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"trunkline/fuzz/rounds"
)

func FuzzSession(f *testing.F) {
	for _, code := range append(programs(), pipelinePrograms()...) {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code []byte) { runProgram(t, code[:min(len(code), 4096)]) })
}

// TestRandomSessions runs random programs of growing length.
func TestRandomSessions(t *testing.T) {
	for seed := range uint64(rounds.Of(100, 100)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runProgram(t, randomProgram(seed, 200+int(seed%16)*200)) })
	}
}

// randomProgram mostly leaves most settings as usual: longer conversations.
func randomProgram(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	code := make([]byte, size)
	for i := range code {
		code[i] = byte(r.Uint32())
	}
	for i := range setTopic {
		if r.IntN(3) > 0 {
			code[i] = 0
		}
	}
	return code
}

// TestChunkBounds publishes, sends and asks around the size at which a chunk no longer fits into a
// frame (kernel-ipc §4.15-4.17).
func TestChunkBounds(t *testing.T) {
	set := defaultSettings()
	set.maxFrame = 700
	h := newHouse(t, set)
	defer h.svc.Runtime().Close()
	owner, client := h.open(), h.open()
	id := strings.Repeat("s", 300)
	owner.request(id, "commbus", "Subscribe", object{{"event_types", []any{"a"}}})
	owner.request(id+"c", "commbus", "RegisterCommandHandler", object{{"command_types", []any{"run"}}})
	owner.request(id+"q", "commbus", "RegisterQueryHandler", object{{"query_types", []any{"sum"}}})
	owner.deliver(len(owner.wire))
	for n := 230; n < 350; n++ {
		payload := `"` + strings.Repeat("x", n) + `"`
		client.ask("commbus", "Publish", object{{"event_type", "a"}, {"payload", payload}})
		client.ask("commbus", "Send", object{{"command_type", "run"}, {"payload", payload}})
		if n >= 290 && n < 320 { // around its own bound; the ids of so few queries are of one length
			client.ask("commbus", "Query", object{{"query_type", "sum"}, {"payload", payload}, {"timeout_ms", 30000}})
		}
		owner.drain()
	}
	if n := len(h.model.pending); n == 0 || n == 30 {
		t.Errorf("%d queries fitted, want some of 30 and not all", n)
	}
}

// TestReplyBounds reads processes and results around the size at which a reply no longer fits
// (kernel-ipc §3.5).
func TestReplyBounds(t *testing.T) {
	set := defaultSettings()
	set.maxFrame = 700
	h := newHouse(t, set)
	defer h.svc.Runtime().Close()
	client := h.open()
	client.request("h", "commbus", "RegisterQueryHandler", object{{"query_types", []any{"sum"}}})
	for n := 440; n < 560; n++ {
		user := fmt.Sprintf("u%d", n)
		client.ask("kernel", "CreateProcess", object{{"pid", user}, {"request_id", strings.Repeat("r", n)}, {"session_id", "s"}, {"user_id", user}})
		client.ask("kernel", "GetProcess", object{{"pid", user}})
		client.ask("kernel", "ListProcesses", object{{"user_id", user}})
		client.ask("commbus", "Query", object{{"query_type", "sum"}})
		client.drain()
		client.ask("commbus", "Reply", object{{"query_id", h.model.pending[0].name.now}, {"result", `"` + strings.Repeat("x", n) + `"`}})
		client.drain()
	}
}

// TestFirstChunkBounds opens streams whose first chunk just fits into a frame, and just does not
// (kernel-ipc §2.1, §4.18, §4.20).
func TestFirstChunkBounds(t *testing.T) {
	set := defaultSettings()
	set.maxFrame = 400
	for n := 150; n < 290; n++ {
		h := newHouse(t, set)
		client := h.open()
		name := strings.Repeat("é", n/2) + "x"[:n%2]
		client.request("s1", "commbus", "Subscribe", object{{"event_types", []any{name}}, {"subscriber_id", "w"}, {"ack", true}})
		client.request("s2", "commbus", "Subscribe", object{{"event_types", []any{strings.Repeat("\x01", n/6)}}, {"ack", true}})
		client.request("s3", "commbus", "RegisterCommandHandler", object{{"command_types", []any{name}}})
		client.request("s4", "commbus", "RegisterQueryHandler", object{{"query_types", []any{name}}, {"handler_id", name}})
		client.deliver(len(client.wire))
		client.ask("commbus", "Publish", object{{"event_type", name}})
		client.ask("commbus", "Send", object{{"command_type", name}})
		client.ask("kernel", "GetSystemStatus", object{})
		client.drain()
		client.close()
		h.svc.Runtime().Close()
	}
}

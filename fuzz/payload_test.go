package fuzz

import (
	"strings"
	"testing"
)

// FuzzJSONPayload: a payload is accepted exactly when it is JSON, and goes through the bus byte for
// byte, but for a byte order mark.
func FuzzJSONPayload(f *testing.F) {
	for _, text := range texts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= 1<<20 {
			tryPayload(t, text)
		}
	})
}

func tryPayload(t *testing.T, text string) {
	h := newHouse(t, defaultSettings())
	defer h.svc.Runtime().Close()
	var chunks []string
	var answer any
	accepted := 0
	h.told = func(f received) {
		v, _ := f.payload.get("body")
		body, _ := v.(object)
		if p, ok := body.get("payload"); ok && f.typ == streamChunk {
			chunks = append(chunks, p.(string))
		}
		if v, ok := body.get("result"); ok {
			answer = v
		}
		if f.typ == response {
			accepted++
		}
	}
	owner, client := furnish(h)
	accepted = 0
	client.ask("commbus", "Publish", object{{"event_type", "a"}, {"payload", text}})
	client.ask("commbus", "Send", object{{"command_type", "run"}, {"payload", text}})
	owner.drain()
	whole := text
	text = strings.TrimPrefix(text, byteOrderMark)
	valid := validJSON(text)
	if (accepted == 2) != valid || accepted%2 != 0 {
		t.Fatalf("%q: accepted by %d of Publish and Send, valid is %v", text, accepted, valid)
	}
	if !valid {
		return
	}
	client.request("ask", "commbus", "Query", object{{"query_type", "sum"}, {"payload", whole}})
	client.deliver(len(client.wire))
	owner.drain()
	owner.ask("commbus", "Reply", object{{"query_id", h.model.pending[0].name.now}, {"result", whole}})
	client.drain()
	if len(chunks) != 3 || chunks[0] != text || chunks[1] != text || chunks[2] != text {
		t.Fatalf("%q came out as %q", text, chunks)
	}
	if err := match(lastOf{jsonValue(text)}, answer); err != nil {
		t.Fatalf("%q as a result: %v", text, err)
	}
}

// TestJSONDepth is the limit of kernel-ipc D7 and one more, in arrays, objects and both.
func TestJSONDepth(t *testing.T) {
	for _, n := range []int{127, 128, 129} {
		tryPayload(t, strings.Repeat("[", n)+strings.Repeat("]", n))
		tryPayload(t, strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n))
		tryPayload(t, strings.Repeat(`[{"]":`, n/2)+"[]"+strings.Repeat("}]", n/2))
	}
}

//go:build !race

package loadgen

import (
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// TestRequestsDoNotAllocate: sending a pipeline full of requests and taking their replies, over and
// over.
func TestRequestsDoNotAllocate(t *testing.T) {
	for _, s := range []Schedule{{To: MaxRate}, {Kind: Max}} {
		g, c := lonely(t, Plan{Schedule: s, Depth: 64})
		d := newDialect(ProtocolKernel)
		var in []byte
		round := func() {
			if n, _, _ := c.fill(); n != 64 {
				t.Fatalf("%d requests sent", n)
			}
			in = in[:0]
			for out := c.out; len(out) > 0; {
				_, payload, n := frame.Split(out, maxReply)
				var r mpack.Request
				if _, ok := mpack.ParseHead(payload, &r); !ok {
					t.Fatal("no request")
				}
				start := len(in)
				in = frame.Begin(in, frame.Response)
				in = append(mpack.AppendResponseHead(in, r.ID), 0x80)
				frame.Finish(in, start)
				out = out[n:]
			}
			if used, _, err := c.take(d, in, len(in), false, g.now()); used != len(in) || err != nil {
				t.Fatal(used, err)
			}
		}
		round()
		if n := testing.AllocsPerRun(1000, round); n != 0 {
			t.Errorf("%v: %v allocations per 64 requests", s, n)
		}
		if a := g.shards[0].accounts[measuring]; a.Done != a.Sent || a.Done < 64_000 || a.Failed != 0 {
			t.Errorf("%d of %d done, %v", a.Done, a.Sent, a.Errors)
		}
	}
}

// TestCallsDoNotAllocate: making a line of threads.
func TestCallsDoNotAllocate(t *testing.T) {
	m, err := compile(&Target{Protocol: ProtocolThreads}, &Share{Name: "post_message", Body: []byte(threadsBodies["post_message"])}, "00000000")
	if err != nil {
		t.Fatal(err)
	}
	out, r := make([]byte, 0, 1024), request{owned: threadOf(1)}
	if n := testing.AllocsPerRun(1000, func() { r.seq++; out = m.append(out[:0], &r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRepliesDoNotAllocate: good replies of the other protocols, and errors of a code that was seen
// before.
func TestRepliesDoNotAllocate(t *testing.T) {
	f := func(protocol, stream string) {
		t.Helper()
		d := newDialect(protocol)
		in := []byte(stream)
		var r reply
		if n := testing.AllocsPerRun(1000, func() {
			if n, _, err := d.next(in, false, &r); n != len(in) || err != nil {
				t.Fatal(n, err)
			}
		}); n != 0 {
			t.Errorf("%s %q: %v allocations", protocol, stream, n)
		}
	}
	f(ProtocolKernel, string(refusal(idOf(1), "NOT_FOUND")))
	f(ProtocolToolhost, "{\"ok\":true,\"status\":\"OK\"}\n")
	f(ProtocolToolhost, "{\"ok\":false,\"status\":\"TOOL_ERROR\"}\n")
	f(ProtocolThreads, "{\"id\":\"00000000000f\",\"ok\":true,\"result\":{}}\n")
	f(ProtocolThreads, "{\"id\":\"00000000000f\",\"ok\":false,\"error\":{\"code\":\"NOT_FOUND\"}}\n")
	f(ProtocolExacta, `{"ipc_version":"1.0","type":"response","request_id":"`+anyUUID+`","ok":false,"error":{"code":"ST-001"}}`+"\n")
	f(ProtocolHTTP, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	f(ProtocolHTTP, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
	a := newAccount([]Share{{Name: "m"}})
	fail(a, 0, []byte("CODE"))
	if n := testing.AllocsPerRun(1000, func() { fail(a, 0, []byte("CODE")); fail(a, 0, ErrorTimeout) }); n != 0 {
		t.Errorf("counting an error: %v allocations", n)
	}
}

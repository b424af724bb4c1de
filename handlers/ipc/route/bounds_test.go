package route

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc"
)

func TestPartitions(t *testing.T) {
	f := func(n int, ok bool) {
		t.Helper()
		r, err := New(Config{Config: upstream.Config{Partitions: n}})
		if (err == nil) != ok {
			t.Errorf("%d partitions: %v", n, err)
		}
		if err == nil {
			_ = r.Shutdown(t.Context())
		}
	}
	f(1, false)
	f(2, true)
	f(maxPartitions, true)
	f(maxPartitions+1, false)
}

// TestMaxInFlight: the client is read up to the limit, and not beyond it.
func TestMaxInFlight(t *testing.T) {
	c := newCluster(t, 2, func(cfg *Config, _ *ipc.Config, _ *runtime.Config) { cfg.MaxInFlight = 5 })
	b := c.connect()
	one := request("1", "kernel", "GetProcess", `{"pid":"x"}`)
	b.in = bytes.Repeat(one, 5)
	if b.client(); len(b.in) != 0 {
		t.Errorf("%d bytes are left of as many requests as may be in flight", len(b.in))
	}
	b.in = bytes.Clone(one)
	if b.client(); len(b.in) != len(one) || b.verdict != connection.Blocked {
		t.Error("one request more was read")
	}
	b.settle()
	if got := b.frames(); len(got) != 6 {
		t.Errorf("%d replies, want 6", len(got))
	}
}

// TestMaxCalls: as MaxInFlight, for queries.
func TestMaxCalls(t *testing.T) {
	c := newCluster(t, 2, func(cfg *Config, _ *ipc.Config, _ *runtime.Config) { cfg.MaxCalls = 3 })
	h, b := c.connect(), c.connect()
	h.send(request("h", "commbus", "RegisterQueryHandler", `{"query_types":["slow"]}`))
	one := request("1", "commbus", "Query", `{"query_type":"slow"}`)
	b.send(bytes.Repeat(one, 3))
	if len(b.in) != 0 {
		t.Errorf("%d bytes are left of as many queries as may be open", len(b.in))
	}
	b.send(one)
	if len(b.in) != len(one) {
		t.Error("one query more was read")
	}
	h.close()
	b.settle()
	if got := b.frames(); len(got) != 4 {
		t.Errorf("%d answers, want 4: %v", len(got), got)
	}
}

// TestUnsentRequests: a partition that takes nothing stops the client at the bound, and everything
// is answered once it takes again.
func TestUnsentRequests(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	one := request("1", "kernel", "GetProcess", `{"pid":"x","pad":"`+strings.Repeat("p", 64<<10)+`"}`)
	fit := unsentBytes / len(one)
	b.in = bytes.Repeat(one, fit)
	for b.client() {
	}
	if len(b.in) != 0 {
		t.Errorf("%d bytes are left of what may wait", len(b.in))
	}
	b.in = bytes.Clone(one)
	if b.client(); len(b.in) != len(one) {
		t.Error("one request more was read")
	}
	b.settle()
	if got := b.frames(); len(got) != fit+1 || b.s.waiting != 0 {
		t.Errorf("%d replies, want %d; %d bytes wait", len(got), fit+1, b.s.waiting)
	}
}

// respond makes a reply of a leg to its oldest request.
func respond(size int) []byte {
	payload := append(mpack.AppendResponseHead(nil, []byte("1")), 0x81, 0xa1, 'x')
	payload = mpack.AppendStr(payload, strings.Repeat("y", size))
	return frame.Append(nil, frame.Response, payload, nil)
}

// plug connects legs to nothing: the test answers for the partitions.
func (b *board) plug() {
	for i := range b.s.legs {
		b.s.legs[i].connected(nil)
		b.s.legs[i].open(b.c.port())
	}
}

// drainLeg takes what a leg sends.
func (b *board) drainLeg(partition int) []byte {
	out, _ := b.s.legs[partition].Pump(nil, 0, b.c.now)
	return out
}

// TestParkedReplies: replies that come early are kept up to the bound; beyond it their leg is not
// read, until the one before them is there.
func TestParkedReplies(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	b.plug()
	first := request("1", "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, 0, "p")+`"}`)
	second := request("1", "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, 1, "p")+`"}`)
	reply := respond(64 << 10)
	fit := unsentBytes / len(reply)
	b.in = append(first, bytes.Repeat(second, fit+1)...)
	b.client()
	b.drainLeg(0)
	b.drainLeg(1)
	late := &b.s.legs[1]
	used, _, v := late.Feed(bytes.Repeat(reply, fit), nil, c.now)
	if used != fit*len(reply) || v != connection.More {
		t.Fatalf("%d bytes taken of what may be parked, verdict %v", used, v)
	}
	if used, _, v = late.Feed(reply, nil, c.now); used != 0 || v != connection.Blocked {
		t.Fatalf("%d bytes taken beyond the bound, verdict %v", used, v)
	}
	b.s.legs[0].Feed(reply, nil, c.now)
	b.client()
	if used, _, _ = late.Feed(reply, nil, c.now); used != len(reply) {
		t.Error("the leg is still not read")
	}
	b.client()
	if len(b.out) != (fit+2)*len(reply) || b.s.parked != 0 {
		t.Errorf("%d bytes for the client, want %d; %d parked", len(b.out), (fit+2)*len(reply), b.s.parked)
	}
	b.close()
}

// TestUnreadClient: a client that does not read stops its legs.
func TestUnreadClient(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	b.plug()
	reply := respond(64 << 10)
	fit := unsentBytes/len(reply) + 1
	b.in = bytes.Repeat(request("1", "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, 0, "p")+`"}`), fit+1)
	b.client()
	b.drainLeg(0)
	l := &b.s.legs[0]
	if used, _, v := l.Feed(bytes.Repeat(reply, fit), nil, c.now); used != fit*len(reply) || v != connection.Blocked && v != connection.More {
		t.Errorf("%d bytes taken, want %d", used, fit*len(reply))
	}
	if used, _, v := l.Feed(reply, nil, c.now); used != 0 || v != connection.Blocked {
		t.Errorf("%d bytes taken beyond the bound, verdict %v", used, v)
	}
	b.client()
	if used, _, _ := l.Feed(reply, nil, c.now); used != len(reply) {
		t.Error("the leg is still not read")
	}
	b.close()
}

// TestFrameAtTheLimit: a frame of max_frame_bytes passes, a larger one closes the connection behind
// the answers to those before it.
func TestFrameAtTheLimit(t *testing.T) {
	const limit = 4096
	c := newCluster(t, 2, func(cfg *Config, _ *ipc.Config, state *runtime.Config) {
		cfg.MaxFrameBytes, state.MaxFrameBytes = limit, limit
	})
	padded := func(over int) []byte {
		empty := request("big", "kernel", "GetProcess", `{"pid":"x","pad":"`+strings.Repeat("p", 300)+`"}`)
		return request("big", "kernel", "GetProcess", `{"pid":"x","pad":"`+strings.Repeat("p", 300+limit+over-len(empty)+frame.PrefixSize)+`"}`)
	}
	b := c.connect()
	b.send(padded(0))
	if got := b.frames(); len(got) != 1 || b.closed {
		t.Errorf("at the limit: closed %v, %v", b.closed, got)
	}
	b.send(request("1", "kernel", "GetProcess", `{"pid":"x"}`), padded(1), request("2", "kernel", "GetProcess", `{"pid":"x"}`))
	if got := b.frames(); len(got) != 1 || !b.closed {
		t.Errorf("above the limit: closed %v, %v", b.closed, got)
	}
	// A query needs room for the identifier of the session's own.
	b = c.connect()
	text := func(n int) []byte {
		return request("q", "commbus", "Query", `{"query_type":"t","pad":"`+strings.Repeat("p", n)+`"}`)
	}
	room := limit + frame.PrefixSize - len(text(300)) + 300
	b.send(text(room-15), text(room-14))
	got := b.frames()
	if len(got) != 2 || !strings.Contains(got[0]+got[1], "No handler") || !strings.Contains(got[0]+got[1], tooLargeToForward) {
		t.Errorf("queries at the limit: %v", got)
	}
}

// TestLongIdentifiers: identifiers of any length come back as they went.
func TestLongIdentifiers(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	for _, n := range []int{1, 15, 16, 17, 31, 32, 255, 256, 1024} {
		id := strings.Repeat("i", n)
		b.send(request(id, "commbus", "Query", `{"query_type":"t"}`), request(id, "kernel", "GetProcessCounts", `{}`), request(id, "kernel", "GetProcess", `{"pid":"x"}`))
		got := b.frames()
		if len(got) != 3 {
			t.Fatalf("%d bytes: %v", n, got)
		}
		for _, f := range got {
			if !strings.Contains(f, fmt.Sprintf(`"id":"%s"`, id)) {
				t.Errorf("%d bytes: %s", n, f)
			}
		}
	}
	b.send(request(strings.Repeat("i", 1025), "kernel", "GetProcess", `{"pid":"x"}`))
	b.want(`FF {"id":"","ok":false,"error":{"code":"INVALID_ARGUMENT","message":"Invalid request field: id exceeds 1024 bytes"}}`)
}

// TestUnreadChunks: a client that does not read its streams stops their legs at the bound.
func TestUnreadChunks(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	b.send(request("s", "commbus", "Subscribe", `{"event_types":["a"]}`))
	body := mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(nil, 1), "payload"), strings.Repeat("x", 16<<10))
	id := b.s.appendID(nil, b.s.streams[0].number, 1)
	chunk := frame.Append(nil, frame.StreamChunk, append(mpack.AppendStr([]byte("\x82\xa2id"), id), chunkRest...), body)
	l := &b.s.legs[1]
	used, _, v := l.Feed(bytes.Repeat(chunk, 10), nil, c.now)
	size := len(chunk) - len(id) + 1 // as the client gets it
	if n := used / len(chunk); v != connection.Blocked || n*size <= chunkBytes || (n-1)*size > chunkBytes {
		t.Errorf("%d chunks of %d bytes taken, verdict %v", used/len(chunk), size, v)
	}
	for b.client() {
	}
	if used, _, _ = l.Feed(chunk, nil, c.now); used != len(chunk) || len(b.out) <= chunkBytes {
		t.Errorf("%d bytes taken after the client read %d", used, len(b.out))
	}
	b.close()
}

// TestPartBytes: what partitions answer to one op is bounded together.
func TestPartBytes(t *testing.T) {
	f := func(over int, ok bool) {
		t.Helper()
		c := newCluster(t, 3, nil)
		b := c.connect()
		b.plug()
		b.in = request("n", "kernel", "GetProcessCounts", `{}`)
		b.client()
		left := max(2*c.router.cfg.MaxFrameBytes, partBytes)
		for i := range 3 {
			b.drainLeg(i)
			size := min(left, 5_000_000)
			if left -= size; i == 2 {
				size += over
			}
			rest := append([]byte(okRest), "\x81\xa1x\xdb"...)
			n := size - len(rest) - 4
			rest = append(rest, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
			rest = append(rest, bytes.Repeat([]byte("x"), n)...)
			reply := frame.Append(nil, frame.Response, mpack.AppendStr([]byte("\x83\xa2id"), b.s.appendID(nil, b.s.op.number, 0)), rest)
			b.s.legs[i].Feed(reply, nil, c.now)
		}
		if lost := b.s.end == failed; lost == ok {
			t.Errorf("%d bytes above the bound: failed %v", over, lost)
		}
		b.close()
	}
	f(0, true)
	f(1, false)
}

// TestDials: a leg that ends again and again before it is sent anything is given up.
func TestDials(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	b.in = request("1", "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, 0, "p")+`"}`)
	b.client()
	l := &b.s.legs[0]
	for i := range maxDials {
		l.connected(nil)
		if again := l.ended(nil); again != (i < maxDials-1) || (b.s.end == closing) == again || b.s.end == failed {
			t.Errorf("dial %d: again %v, refused %v, failed %v", i+1, again, b.s.end == closing, b.s.end == failed)
		}
	}
	b.close()
}

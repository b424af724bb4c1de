//go:build !race

package route

import (
	"bytes"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/cluster/placement"
)

// echo is a session whose partitions answer each request at once, by hand.
type echo struct {
	b        *board
	requests []byte
	reply    []byte
	n        int // requests
	out, leg []byte
	replies  []byte
}

// newEcho prepares n pipelined requests that go to the partitions in turn.
func newEcho(tb testing.TB, n int) *echo {
	c := newCluster(tb, 3, nil)
	e := &echo{b: c.connect(), n: n, reply: respond(60)}
	e.b.plug()
	for i := range n {
		pid := c.home(placement.Process, i%3, "process-")
		e.requests = append(e.requests, request("12345678", "kernel", "RecordUsage", `{"pid":"`+pid+`","llm_calls":1,"tokens_in":120,"tokens_out":300}`)...)
	}
	e.replies = bytes.Repeat(e.reply, n)
	tb.Cleanup(e.b.close)
	return e
}

// round sends all requests through, and the replies back; the last partition answers first.
func (e *echo) round() {
	s, now := e.b.s, e.b.c.now
	for in := e.requests; len(in) > 0; {
		used, _, _ := s.Feed(in, nil, now)
		in = in[used:]
	}
	for i := len(s.legs) - 1; i >= 0; i-- {
		l := &s.legs[i]
		l.port.Rearm()
		e.leg, _ = l.Pump(e.leg[:0], 0, now)
		l.Feed(e.replies[:l.owed*len(e.reply)], nil, now)
	}
	s.port.Rearm()
	e.out, _ = s.Pump(e.out[:0], 0, now)
}

// TestNoAllocs: a request with a key takes nothing from the heap on its way to a partition and
// back, also when the partitions answer out of order.
func TestNoAllocs(t *testing.T) {
	e := newEcho(t, 30)
	e.round()
	if len(e.out) != 30*len(e.reply) {
		t.Fatalf("%d bytes of replies, want %d", len(e.out), 30*len(e.reply))
	}
	if n := testing.AllocsPerRun(100, e.round); n != 0 {
		t.Errorf("30 requests allocate %v times", n)
	}
}

// BenchmarkSession is the router's own work for a request and its reply, without sockets and
// goroutines: how much of a processor does a routed request cost?
func BenchmarkSession(b *testing.B) {
	const pipelined = 60
	e := newEcho(b, pipelined)
	b.ReportAllocs()
	for range b.N/pipelined + 1 {
		e.round()
	}
}

// TestIDs: the identifier of a call is found again, and no other.
func TestIDs(t *testing.T) {
	s := newCluster(t, 2, nil).connect().s
	f := func(id []byte, want uint32, ours bool) {
		t.Helper()
		payload := append(mpack.AppendStr([]byte("\x83\xa2id"), id), "rest"...)
		number, rest, got := s.cutID(payload)
		if got != ours || number != want || ours && string(rest) != "rest" {
			t.Errorf("%q is number %d, rest %q, ours %v", id, number, rest, got)
		}
	}
	for _, size := range []int{0, 16, 17, 32, 256, 1024} {
		id := s.appendID(nil, 0xdeadbeef, size)
		if len(id) != max(size, 16) {
			t.Errorf("%d bytes, want %d", len(id), size)
		}
		f(id, 0xdeadbeef, true)
	}
	f(nil, 0, false)
	f([]byte("0123456789abcdef"), 0, false)
	f(append(s.nonce[:], "0000000g"...), 0, false)
	f(append(s.nonce[:], "0000000"...), 0, false)
	if f := frame.Append(nil, frame.Error, []byte("\x83\xa2id\xa0"), nil); !isNameless(f) {
		t.Error("an empty identifier is not found")
	}
}

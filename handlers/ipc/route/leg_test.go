package route

import (
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/connection"
)

// TestIdleLegEnds: a leg without work may end; the next request has another one.
func TestIdleLegEnds(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	pid := b.create(1, "p", "")
	b.unplug(1)
	b.send(request("1", "kernel", "GetProcess", `{"pid":"`+pid+`"}`))
	if got := b.frames(); len(got) != 1 || b.closed {
		t.Errorf("closed %v, %v", b.closed, got)
	}
}

// TestRequestMeetsTheEndOfItsLeg: what was not sent goes to the next leg.
func TestRequestMeetsTheEndOfItsLeg(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	pid := b.create(1, "p", "")
	b.in = request("1", "kernel", "GetProcess", `{"pid":"`+pid+`"}`)
	b.client()
	b.unplug(1)
	b.settle()
	if got := b.frames(); len(got) != 1 || b.closed {
		t.Errorf("closed %v, %v", b.closed, got)
	}
}

// TestBrokenLeg: the client gets what was answered before, in order, and then the end.
func TestBrokenLeg(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	zero, one := b.create(0, "p", ""), b.create(1, "p", "")
	f := func(id, pid string) []byte { return request(id, "kernel", "GetProcess", `{"pid":"`+pid+`"}`) }
	b.send(f("1", zero))
	b.in = append(append(f("2", one), f("3", zero)...), f("4", one)...)
	b.client()
	for b.leg(0, 0) {
	}
	b.s.legs[1].Pump(nil, 0, c.now) // sent, and lost
	b.unplug(1)
	b.settle()
	got := b.frames()
	if len(got) != 1 || !strings.Contains(got[0], `"id":"1"`) || !b.closed {
		t.Errorf("closed %v, frames %v", b.closed, got)
	}
	if c.router.Stats().Broken != 1 {
		t.Errorf("%d clients counted", c.router.Stats().Broken)
	}
}

// TestLostPartition: nothing counts that comes from an owner after it lost the partition.
func TestLostPartition(t *testing.T) {
	c := newCluster(t, 2, nil)
	b := c.connect()
	b.plug()
	b.in = request("1", "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, 0, "p")+`"}`)
	b.client()
	b.drainLeg(0)
	l := &b.s.legs[0]
	l.lost()
	if _, _, v := l.Feed(respond(1), nil, c.now); v != connection.Close {
		t.Errorf("verdict %v", v)
	}
	l.ended(nil)
	b.client()
	if len(b.out) != 0 || !b.closed {
		t.Errorf("closed %v, out %q", b.closed, b.out)
	}
}

// TestStreamsNeedTheirLegs: a client with a stream loses its connection with any leg.
func TestStreamsNeedTheirLegs(t *testing.T) {
	c := newCluster(t, 3, nil)
	b := c.connect()
	b.send(request("s", "commbus", "Subscribe", `{"event_types":["a"]}`))
	b.unplug(2)
	b.settle()
	if !b.closed {
		t.Error("the client has a stream with a hole")
	}
}

// TestHostileLegs: what no service sends ends the connection, and nothing of it reaches the client.
func TestHostileLegs(t *testing.T) {
	named := func(t frame.Type, id []byte, rest string) []byte {
		return frame.Append(nil, t, mpack.AppendStr([]byte("\x83\xa2id"), id), []byte(rest))
	}
	f := func(name string, attack func(*session) []byte) {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, nil)
			b := c.connect()
			b.plug()
			b.in = append(request("1", "kernel", "GetProcess", `{"pid":"`+c.home(placement.Process, 0, "p")+`"}`), request("2", "kernel", "GetProcessCounts", `{}`)...)
			b.client()
			b.client()
			b.drainLeg(0)
			b.s.legs[0].Feed(attack(b.s), nil, c.now)
			if b.s.end != failed {
				t.Error("it was taken")
			}
			b.close()
		})
	}
	f("length", func(*session) []byte { return []byte{0, 0, 0, 0} })
	f("request", func(*session) []byte { return request("1", "a", "b", `{}`) })
	f("chunk of a stranger", func(*session) []byte { return named(frame.StreamChunk, []byte("1"), "\xa4body\x80") })
	f("end of a stranger", func(*session) []byte { return named(frame.StreamEnd, []byte("1"), "") })
	f("refused connection", func(*session) []byte { return named(frame.Error, nil, errorRest+"\x80") })
	f("unknown call", func(s *session) []byte { return named(frame.Response, s.appendID(nil, 999, 0), okRest+"\x80") })
	f("answer twice", func(s *session) []byte {
		one := named(frame.Response, s.appendID(nil, s.op.number, 0), okRest+"\x80")
		return append(one, one...)
	})
	f("no body", func(s *session) []byte { return named(frame.Response, s.appendID(nil, s.op.number, 0), okRest) })
	f("broken body", func(s *session) []byte {
		return named(frame.Response, s.appendID(nil, s.op.number, 0), okRest+"\x81\xa1")
	})
	f("chunk for an op", func(s *session) []byte {
		return named(frame.StreamChunk, s.appendID(nil, s.op.number, 0), "\xa4body\x80")
	})
	f("too many replies", func(*session) []byte {
		return append(append(named(frame.Response, []byte("1"), okRest+"\x80"), named(frame.Response, []byte("1"), okRest+"\x80")...), named(frame.Response, []byte("1"), okRest+"\x80")...)
	})
}

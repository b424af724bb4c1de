package reactor

import (
	"bytes"
	"net"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

const noRoom = "no room"

// budgeted starts a server whose connections share max bytes of input; streams has goroutines serve
// them.
func budgeted(t *testing.T, streams bool, max int) (*server, *connection.Budget) {
	b := connection.NewBudget(max)
	s := start(t, "tcp", func(c *Config) {
		c.Limits.AheadBytes = 1 << 20
		c.Limits.Input, c.Limits.NoRoom = b, func(b []byte) []byte { return append(b, linktest.Frame('n', noRoom)...) }
	})
	if streams {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.ServeStreams(ln) }()
		s.ln = ln
	}
	return s, b
}

// begun returns the beginning of a frame of one megabyte.
func begun(n int) []byte {
	return linktest.Frame('e', string(make([]byte, 1<<20)))[:n]
}

// TestBudgetOfInput: unfinished frames of all connections together have a bound, that of one is not
// served beyond it, and moderate frames are served all the same. What a connection held is free
// once it is gone, or has its frame whole.
func TestBudgetOfInput(t *testing.T) {
	for name, streams := range map[string]bool{"loops": false, "streams": true} {
		t.Run(name, func(t *testing.T) {
			s, b := budgeted(t, streams, 5<<19)
			one, two := s.dial(), s.dial()
			whole := begun(4 + 1 + 1<<20)
			one.send(whole[:len(whole)-1])
			two.send(whole[:len(whole)-1])
			kit.Until(t, "two frames to be held", func() bool {
				return s.Stats().BytesIn == 2*int64(len(whole)-1) && b.Used() > 2*(1<<20-connection.OwnInput)
			})
			if used := b.Used(); used > 2*(1<<20*5/4) {
				t.Errorf("%d bytes for two frames of a megabyte", used)
			}
			three := s.dial()
			go func() { _, _ = three.c.Write(whole[:len(whole)-1]) }()
			three.want('n', noRoom)
			if b.Refused() != 1 {
				t.Errorf("%d refused, want 1", b.Refused())
			}
			three.c.Close()
			moderate := string(make([]byte, 60<<10))
			for range 3 {
				four := s.dial()
				four.send(linktest.Frame('e', moderate)[:50<<10])
				four.send(linktest.Frame('e', moderate)[50<<10:])
				four.want('e', moderate)
			}
			one.send(whole[len(whole)-1:])
			one.want('e', string(whole[5:]))
			two.c.Close()
			kit.Until(t, "the budget to be free", func() bool { return b.Used() == 0 })
			three = s.dial()
			three.send(whole)
			three.want('e', string(whole[5:]))
		})
	}
}

// TestBudgetGoesAlong: a connection that leaves its loop takes along what it has of the budget.
func TestBudgetGoesAlong(t *testing.T) {
	s, b := budgeted(t, false, 16<<20)
	p := s.dial()
	p.send(linktest.Sized('b', 8<<20)) // not read: the socket does not take it whole
	s.wantLeft(stream.LeftWrite, 1)
	p.send(begun(1 << 20))
	p.wantPattern('b', 8<<20)
	kit.Until(t, "a frame to be held", func() bool { return b.Used() >= 1<<20-connection.OwnInput })
	p.c.Close()
	kit.Until(t, "the budget to be free", func() bool { return b.Used() == 0 })

	p = s.dial()
	held := p.session()
	const frames = 400
	small := string(make([]byte, 1<<10))
	p.send(linktest.Frame('h', ""), bytes.Repeat(linktest.Frame('e', small), frames))
	s.wantLeft(stream.LeftBlocked, 1)
	kit.Until(t, "bytes behind a blocked session to be charged", func() bool { return b.Used() > 0 })
	held.Release()
	p.want('h', "")
	for range frames {
		p.want('e', small)
	}
	p.c.Close()
	kit.Until(t, "the budget to be free", func() bool { return b.Used() == 0 })
}

// TestRestOfALongFrame: bytes behind a long frame do not keep its buffer.
func TestRestOfALongFrame(t *testing.T) {
	for name, streams := range map[string]bool{"loops": false, "streams": true} {
		t.Run(name, func(t *testing.T) {
			s, b := budgeted(t, streams, 16<<20)
			p := s.dial()
			whole := begun(4 + 1 + 1<<20)
			p.send(whole, []byte{0})
			p.want('e', string(whole[5:]))
			kit.Until(t, "the buffer of a frame that was answered to be free", func() bool { return b.Used() == 0 })
			p.send(linktest.Frame('e', "x")[1:])
			p.want('e', "x")
		})
	}
}

package reactor

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit/linktest"
)

// drainProbe answers 'u' after each Feed that takes frames once it was asked to drain.
type drainProbe struct {
	*linktest.Session
	drained bool
}

func (j *drainProbe) Drain(now connection.Instant) {
	j.drained = true
	j.Session.Drain(now)
}

func (j *drainProbe) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	used, out, v := j.Session.Feed(in, out, now)
	if j.drained && used > 0 {
		out = linktest.Append(out, 'u', nil)
	}
	return used, out, v
}

func judged(c *Config) {
	open := c.Open
	c.Open = func(p *connection.Port) connection.Session { return &drainProbe{Session: open(p).(*linktest.Session)} }
	c.Loops = 1
	c.Limits.DrainWithin = int64(20 * time.Second)
}

func TestDrainWaitsForFramesBehindABlockedSession(t *testing.T) {
	s := start(t, "tcp", judged)
	other := s.dial()
	other.send(linktest.Frame('o', ""))
	other.want('o', "")
	p := s.dial() // not before: two that are dialled together may be opened in the other order
	held := p.session()
	hold := linktest.Frame('h', "")
	p.send(linktest.Frame('e', "first"), hold, linktest.Frame('e', "behind"), hold, linktest.Frame('e', "last"))
	p.want('e', "first")
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	other.want('z', "")                                 // the drain has reached its connections
	for _, behind := range []string{"behind", "last"} { // blocked twice
		held.Release()
		p.want('h', "")
		p.want('e', behind)
	}
	p.wantEnd()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.wantCount(connection.ReasonDrain, 2)
}

// locked wakes its owner at its first Feed only, and what unblocks it comes with a Pump after its
// second one.
type locked struct {
	*linktest.Session
	port  *connection.Port
	feeds int
	free  bool
}

func (l *locked) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	if l.free || len(in) == 0 {
		return l.Session.Feed(in, out, now)
	}
	if l.feeds++; l.feeds == 1 {
		l.port.Wake()
	}
	return 0, out, connection.Blocked
}

func (l *locked) Pump(out []byte, room int, now connection.Instant) ([]byte, bool) {
	l.free = l.feeds > 1
	out, more := l.Session.Pump(out, room, now)
	return out, more || !l.free
}

func TestAnyPumpUnblocks(t *testing.T) {
	s := start(t, "tcp", func(c *Config) {
		open := c.Open
		c.Open = func(p *connection.Port) connection.Session {
			return &locked{Session: open(p).(*linktest.Session), port: p}
		}
	})
	p := s.dial()
	p.send(linktest.Frame('e', "x"))
	p.want('e', "x")
}

// broad answers its first frame with many large ones whose bytes, read as a prefix, show nonsense.
type broad struct {
	*linktest.Session
	body   []byte
	frames int
}

func (b *broad) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	used, out, v := b.Session.Feed(in, out, now)
	for ; used > 0 && b.frames > 0; b.frames-- {
		out = linktest.Append(out, 'b', b.body)
	}
	return used, out, v
}

// TestFramesBehindAShortWriteAreNotLate off the loop, as long as the peer takes them.
func TestFramesBehindAShortWriteAreNotLate(t *testing.T) {
	const frames = 24
	var clock atomic.Int64
	clock.Store(1)
	body := bytes.Repeat([]byte{0xff}, 400_000)
	s := start(t, "unix", func(c *Config) {
		open := c.Open
		c.Open = func(p *connection.Port) connection.Session {
			return &broad{Session: open(p).(*linktest.Session), body: body, frames: frames}
		}
		c.Now = func() connection.Instant { return connection.Instant{Mono: clock.Load()} }
		c.Limits.SendWithin = int64(10 * time.Second)
	})
	p := s.dial()
	p.send(linktest.Frame('e', "x"))
	p.want('e', "x")
	s.wantLeft(stream.LeftWrite, 1)
	for range frames { // far less than SendWithin for each, far more for all
		p.want('b', string(body))
		clock.Add(int64(2 * time.Second))
		time.Sleep(stream.TickEvery / 8) // the timers are looked at now and then
	}
}

func TestAResetAfterTheEndFreesTheSlot(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	p.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	p.want('e', "x")
	_ = p.c.(*net.TCPConn).CloseWrite()
	s.wantLeft(stream.LeftEOF, 1)
	_ = p.c.(*net.TCPConn).SetLinger(0)
	_ = p.c.Close()
	s.wantCount(connection.ReasonError, 1)
}

package reactor

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

const answerBytes = 300_000 // more than dialSmall's system takes, less than the server's

// dialSmall connects a TCP peer whose system takes next to nothing that its program has not read.
func (s *server) dialSmall() *peer {
	s.t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	c, err := d.Dial(s.ln.Addr().Network(), s.ln.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{s.t, c, s}
}

// answered has the server send more than the peer's system takes.
func (p *peer) answered() {
	p.t.Helper()
	p.send(linktest.Sized('b', answerBytes), linktest.Frame('e', "last"))
	kit.Until(
		p.t,
		"the answers to be sent",
		func() bool { p.s.order(dueScan); return p.s.Stats().BytesOut > answerBytes },
	)
}

func (p *peer) wantAnswers() {
	p.t.Helper()
	p.wantPattern('b', answerBytes)
	p.want('e', "last")
}

// TestLastAnswersOutliveLateBytes: closing a socket with unread bytes, or getting some later,
// resets it, and that costs the peer what is still under way.
func TestLastAnswersOutliveLateBytes(t *testing.T) {
	f := func(name string, leave bool, end func(p *peer)) {
		t.Run(name, func(t *testing.T) {
			s := start(t, "tcp", func(c *Config) { c.Limits.DrainWithin = int64(20 * time.Second) })
			p := s.dialSmall()
			p.answered()
			if leave { // with more than any socket takes
				p.send(linktest.Sized('b', 7<<20))
				s.wantLeft(stream.LeftWrite, 1)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); end(p) }()
			if !leave {
				kit.Until(t, "the session to end", func() bool { return s.Open() == 0 })
			}
			late := make([]byte, 32<<10) // no one looks at it any more
			if leave {
				late = linktest.Frame('e', "")
			}
			for range 40 { // much more than is ever dropped at once
				if _, err := p.c.Write(late); err != nil {
					t.Fatalf("cannot send: %v", err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			p.wantAnswers()
			if leave {
				p.wantPattern('b', 7<<20)
			}
			if _, err := io.Copy(io.Discard, p.c); err != nil {
				t.Fatalf("after the answers: %v", err)
			}
			<-ended
			if left := s.Stats().Left; !leave && left != [4]int64{} {
				t.Errorf("left the loop: %v", left)
			}
			_ = p.c.Close()
			kit.Until(t, "the connection to be closed", func() bool { return s.gate.Lingering() == 0 })
		})
	}
	bye := func(p *peer) { p.send(linktest.Frame('c', "bye")) }
	drain := func(p *peer) { _ = p.s.Shutdown(context.Background()) }
	f("the session closes", false, bye)
	f("drain", false, drain)
	f("drain off the loop", true, drain)
}

// TestSlotsAreFreeWhileConnectionsLinger: a peer may come again at once, and those that do not take
// their answers keep no one out.
func TestSlotsAreFreeWhileConnectionsLinger(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.MaxConnections, c.Refuse = 2, full })
	end := func(nth int64) *peer {
		t.Helper()
		p := s.dialSmall()
		p.send(linktest.Sized('b', answerBytes), linktest.Frame('c', "bye"))
		s.wantCount(connection.ReasonProtocol, nth)
		if n := s.gate.Lingering(); n != int(min(nth, 2)) {
			t.Errorf("%d linger, of %d under a limit of 2", n, nth)
		}
		return p
	}
	lingering := []*peer{end(1), end(2)}
	end(3)
	s.dial().session()
	for _, p := range lingering {
		p.wantPattern('b', answerBytes)
		p.want('c', "bye")
		_ = p.c.Close()
	}
	kit.Until(t, "them to be closed", func() bool { return s.gate.Lingering() == 0 })
}

// TestLingeringTakesItsTimeAtMost: from a peer that never takes its answers the socket is taken.
func TestLingeringTakesItsTimeAtMost(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Limits.SendWithin = int64(200 * time.Millisecond) })
	p := s.dialSmall()
	p.answered()
	p.send(linktest.Frame('c', "bye"))
	s.wantCount(connection.ReasonProtocol, 1)
	kit.Until(t, "the time to be up", func() bool { return s.gate.Lingering() == 0 })
}

// TestShutdownWaitsForLingering, but not longer than its grace.
func TestShutdownWaitsForLingering(t *testing.T) {
	f := func(name string, grace time.Duration, reads bool) {
		t.Run(name, func(t *testing.T) {
			s := start(t, "tcp", func(c *Config) { c.Limits.DrainWithin = int64(grace) })
			p := s.dialSmall()
			p.answered()
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(context.Background()) }()
			kit.Until(t, "the session to end", func() bool { return s.Open() == 0 })
			if reads {
				select {
				case <-ended:
					t.Fatal("Shutdown did not wait")
				case <-time.After(50 * time.Millisecond):
				}
				p.wantAnswers()
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if n := s.gate.Lingering(); n != 0 {
				t.Errorf("%d still linger", n)
			}
		})
	}
	f("the peer reads", 20*time.Second, true)
	f("it does not", 100*time.Millisecond, false)
}

// TestAQuietPeerDoesNotKeepItsSocket: who has everything and stays is let go without being asked to
// end.
func TestAQuietPeerDoesNotKeepItsSocket(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		s := start(t, network, nil)
		p := s.dial()
		p.send(linktest.Frame('c', "bye"))
		s.wantCount(connection.ReasonProtocol, 1)
		kit.Until(t, "the socket to be closed", func() bool { return s.gate.Lingering() == 0 })
		p.want('c', "bye")
	}
}

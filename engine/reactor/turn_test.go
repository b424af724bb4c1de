package reactor

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit/linktest"
)

func TestEchoInOrder(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			p := start(t, network, nil).dial()
			p.send(linktest.Frame('e', "one"), linktest.Frame('e', ""), linktest.Frame('e', "three"))
			p.want('e', "one")
			p.want('e', "")
			p.want('e', "three")
			p.send(linktest.Frame('c', "bye"), linktest.Frame('e', "never"), make([]byte, 1000))
			p.want('c', "bye")
			p.wantClosed(connection.ReasonProtocol)
		})
	}
}

func TestCutAtEveryByte(t *testing.T) {
	s := start(t, "tcp", nil)
	whole := append(linktest.Frame('e', "first"), linktest.Frame('e', "second")...)
	for cut := 0; cut <= len(whole); cut++ {
		p := s.dial()
		p.send(whole[:cut])
		time.Sleep(time.Millisecond)
		p.send(whole[cut:])
		p.want('e', "first")
		p.want('e', "second")
		_ = p.c.Close()
	}
	s.wantCount(connection.ReasonEOF, int64(len(whole)+1))
}

func TestCutByAnEnd(t *testing.T) {
	s := start(t, "tcp", nil)
	whole := append(linktest.Frame('e', "first"), linktest.Frame('e', "second")...)
	first := len(linktest.Frame('e', "first"))
	for cut := 0; cut < len(whole); cut++ {
		p := s.dial()
		p.send(whole[:cut])
		_ = p.c.(*net.TCPConn).CloseWrite()
		if cut >= first {
			p.want('e', "first")
		}
		if b, err := io.ReadAll(p.c); len(b) > 0 || err != nil {
			t.Fatalf("cut at %d: got %q, %v, want a clean end", cut, b, err)
		}
	}
	s.wantCount(connection.ReasonEOF, int64(len(whole)))
}

func TestByteByByte(t *testing.T) {
	p := start(t, "unix", nil).dial()
	for _, b := range append(linktest.Frame('e', "drip"), linktest.Frame('e', "drop")...) {
		p.send([]byte{b})
	}
	p.want('e', "drip")
	p.want('e', "drop")
}

func TestLargeFrame(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	body := string(linktest.Pattern(nil, 5<<20))
	go p.send(linktest.Frame('e', body), linktest.Frame('e', "after"))
	p.want('e', body)
	p.want('e', "after")
}

func TestAShortWriteLeavesTheLoop(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	p.send(linktest.Sized('b', 7<<20), linktest.Frame('e', "x"), linktest.Sized('b', 3<<20), linktest.Frame('e', "part")[:6])
	s.wantLeft(stream.LeftWrite, 1)
	p.send(linktest.Frame('e', "part")[6:], linktest.Frame('c', "end"))
	p.wantPattern('b', 7<<20)
	p.want('e', "x")
	p.wantPattern('b', 3<<20)
	p.want('e', "part")
	p.want('c', "end")
	p.wantClosed(connection.ReasonProtocol)
}

func TestWriteTimerOffTheLoop(t *testing.T) {
	s := start(t, "unix", func(c *Config) { c.Limits.SendWithin = int64(300 * time.Millisecond) })
	p := s.dial()
	p.send(linktest.Sized('b', 7<<20))
	s.wantLeft(stream.LeftWrite, 1)
	s.wantCount(connection.ReasonWrite, 1)
}

func TestHalfCloseGetsItsAnswers(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	p.send(linktest.Frame('o', ""), linktest.Frame('q', ""), linktest.Frame('e', "x"), []byte{0, 0})
	p.want('o', "")
	p.want('e', "x")
	_ = p.c.(*net.TCPConn).CloseWrite()
	s.wantLeft(stream.LeftEOF, 1)
	s.book.Last().Release()
	p.want('q', "")
	p.wantClosed(connection.ReasonEOF)
}

func TestEndWithNothingOutstanding(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	p.send(linktest.Frame('o', ""), linktest.Frame('e', "x"))
	_ = p.c.(*net.TCPConn).CloseWrite()
	p.want('o', "")
	p.want('e', "x")
	p.wantClosed(connection.ReasonEOF) // the stream ended with the connection
	if left := s.Stats().Left; left != [4]int64{} {
		t.Errorf("left the loop: %v", left)
	}
}

func TestEndBehindABacklog(t *testing.T) {
	s := start(t, "unix", nil)
	p := s.dial()
	p.send(linktest.Frame('h', ""), linktest.Frame('e', "behind"), linktest.Frame('e', "it"))
	_ = p.c.(*net.UnixConn).CloseWrite()
	s.wantLeft(stream.LeftEOF, 1)
	s.book.Last().Release()
	p.want('h', "")
	p.want('e', "behind")
	p.want('e', "it")
	p.wantClosed(connection.ReasonEOF)
}

func TestBlockedKeepsUpToItsBound(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	small := linktest.Frame('e', string(make([]byte, 995)))
	p.send(linktest.Frame('h', ""), bytes.Repeat(small, blockedBytes/len(small)))
	time.Sleep(50 * time.Millisecond)
	if n := s.Stats().Left[stream.LeftBlocked]; n != 0 {
		t.Fatal("left the loop below the bound")
	}
	s.book.Last().Release()
	p.want('h', "")
	for range blockedBytes / len(small) {
		p.want('e', string(make([]byte, 995)))
	}
	p.send(linktest.Frame('h', ""))
	n := 3 * blockedBytes / len(small)
	p.send(bytes.Repeat(small, n))
	s.wantLeft(stream.LeftBlocked, 1)
	s.book.Last().Release()
	p.want('h', "")
	for range n {
		p.want('e', string(make([]byte, 995)))
	}
}

func TestManySmallFramesDoNotHoldOthers(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Loops = 1 })
	other, greedy := s.dial(), s.dial()
	other.session()
	const frames = 200_000
	flood := bytes.Repeat(linktest.Frame('e', ""), frames)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = greedy.c.Write(flood) })
	wg.Go(func() {
		got, err := io.CopyN(io.Discard, greedy.c, int64(len(flood)))
		if err != nil {
			t.Errorf("the flood got %d of %d bytes back: %v", got, len(flood), err)
		}
	})
	served := 0
	for done := false; !done; {
		other.send(linktest.Frame('e', "me too"))
		other.want('e', "me too")
		served++
		s := s.Stats()
		done = served >= 20 || s.Left[stream.LeftBehind] > 0
	}
	wg.Wait()
}

func TestAYieldIsFollowedUp(t *testing.T) {
	s := start(t, "unix", nil)
	p := s.dial()
	const frames = 10 * linktest.FramesPerTurn
	p.send(bytes.Repeat(linktest.Frame('e', "z"), frames))
	for range frames {
		p.want('e', "z")
	}
}

func TestPanicsCloseOneConnection(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Loops = 1 })
	other := s.dial()
	other.session()
	for i, cmd := range []byte{'p', 'P'} {
		p := s.dial()
		p.send(linktest.Frame(cmd, ""))
		if b, _ := io.ReadAll(p.c); len(b) > 0 {
			t.Fatalf("got %d bytes", len(b))
		}
		s.wantCount(connection.ReasonPanic, int64(i+1))
		other.send(linktest.Frame('e', "alive"))
		other.want('e', "alive")
	}
	for i, x := range s.book.All()[1:] {
		if n := x.ClosedTimes(); n != 1 {
			t.Errorf("Closed of session %d was called %d times", i, n)
		}
	}
}

func TestAResetIsAnError(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	p.session()
	_ = p.c.(*net.TCPConn).SetLinger(0)
	_ = p.c.Close()
	s.wantCount(connection.ReasonError, 1)
}

package reactor

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
	gneterr "github.com/panjf2000/gnet/v2/pkg/errors"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func full(dst []byte) []byte { return linktest.Append(dst, 'F', []byte("full")) }

func TestConnectionLimitIsShared(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.MaxConnections, c.Refuse = 3, full })
	streams, err := Listen("unix://" + t.TempDir() + "/streams")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeStreams(streams) }()
	a, b := s.dial(), s.dial()
	a.session()
	b.session()
	off := &server{s.Server, t, s.book, streams}
	c := off.dial()
	c.session()
	for _, where := range []*server{s, off} {
		over := where.dial()
		over.send(linktest.Frame('e', "too many"))
		over.want('F', "full")
		if rest, _ := io.ReadAll(over.c); len(rest) > 0 {
			t.Fatalf("%q after the refusal", rest)
		}
	}
	for i, p := range []*peer{a, c} { // a slot freed here serves there
		p.send(linktest.Frame('c', ""))
		p.want('c', "")
		if rest, err := io.ReadAll(p.c); len(rest) > 0 || err != nil {
			t.Fatalf("%q, %v", rest, err)
		}
		[]*server{off, s}[i].dial().session()
	}
	if n := s.Open(); n != 3 {
		t.Errorf("%d open, want 3", n)
	}
	if x := s.Stats(); x.Refused != 2 || x.Accepted != 5 {
		t.Errorf("%+v", x)
	}
}

func TestTimersOnTheLoop(t *testing.T) {
	s := start(t, "tcp", func(c *Config) {
		c.Limits.IdleAfter, c.Limits.FrameWithin = int64(500*time.Millisecond), int64(500*time.Millisecond)
	})
	busy := s.dial()
	stream1 := busy.session()
	busy.send(linktest.Frame('o', ""))
	busy.want('o', "")
	pending := s.dial()
	answer := pending.session()
	pending.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	pending.want('e', "x")
	partial, idle := s.dial(), s.dial()
	partial.send(linktest.Frame('o', ""), []byte{0})
	partial.want('o', "")
	idle.wantClosed(connection.ReasonIdle)
	partial.wantClosed(connection.ReasonFrame)
	time.Sleep(stream.TickEvery)
	answer.Release()
	pending.want('q', "")
	pending.wantEnd()
	s.wantCount(connection.ReasonIdle, 2)
	stream1.EndStream()
	busy.want('z', "")
	busy.wantEnd()
	s.wantCount(connection.ReasonIdle, 3)
}

func (p *peer) wantEnd() {
	p.t.Helper()
	if b, err := io.ReadAll(p.c); len(b) > 0 || err != nil {
		p.t.Fatalf("got %q, %v, want the end", b, err)
	}
}

func TestDrain(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Limits.DrainWithin = int64(20 * time.Second) })
	open, left, quiet := s.dial(), s.dial(), s.dial()
	open.send(linktest.Frame('o', ""))
	open.want('o', "")
	quiet.session()
	pending := s.dial()
	answer := pending.session()
	pending.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	pending.want('e', "x")
	left.send(linktest.Sized('b', 7<<20), linktest.Sized('b', 7<<20))
	s.wantLeft(stream.LeftWrite, 1)
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	open.want('z', "")
	left.wantPattern('b', 7<<20)
	left.wantPattern('b', 7<<20)
	if _, err := net.Dial("tcp", s.ln.Addr().String()); err == nil {
		t.Error("a draining server accepts")
	}
	pending.send(linktest.Frame('e', "still read"))
	pending.want('e', "still read")
	answer.Release()
	pending.want('q', "")
	for _, p := range []*peer{open, quiet, left, pending} { // all of them end together
		p.wantEnd()
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.wantCount(connection.ReasonDrain, 4)
	if err, ok := <-s.Done(); ok {
		t.Errorf("Done yields %v after Shutdown", err)
	}
}

func TestDrainServesWhatWasRead(t *testing.T) {
	s := start(t, "unix", func(c *Config) { c.Loops = 1 })
	p := s.dial()
	p.session()
	const frames = 20 * linktest.FramesPerTurn
	go func() {
		for range frames {
			_, _ = p.c.Write(linktest.Frame('e', "q"))
		}
	}()
	for range frames / 4 {
		p.want('e', "q")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	// The end may be a reset, since requests that no one will read are still under way; the answers
	// before it are whole.
	rest, _ := io.ReadAll(p.c)
	if whole := len(linktest.Frame('e', "q")); len(rest)%whole != 0 {
		t.Errorf("cut %d bytes into an answer", len(rest)%whole)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.wantCount(connection.ReasonDrain, 1)
}

func TestDrainForces(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Limits.DrainWithin = int64(50 * time.Millisecond) })
	on, off := s.dial(), s.dial()
	on.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	on.want('e', "x")
	off.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
	off.want('e', "x")
	_ = off.c.(*net.TCPConn).CloseWrite()
	s.wantLeft(stream.LeftEOF, 1)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.wantCount(connection.ReasonDrain, 2)
	on.wantEnd()
	off.wantEnd()
}

func TestNothingLeaks(t *testing.T) {
	first := start(t, "tcp", nil) // gnet's own lazy descriptors and goroutines exist from here on
	_ = first.Shutdown(context.Background())
	before := openFiles(t)
	for range 3 {
		s := start(t, "unix", func(c *Config) { c.Limits.DrainWithin = int64(100 * time.Millisecond) })
		for i := range 20 {
			p := s.dial()
			p.send(linktest.Frame('q', ""), linktest.Frame('e', "x"))
			p.want('e', "x")
			if i%2 == 0 {
				p.send(linktest.Sized('b', 1<<20))
				s.wantLeft(stream.LeftWrite, int64(i/2+1))
			}
			_ = p.c.Close()
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, x := range s.book.All() {
			x.Release() // wakes of connections that are gone
			if n := x.ClosedTimes(); n != 1 {
				t.Errorf("Closed was called %d times", n)
			}
		}
	}
	kit.Until(t, "descriptors to be closed", func() bool { return openFiles(t) <= before })
}

func TestALoopThatEndsIsFatal(t *testing.T) {
	s := start(t, "tcp", nil)
	p := s.dial()
	p.session()
	err := s.loops[1].el.Execute(context.Background(),
		gnet.RunnableFunc(func(context.Context) error { return gneterr.ErrEngineShutdown }))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.Done():
		if err == nil || !strings.Contains(err.Error(), "event loop") {
			t.Fatalf("Done yields %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the end of a loop went unnoticed")
	}
}

func TestPanicInOpenFreesTheSlot(t *testing.T) {
	s := start(t, "tcp", func(c *Config) {
		c.MaxConnections = 1
		c.Open = func(*connection.Port) connection.Session { panic("no") }
	})
	for range 3 {
		s.dial().wantEnd()
	}
	s.wantCount(connection.ReasonError, 3)
	kit.Until(t, "the slot", func() bool { return s.Open() == 0 })
}

func TestServeConn(t *testing.T) {
	s := start(t, "tcp", nil)
	mine, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.host.Serve(theirs, "pipe") }()
	p := &peer{t, mine, s}
	p.send(linktest.Frame('e', "hello"))
	p.want('e', "hello")
	_ = mine.Close()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func TestNewNeedsAnOpener(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Fatal("New without an opener succeeded")
	}
}

func TestConnectionsSpreadOverLoops(t *testing.T) {
	s := start(t, "tcp", func(c *Config) { c.Loops = 3 })
	for range 9 {
		s.dial().session()
	}
	for i, l := range s.loops {
		if n := l.count.Load(); n != 3 {
			t.Errorf("loop %d has %d connections, want 3", i, n)
		}
	}
}

func TestEachCloseIsLogged(t *testing.T) {
	var log kit.Text
	s := start(t, "tcp", func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	p := s.dial()
	p.session()
	_ = p.c.Close()
	s.wantCount(connection.ReasonEOF, 1)
	_ = s.Shutdown(context.Background())
	if n := strings.Count(log.String(), `msg="connection closed"`); n != 1 || !log.Has("reason=eof") {
		t.Errorf("logged %d closes:\n%s", n, log.String())
	}
}

func TestZoned(t *testing.T) {
	ip := net.ParseIP("fe80::1")
	f := func(local, remote net.Addr, want bool) {
		t.Helper()
		if got := zoned(addressed{local: local, remote: remote}); got != want {
			t.Errorf("%v from %v: zoned %v", local, remote, got)
		}
	}
	plain, zone := &net.TCPAddr{IP: ip}, &net.TCPAddr{IP: ip, Zone: "eth0"}
	f(plain, plain, false)
	f(plain, zone, true)
	f(zone, plain, true)
	f(&net.UnixAddr{}, &net.UnixAddr{}, false)
}

type addressed struct {
	net.Conn
	local, remote net.Addr
}

func (a addressed) LocalAddr() net.Addr  { return a.local }
func (a addressed) RemoteAddr() net.Addr { return a.remote }

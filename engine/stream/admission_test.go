package stream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func TestGateCountsExactly(t *testing.T) {
	g := newGate(3, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if g.admit() {
					if n := g.Open(); n < 1 || n > 3 {
						t.Errorf("%d slots taken of 3", n)
					}
					g.Release(false)
				}
			}
		})
	}
	wg.Wait()
	if err := g.Wait(context.Background()); err != nil || g.Open() != 0 {
		t.Fatalf("%d slots taken at the end, %v", g.Open(), err)
	}
	f := func(want bool) {
		t.Helper()
		if got := g.admit(); got != want {
			t.Fatalf("Admit with %d of %d taken said %v", g.Open(), g.Max(), got)
		}
	}
	f(true)
	f(true)
	f(true)
	f(false)
	g.Release(false)
	f(true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Wait(ctx); err == nil {
		t.Error("Wait did not wait")
	}
	if newGate(0, nil).Max() != DefaultMaxConnections {
		t.Error("zero is not the default")
	}
}

func full(dst []byte) []byte { return linktest.Append(dst, 'F', []byte("full")) }

func TestConnectionLimit(t *testing.T) {
	h, book, ln := listen(t, "tcp", func(c *Config) { c.MaxConnections, c.Refuse = 2, full })
	a, b := dial(t, h, book, ln), dial(t, h, book, ln)
	for _, p := range []*peer{a, b} {
		p.send(linktest.Frame('e', "in"))
		p.want('e', "in")
	}
	over := dial(t, h, book, ln)
	over.send(linktest.Frame('e', "too many"))
	over.want('F', "full")
	if rest, _ := io.ReadAll(over.c); len(rest) > 0 {
		t.Fatalf("%q after the refusal", rest)
	}
	a.send(linktest.Frame('c', ""))
	a.want('c', "")
	if rest, err := io.ReadAll(a.c); len(rest) > 0 || err != nil {
		t.Fatalf("%q, %v", rest, err)
	}
	again := dial(t, h, book, ln) // the slot is free as soon as a could see its end
	again.send(linktest.Frame('e', "now"))
	again.want('e', "now")
	if s := h.Snapshot(); s.Accepted != 3 || s.Refused != 1 || s.Open != 2 {
		t.Errorf("%+v", s)
	}
}

func TestServeBeyondTheLimit(t *testing.T) {
	h, _ := newHost(t, func(c *Config) { c.MaxConnections, c.Refuse = 1, full })
	h.Gate.admit()
	defer h.Gate.Release(false)
	mine, theirs := net.Pipe()
	if err := h.Serve(theirs, "pipe"); !errors.Is(err, errFull) {
		t.Fatalf("Serve said %v", err)
	}
	if cmd, _, err := linktest.Read(mine); cmd != 'F' || err != nil {
		t.Fatalf("got %c, %v", cmd, err)
	}
	if _, err := mine.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("after the refusal: %v", err)
	}
}

func TestRefusalsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHost(t, func(c *Config) { c.MaxConnections, c.Refuse = 1, full })
		h.Gate.admit()
		var silent []net.Conn
		for range refusalsInFlight {
			mine, theirs := net.Pipe() // no one reads: each refusal waits for its deadline
			_ = h.Serve(theirs, "pipe")
			silent = append(silent, mine)
		}
		synctest.Wait()
		mine, theirs := net.Pipe()
		_ = h.Serve(theirs, "pipe")
		if _, err := mine.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("refusal %d: %v, want a plain close", refusalsInFlight+1, err)
		}
		time.Sleep(refuseWithin + time.Millisecond)
		if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a refusal nobody takes: %v, want a close after its deadline", err)
		}
		mine, theirs = net.Pipe()
		_ = h.Serve(theirs, "pipe")
		if cmd, _, err := linktest.Read(mine); cmd != 'F' || err != nil {
			t.Errorf("got %c, %v once refusals are possible again", cmd, err)
		}
		h.Gate.Release(false)
		_ = h.Close(context.Background())
	})
}

// flaky fails its first accepts.
type flaky struct {
	net.Listener
	errs  int
	tried []time.Time
}

func (f *flaky) Accept() (net.Conn, error) {
	f.tried = append(f.tried, time.Now())
	if f.errs--; f.errs >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// slow is a listener that nothing accepts from.
type slow struct{ closed chan struct{} }

func (s *slow) Accept() (net.Conn, error) { <-s.closed; return nil, net.ErrClosed }
func (s *slow) Close() error              { close(s.closed); return nil }
func (s *slow) Addr() net.Addr            { return &net.UnixAddr{Name: "slow"} }

func TestAcceptErrorsArePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHost(t, nil)
		ln := &flaky{Listener: &onceClosed{Listener: &slow{make(chan struct{})}}, errs: 12}
		go func() { _ = h.ServeListener(ln) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(ln.tried) != 13 {
			t.Fatalf("%d tries, want 13", len(ln.tried))
		}
		f := func(i int, want time.Duration) {
			t.Helper()
			if d := ln.tried[i+1].Sub(ln.tried[i]); d != want {
				t.Errorf("pause %d was %v, want %v", i, d, want)
			}
		}
		f(0, acceptPauseMin)
		f(1, 2*acceptPauseMin)
		f(11, acceptPauseMax)
		_ = h.Close(context.Background())
	})
}

// TestAcceptTroubleIsSaidOncePerWhile: out of descriptors, accepting fails and succeeds by turns.
func TestAcceptTroubleIsSaidOncePerWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		h, _ := newHost(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
		ln := &slow{make(chan struct{})}
		var p patience
		f := func(failures, wantLines int) {
			t.Helper()
			for range failures {
				p.pause = 0 // as after a success
				if !h.failedAccept(ln, syscall.EMFILE, &p) {
					t.Fatal("the loop is told to end")
				}
			}
			if got := strings.Count(lines.String(), "trying again"); got != wantLines {
				t.Errorf("%d lines, want %d", got, wantLines)
			}
		}
		f(100, 1)
		time.Sleep(acceptLogEvery)
		f(100, 2)
		_ = h.Close(context.Background())
	})
}

// onceClosed lets a listener be closed by the host and by its accept loop.
type onceClosed struct {
	net.Listener
	once sync.Once
}

func (o *onceClosed) Close() error { o.once.Do(func() { _ = o.Listener.Close() }); return nil }

func TestTLS(t *testing.T) {
	server, client := tlsConfigs()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, book := newHost(t, func(c *Config) { c.MaxConnections, c.Refuse = 2, full })
	go func() { _ = h.ServeListener(tls.NewListener(plain, server)) }()
	mute, err := net.Dial("tcp", plain.Addr().String()) // never shakes hands, but holds a slot
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	kit.Until(t, "the mute peer's slot", func() bool { return h.Gate.Open() == 1 })
	call := func() *peer {
		c, err := tls.Dial("tcp", plain.Addr().String(), client)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return &peer{t, c, h, book}
	}
	p := call()
	p.send(linktest.Frame('e', "secret"), linktest.Sized('b', 1<<20))
	p.want('e', "secret")
	p.wantPattern('b', 1<<20)
	over := call()
	over.want('F', "full")
	p.send(linktest.Frame('q', ""))
	_ = p.c.(*tls.Conn).CloseWrite()
	time.Sleep(10 * time.Millisecond)
	book.Last().Release()
	p.want('q', "")
	if _, err := p.c.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("after the last answer: %v, want a clean end", err)
	}
	if err := h.Close(context.Background()); err != nil { // ends the mute handshake too
		t.Fatal(err)
	}
}

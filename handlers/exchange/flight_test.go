package exchange

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/envelope"
	"trunkline/handlers/internal/httpd"
)

// gate is an engine that states when it is asked and answers when it is asked to.
type gate struct {
	asked chan struct{}
	going chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}, 64), make(chan struct{})} }

func (g *gate) process(dst, _ []byte) ([]byte, envelope.Reason, *envelope.Error) {
	g.asked <- struct{}{}
	<-g.going
	return append(dst, `{"current_stage":"gone"}`...), envelope.NoReason, nil
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	g := newGate()
	s, addr := start(t, HTTPConfig{MaxInFlight: 2}, g.process)
	var busy [2]*peer
	for i := range busy {
		busy[i] = dial(t, addr)
		busy[i].post(hi)
		<-g.asked
	}
	late := dial(t, addr)
	for range 2 {
		late.post(hi)
		if r := late.wantError("one too many", 503, "overloaded"); r.Header.Get("Retry-After") != "1" || r.Close {
			t.Errorf("%v", r.Header)
		}
	}
	late.write("GET / HTTP/1.1\nHost: x\n\n")
	late.wantError("needs no place", 404, "not_found")
	if st := s.Stats(); st.InFlight != 2 || st.Connections != 3 {
		t.Errorf("%+v", st)
	}
	g.going <- struct{}{}
	g.going <- struct{}{}
	for _, p := range busy {
		p.wantEnvelope("in flight", "gone")
	}
	close(g.going)
	late.post(hi)
	late.wantEnvelope("a place is free", "gone")
}

// TestAHalfSentBodyTakesAPlace: bodies are what MaxInFlight bounds.
func TestAHalfSentBodyTakesAPlace(t *testing.T) {
	s, addr := start(t, HTTPConfig{MaxInFlight: 1}, nil)
	slow, late := dial(t, addr), dial(t, addr)
	slow.write("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: 18\n\n" + `{"raw_input"`)
	for s.Stats().InFlight == 0 {
		time.Sleep(time.Millisecond)
	}
	late.post(hi)
	late.wantError("one too many", 503, "overloaded")
	slow.write(`:"hi"}`)
	slow.wantEnvelope("slow", "perception")
	late.wantOpen("late")
}

func TestDraining(t *testing.T) {
	g := newGate()
	s, addr := start(t, HTTPConfig{}, g.process)
	idle, busy := dial(t, addr), dial(t, addr)
	idle.write("GET / HTTP/1.1\nHost: x\n\n")
	idle.wantError("idle", 404, "not_found")
	busy.post(hi)
	<-g.asked
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.wantClosed("idle while draining")
	for { // clients that come now are for the next server, while this one still answers
		c, err := net.Dial("tcp4", addr)
		if err != nil {
			break
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
	close(g.going)
	busy.wantHangUp("in flight", busy.wantEnvelope("in flight", "gone"))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestALateRequest on a connection that was there is refused, and ends it.
func TestALateRequest(t *testing.T) {
	s, addr := start(t, HTTPConfig{}, nil)
	late := dial(t, addr)
	late.write("GET / HTTP/1.1\nHost: x\n\n")
	late.wantError("before", 404, "not_found")
	s.Draining.Store(true)
	late.post(hi)
	late.wantHangUp("late", late.wantError("late", 503, "shutting_down"))
}

func TestShutdownThatRunsOutOfTime(t *testing.T) {
	g := newGate()
	s, addr := start(t, HTTPConfig{}, g.process)
	p := dial(t, addr)
	p.post(hi)
	<-g.asked
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "cannot finish") {
		t.Errorf("%v", err)
	}
	p.wantClosed("cut off")
	close(g.going)
}

func TestShutdownBeforeServe(t *testing.T) {
	s := NewServer(newEngine(), HTTPConfig{}.withDefaults())
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); err != nil {
		t.Error(err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}

func TestServeNamesItsFailure(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := NewServer(newEngine(), HTTPConfig{}.withDefaults()).Serve(ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// piped is a listener in memory, so that waiting can be seen without waiting.
type piped struct {
	net.Listener
	come   chan net.Conn
	closed chan struct{}
}

func (p *piped) Addr() net.Addr { return &net.UnixAddr{Name: "piped", Net: "unix"} }

func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error { close(p.closed); return nil }

func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		p := &piped{come: make(chan net.Conn, 2*most), closed: make(chan struct{})}
		for range most + 2 {
			c, _ := net.Pipe()
			p.come <- c
		}
		s := NewServer(newEngine(), HTTPConfig{MaxConnections: most}.withDefaults())
		ln, accepted, ended := s.Bound(p), make(chan net.Conn, 2*most), make(chan error, 1)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- c
			}
		}()
		want := func(why string, waiting int, open int64) {
			t.Helper()
			synctest.Wait()
			if len(accepted) != waiting || s.Stats().Connections != open {
				t.Fatalf("%s: %d accepted, %d open; want %d, %d", why, len(accepted), s.Stats().Connections, waiting, open)
			}
		}
		want("at the limit", most, most)
		first := <-accepted
		first.Close()
		want("one left, one more came", most, most)
		first.Close()
		want("closing twice frees one place", most, most)
		ln.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept without a place ended with %v", err)
		}
	})
}

func TestAFailedAcceptKeepsNoPlace(t *testing.T) {
	p := &piped{closed: make(chan struct{})}
	ln := NewServer(newEngine(), HTTPConfig{MaxConnections: 1}.withDefaults()).Bound(p)
	p.Close()
	for range 2 {
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ended with %v", err)
		}
	}
}

func TestLargeBuffersAreNotKept(t *testing.T) {
	s := NewServer(newEngine(), HTTPConfig{}.withDefaults())
	f := func(in, out int, keepsIn, keepsOut bool) {
		t.Helper()
		b := &buffers{make([]byte, 0, in), make([]byte, 0, out)}
		s.give(b)
		if (b.in != nil) != keepsIn || (b.out != nil) != keepsOut {
			t.Errorf("%d, %d: kept %d, %d", in, out, cap(b.in), cap(b.out))
		}
	}
	f(httpd.MaxKept, 1, true, true)
	f(httpd.MaxKept+1, 1, false, true)
	f(1, httpd.MaxKept+1, true, false)
}

package ops

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// piped is a listener in memory, so that waiting can be seen without waiting.
type piped struct {
	net.Listener
	come   chan net.Conn
	closed chan struct{}
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error { close(p.closed); return nil }

// crowd puts n connections into the backlog of a limited listener and accepts what it lets in;
// accepted counts them.
func crowd(n int) (ln *limited, accepted chan net.Conn, ended chan error) {
	p := &piped{come: make(chan net.Conn, n), closed: make(chan struct{})}
	for range n {
		c, _ := net.Pipe()
		p.come <- c
	}
	ln, accepted, ended = limit(p, maxConnections), make(chan net.Conn, n), make(chan error, 1)
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
	return ln, accepted, ended
}

func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, accepted, ended := crowd(maxConnections + 2)
		want := func(why string, n int) {
			t.Helper()
			synctest.Wait()
			if len(accepted) != n {
				t.Fatalf("%s: %d connections accepted, want %d", why, len(accepted), n)
			}
		}
		want("at the limit", maxConnections)
		first := <-accepted
		first.Close()
		want("one left, one more came", maxConnections)
		first.Close()
		want("closing twice frees one slot", maxConnections)
		ln.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept without a slot ended with %v", err)
		}
	})
}

func TestAFailedAcceptKeepsNoSlot(t *testing.T) {
	p := &piped{closed: make(chan struct{})}
	ln := limit(p, 1)
	p.Close()
	for range 2 {
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ended with %v", err)
		}
	}
}

// keepAlive is one HTTP connection that stays open between requests.
type keepAlive struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) *keepAlive {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &keepAlive{t, c, bufio.NewReader(c)}
}

func (k *keepAlive) ask() {
	k.t.Helper()
	if _, err := fmt.Fprintf(k, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keepAlive) wantAnswer() {
	k.t.Helper()
	resp, err := http.ReadResponse(k.in, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		k.t.Errorf("status %d", resp.StatusCode)
	}
}

func TestOneConnectionTooManyWaitsForItsTurn(t *testing.T) {
	s, err := Listen(newConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	var open [maxConnections]*keepAlive
	for i := range open {
		open[i] = dial(t, s.Addr())
		open[i].ask()
		open[i].wantAnswer()
	}
	late := dial(t, s.Addr())
	late.ask()
	open[0].ask() // the others are served meanwhile
	open[0].wantAnswer()
	if n := len(s.ln.(*limited).slots); n != maxConnections {
		t.Errorf("%d connections are open, want %d", n, maxConnections)
	}
	open[0].Close()
	late.wantAnswer()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

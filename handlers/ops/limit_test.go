package ops

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"trunkline/handlers/internal/conns"
)

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
	if n := s.ln.(*conns.Listener).Open(); n != maxConnections {
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

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
	"time"

	"trunkline/handlers/internal/httpd"
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
	if n := s.lns[0].(*httpd.Listener).Open(); n != maxConnections {
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

// backlog is a listener whose connections are pipes.
type backlog struct {
	net.Listener
	waiting chan net.Conn
}

func (b *backlog) Accept() (net.Conn, error) {
	if c, ok := <-b.waiting; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (b *backlog) Close() error { return nil }

// piped runs f beside a server of c whose connections are pipes, in a bubble of its own time.
func piped(t *testing.T, c Config, f func(t *testing.T, dial func() *keepAlive)) {
	t.Helper()
	ln, err := net.Listen("tcp", c.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	synctest.Test(t, func(t *testing.T) {
		b := &backlog{ln, make(chan net.Conn, 8*maxConnections)}
		c.Listener = b
		s, err := Listen(c)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Serve() }()
		var open []net.Conn
		f(t, func() *keepAlive {
			mine, theirs := net.Pipe()
			b.waiting <- theirs
			open = append(open, mine)
			return &keepAlive{t, mine, bufio.NewReader(mine)}
		})
		for _, mine := range open {
			_ = mine.Close()
		}
		close(b.waiting)
		_ = s.Shutdown(context.Background())
		<-done
	})
}

// TestProbesComePastSlowHeads: four times as many connections as there are places begin a request
// and do not end it. A probe behind them is answered before the first of them has to give up.
func TestProbesComePastSlowHeads(t *testing.T) {
	piped(t, newConfig(t), func(t *testing.T, dial func() *keepAlive) {
		began := time.Now()
		for range 4 * maxConnections {
			slow := dial()
			go func() { _, _ = slow.Write([]byte("GET /healthz HTTP/1.1\r\nX")) }()
		}
		probe := dial()
		probe.ask()
		probe.wantAnswer()
		if took := time.Since(began); took >= readTimeout {
			t.Errorf("answered after %v", took)
		}
	})
}

// quiet is a Monitor whose frames come when a test has some.
type quiet chan Frame

func (q quiet) Next(ctx context.Context) ([]Frame, error) {
	select {
	case f := <-q:
		return []Frame{f}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q quiet) Close() {}

// TestQuietStreamsStay: they do not wait for their readers, and give no place away at the bound.
func TestQuietStreamsStay(t *testing.T) {
	for _, path := range []string{"/monitor?conn=ipc-1", "/console/live"} {
		c := newConfig(t)
		var frames quiet
		c.Monitor = func(string, int) (Monitor, error) { return frames, nil }
		c.Console = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			rc := http.NewResponseController(w)
			if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}), rc.Flush()); err != nil {
				t.Error(err)
			}
			if f, err := frames.Next(r.Context()); err == nil {
				_, _ = fmt.Fprintln(w, f)
			}
		})
		piped(t, c, func(t *testing.T, dial func() *keepAlive) {
			frames = make(quiet)
			stream := dial()
			go func() { _, _ = fmt.Fprintf(stream, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path) }()
			resp, err := http.ReadResponse(stream.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 * maxConnections {
				idle := dial()
				idle.ask()
				idle.wantAnswer()
				time.Sleep(time.Second / 4)
			}
			select {
			case frames <- Frame{Type: "closed"}:
			case <-time.After(time.Minute):
				t.Errorf("%s has ended", path)
				return
			}
			if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
				t.Errorf("%s gives %q, %v", path, line, err)
			}
		})
	}
}

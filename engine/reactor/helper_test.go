package reactor

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func TestMain(m *testing.M) { kit.Leaks(m) }

type server struct {
	*Server
	t    testing.TB
	book *linktest.Book
	ln   net.Listener
}

// start serves one listener: "tcp", or "unix".
func start(t testing.TB, network string, change func(*Config)) *server {
	t.Helper()
	book := &linktest.Book{Limits: linktest.Limits()}
	cfg := Config{Config: stream.Config{Limits: book.Limits, Open: book.Open}, Loops: 2}
	if change != nil {
		change(&cfg)
		book.Limits = cfg.Limits
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = "unix://" + t.TempDir() + "/s"
	}
	ln, err := Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return &server{s, t, book, ln}
}

// peer is the client's end of a conversation.
type peer struct {
	t testing.TB
	c net.Conn
	s *server
}

func (s *server) dial() *peer {
	s.t.Helper()
	c, err := net.Dial(s.ln.Addr().Network(), s.ln.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{s.t, c, s}
}

// session returns the session of the peer dialled last, once it has one.
func (p *peer) session() *linktest.Session {
	p.t.Helper()
	p.send(linktest.Frame('e', "who"))
	p.want('e', "who")
	return p.s.book.Last()
}

func (p *peer) send(frames ...[]byte) {
	p.t.Helper()
	if _, err := p.c.Write(bytes.Join(frames, nil)); err != nil {
		p.t.Fatalf("cannot send: %v", err)
	}
}

func (p *peer) want(cmd byte, payload string) {
	p.t.Helper()
	c, b, err := linktest.Read(p.c)
	if err != nil {
		p.t.Fatalf("waiting for %c %.40q: %v", cmd, payload, err)
	}
	if c != cmd || string(b) != payload {
		p.t.Fatalf("got %c %.40q, want %c %.40q", c, b, cmd, payload)
	}
}

func (p *peer) wantPattern(cmd byte, n int) {
	p.t.Helper()
	c, b, err := linktest.Read(p.c)
	if err != nil || c != cmd || len(b) != n {
		p.t.Fatalf("got %c of %d bytes (%v), want %c of %d", c, len(b), err, cmd, n)
	}
	if err := linktest.CheckPattern(b); err != nil {
		p.t.Fatal(err)
	}
}

// wantClosed waits for the end of the conversation, then for its bookkeeping.
func (p *peer) wantClosed(r connection.Reason) {
	p.t.Helper()
	if b, err := io.ReadAll(p.c); len(b) > 0 {
		p.t.Fatalf("got %d bytes (%v), want the end", len(b), err)
	}
	p.s.wantCount(r, 1)
}

func (s *server) wantCount(r connection.Reason, n int64) {
	s.t.Helper()
	kit.Until(s.t, r.String(), func() bool { return s.Stats().Closed[r] >= n })
	if got := s.Stats().Closed[r]; got != n {
		s.t.Fatalf("%d connections closed for %v, want %d", got, r, n)
	}
}

func (s *server) wantLeft(d stream.Departure, n int64) {
	s.t.Helper()
	kit.Until(s.t, "departures for "+d.String(), func() bool { return s.Stats().Left[d] >= n })
}

func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(d)
}

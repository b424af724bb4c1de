package stream

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the client's end of a conversation.
type peer struct {
	t    *testing.T
	c    net.Conn
	host *Host
	book *linktest.Book
}

func newHost(t *testing.T, change func(*Config)) (*Host, *linktest.Book) {
	t.Helper()
	book := &linktest.Book{Limits: linktest.Limits()}
	cfg := Config{Limits: book.Limits, Open: book.Open}
	if change != nil {
		change(&cfg)
		book.Limits = cfg.Limits
	}
	h := NewHost(cfg)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h, book
}

// pipe serves one in-memory connection; it works inside a synctest bubble, where the Host must be
// closed by the test.
func pipe(t *testing.T, change func(*connection.Limits)) *peer {
	t.Helper()
	h, book := newHost(t, func(c *Config) {
		if change != nil {
			change(&c.Limits)
		}
	})
	mine := pipeTo(t, h)
	return &peer{t, mine, h, book}
}

// listen serves a loopback TCP or a unix listener.
func listen(t *testing.T, network string, change func(*Config)) (*Host, *linktest.Book, net.Listener) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = t.TempDir() + "/s"
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	h, book := newHost(t, change)
	go func() { _ = h.ServeListener(ln) }()
	return h, book, ln
}

func dial(t *testing.T, h *Host, book *linktest.Book, ln net.Listener) *peer {
	t.Helper()
	c, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{t, c, h, book}
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
	b, err := io.ReadAll(p.c)
	if len(b) > 0 {
		p.t.Fatalf("got %d bytes (%v), want the end", len(b), err)
	}
	p.wantReason(r)
}

func (p *peer) wantReason(r connection.Reason) {
	p.t.Helper()
	kit.Until(p.t, "the slot to be free", func() bool { return p.host.Gate.Open() == 0 })
	s := p.host.Snapshot()
	if s.Closed[r] != 1 {
		p.t.Fatalf("closed %v, want one of %v", s.Closed, r)
	}
	for _, x := range p.book.All() {
		if n := x.ClosedTimes(); n != 1 {
			p.t.Fatalf("Closed was called %d times, want once", n)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(d)
}

// pipeTo serves one in-memory connection of a Host.
func pipeTo(t *testing.T, h *Host) net.Conn {
	t.Helper()
	mine, theirs := net.Pipe()
	t.Cleanup(func() { _ = mine.Close() })
	go func() { _ = h.Serve(theirs, "pipe") }()
	return mine
}

// tlsConfigs returns the configurations of a server on 127.0.0.1 and of a client that trusts it.
func tlsConfigs() (server, client *tls.Config) {
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	return &tls.Config{Certificates: lender.TLS.Certificates}, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

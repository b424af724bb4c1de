package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Dial dials without a pulse.
func Dial(ctx context.Context, addr string, cfg *Config, service string, partition int, client string) (net.Conn, error) {
	c, _, err := connect(ctx, addr, cfg, &header{service: service, client: client, partition: uint32(partition)})
	return c, err
}

func config(node string) Config { return Config{Cluster: "c1", Node: node} }

// start returns a server on loopback that ends with the test.
func start(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, ln, cfg), ln.Addr().String()
}

// serve returns a server on ln that ends with the test.
func serve(t testing.TB, ln net.Listener, cfg Config) *Server {
	t.Helper()
	s, err := NewServer(ln, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// echo answers each connection of ln with its name and what it sent, after its half-close.
func echo(t testing.TB, ln net.Listener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all, _ := io.ReadAll(c)
			_, _ = c.Write([]byte(c.RemoteAddr().String() + "|" + string(all)))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
}

func ask(t testing.TB, c net.Conn, text string) string {
	t.Helper()
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestDialReachesAService(t *testing.T) {
	s, addr := start(t, config("n1"))
	echo(t, s.Service("kernel", 0))
	cfg := config("n2")
	c, err := Dial(t.Context(), addr, &cfg, "kernel", 0, "10.0.0.1:5")
	if err != nil {
		t.Fatal(err)
	}
	if s.Open() != 1 {
		t.Errorf("%d are open", s.Open())
	}
	if got := ask(t, c, "hello"); got != "10.0.0.1:5|hello" {
		t.Errorf("answer %q", got)
	}
}

// TestPartitions: each has services of its own.
func TestPartitions(t *testing.T) {
	s, addr := start(t, config("n1"))
	cfg := config("n2")
	for _, p := range []int{0, 1, math.MaxUint32} {
		ln := s.Service("kernel", p)
		for _, other := range []int{0, 1, 2, math.MaxUint32} {
			c, err := Dial(t.Context(), addr, &cfg, "kernel", other, "x")
			if p != other {
				if r := Refusal(0); !errors.As(err, &r) || r != NotOwner {
					t.Errorf("partition %d is asked for, and %d is there: %v", other, p, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			taken, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Close(), taken.Close()
		}
		_ = ln.Close()
	}
}

// TestSetMaxConnections: a higher limit counts at once.
func TestSetMaxConnections(t *testing.T) {
	cfg := config("n1")
	cfg.MaxConnections = 1
	s, addr := start(t, cfg)
	ln := s.Service("kernel", 0)
	defer ln.Close()
	good := config("n2")
	for most := 1; most <= 2; most++ {
		s.SetMaxConnections(most)
		c, err := Dial(t.Context(), addr, &good, "kernel", 0, "x")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = Dial(t.Context(), addr, &good, "kernel", 0, "x")
		if r := Refusal(0); !errors.As(err, &r) || r != Full {
			t.Errorf("beyond %d connections: %v", most, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	one := config("n1")
	one.MaxConnections = 1
	s, addr := start(t, one)
	ln := s.Service("kernel", 0)
	other, good := config("n2"), config("n2")
	other.Cluster = "c2"
	refused := func(cfg Config, service string, want Refusal) {
		t.Helper()
		_, err := Dial(t.Context(), addr, &cfg, service, 0, "x")
		if r := Refusal(0); !errors.As(err, &r) || r != want {
			t.Errorf("%v, not %v", err, want)
		}
	}
	refused(other, "kernel", WrongCluster)
	refused(good, "tools", NotOwner)
	c, err := Dial(t.Context(), addr, &good, "kernel", 0, "x")
	if err != nil {
		t.Fatal(err)
	}
	refused(good, "kernel", Full)
	taken, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = taken.Close(), c.Close()
	for s.Open() > 0 { // the place is free again
		time.Sleep(time.Millisecond)
	}
	if c, err = Dial(t.Context(), addr, &good, "kernel", 0, "x"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	_ = ln.Close()
	refused(good, "kernel", NotOwner)
	long := good
	if _, err := Dial(t.Context(), addr, &long, "kernel", 0, strings.Repeat("x", maxText+1)); err == nil {
		t.Error("a name of 256 bytes is taken")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"node":    func(c *Config) { c.Node = strings.Repeat("n", maxText+1) },
		"cluster": func(c *Config) { c.Cluster = strings.Repeat("n", maxText+1) },
	} {
		cfg := config("n1")
		change(&cfg)
		if _, err := NewServer(nil, cfg); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	cfg := config(strings.Repeat("n", maxText))
	if _, err := NewServer(nil, cfg); err != nil {
		t.Error(err)
	}
}

// TestAnotherProtocol gets a close and no answer, and so does another version of this one.
func TestAnotherProtocol(t *testing.T) {
	_, addr := start(t, config("n1"))
	newer := magic + "\x03\x00\x04\x00\x00\x00\x00"
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat("x", 64), magic + "\x01\xff\xff", magic + "\x03\x00\x00", newer} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(text))
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%q is answered with %q", text, got)
		}
		_ = c.Close()
	}
}

// TestHandshakesThatNeverEnd keep no node out, and nor do connections that their service does not
// accept: those of other services are made.
func TestHandshakesThatNeverEnd(t *testing.T) {
	s, addr := start(t, config("n1"))
	echo(t, s.Service("kernel", 0))
	busy := s.Service("threads", 0)
	cfg := config("n2")
	var idle []net.Conn
	for range maxGreeting + 1 {
		slow, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		waits, err := Dial(t.Context(), addr, &cfg, "threads", 0, "x")
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, slow, waits)
	}
	c, err := Dial(t.Context(), addr, &cfg, "kernel", 0, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c, "hello"); got != "x|hello" {
		t.Errorf("answer %q", got)
	}
	if _, err := idle[0].Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest handshake goes on, or ends as that of an earlier version: %v", err)
	}
	for _, c := range idle {
		_ = c.Close()
	}
	_ = busy.Close()
}

// TestRefusalsAreLoggedNowAndThen: who can reach the address cannot fill the disk by the log.
func TestRefusalsAreLoggedNowAndThen(t *testing.T) {
	var log strings.Builder
	cfg := config("n1")
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, addr := start(t, cfg)
	other := config("n2")
	other.Cluster = "c2"
	began := time.Now()
	for range 100 {
		if _, err := Dial(t.Context(), addr, &other, "kernel", 0, "x"); err == nil {
			t.Fatal("a node of another cluster gets in")
		}
	}
	most := 2 + int(time.Since(began)/refusalsEvery)
	_ = s.Close()
	if n := strings.Count(log.String(), "\n"); n < 1 || n > most {
		t.Errorf("%d lines, want 1 to %d: %s", n, most, log.String())
	}
}

// TestForwarder joins clients to whichever node owns the service, also one that comes late.
func TestForwarder(t *testing.T) {
	s, addr := start(t, config("n1"))
	owned := make(chan struct{})
	first, replaced := context.WithCancel(t.Context())
	next := t.Context()
	var owns atomic.Pointer[context.Context]
	owns.Store(&first)
	cfg := config("n2")
	f := NewForwarder(ForwardConfig{
		Name:  func(net.Conn) string { return "client" },
		Allow: func(net.Conn) error { return nil },
		Owner: func(ctx context.Context, service, client string) (net.Conn, context.Context, error) {
			select {
			case <-owned:
				c, err := Dial(ctx, addr, &cfg, service, 0, client)
				return c, *owns.Load(), err
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		},
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ln.(Listener), "kernel") }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	echo(t, s.Service("kernel", 0))
	close(owned)
	big := strings.Repeat("x", 1<<20)
	if got := ask(t, c, big); got != "client|"+big {
		t.Errorf("answer of %d bytes", len(got))
	}
	idle, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for f.Open() != 1 || s.Open() != 1 {
		time.Sleep(time.Millisecond)
	}
	replaced()
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a client stays with an owner that was replaced")
	}
	_ = idle.Close()
	owns.Store(&next)
	if idle, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	for f.Open() != 1 {
		time.Sleep(time.Millisecond)
	}
	f.Close()
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a client outlives its forwarder")
	}
	_ = idle.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	late, err := net.Dial("tcp", ln.Addr().String()) // the node itself serves the listener now
	if err != nil {
		t.Fatal(err)
	}
	own, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = late.Close(), own.Close(), ln.Close()
}

// TestHold closes a client that no node serves.
func TestHold(t *testing.T) {
	f := NewForwarder(ForwardConfig{
		Hold:  time.Millisecond,
		Name:  func(net.Conn) string { return "" },
		Allow: func(net.Conn) error { return nil },
		Owner: func(ctx context.Context, _, _ string) (net.Conn, context.Context, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		},
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { _ = f.Serve(ln.(Listener), "kernel") }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a client is answered without an owner")
	}
	_ = c.Close()
	f.Close()
}

// TestYield: a node that takes over accepts no more for others, and a client that waits there for
// an owner gets one.
func TestYield(t *testing.T) {
	s, addr := start(t, config("n1"))
	waits, owned := make(chan struct{}), make(chan struct{})
	cfg := config("n1")
	f := NewForwarder(ForwardConfig{
		Name:  func(net.Conn) string { return "client" },
		Allow: func(net.Conn) error { return nil },
		Owner: func(ctx context.Context, service, client string) (net.Conn, context.Context, error) {
			close(waits)
			<-owned
			c, err := Dial(ctx, addr, &cfg, service, 0, client)
			return c, context.Background(), err
		},
	})
	defer f.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ln.(Listener), "kernel") }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	f.Yield()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	echo(t, s.Service("kernel", 0))
	close(owned)
	if got := ask(t, c, "hello"); got != "client|hello" {
		t.Errorf("answer %q", got)
	}
}

// TestTLS needs certificates of one authority on both sides.
func TestTLS(t *testing.T) {
	ca, certs := authority(t)
	node := func(name string) Config {
		cfg := config(name)
		cfg.ServerTLS = &tls.Config{Certificates: certs, ClientCAs: ca, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
		cfg.ClientTLS = &tls.Config{Certificates: certs, RootCAs: ca, MinVersion: tls.VersionTLS13}
		return cfg
	}
	s, addr := start(t, node("n1"))
	echo(t, s.Service("kernel", 0))
	cfg := node("n2")
	c, err := Dial(t.Context(), addr, &cfg, "kernel", 0, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c, "hello"); got != "x|hello" {
		t.Errorf("answer %q", got)
	}
	for name, change := range map[string]func(*Config){
		"no TLS":         func(c *Config) { c.ClientTLS = nil },
		"no certificate": func(c *Config) { c.ClientTLS.Certificates = nil },
		"no authority":   func(c *Config) { c.ClientTLS.RootCAs = x509.NewCertPool() },
	} {
		bad := node("n3")
		change(&bad)
		if _, err := Dial(t.Context(), addr, &bad, "kernel", 0, "x"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzGreet has a server read anything: it accepts exactly what a node of the cluster sends.
func FuzzGreet(f *testing.F) {
	for _, partition := range []uint32{0, 1, math.MaxUint32} {
		h := header{cluster: "c1", node: "n1", service: "kernel", client: "x", partition: partition}
		enc, _ := h.encode()
		f.Add(append(append([]byte(magic), h.version(), 0, byte(len(enc))), enc...))
	}
	f.Add(append([]byte(magic), ofPartitions, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := greet(bytes.NewReader(in), "c1")
		if err != nil {
			return
		}
		var sent bytes.Buffer
		_ = dial(&scripted{Writer: &sent}, &h)
		if h.cluster != "c1" || !bytes.HasPrefix(in, sent.Bytes()) {
			t.Errorf("accepted %q as %+v, which is %q", in, h, sent.Bytes())
		}
	})
}

// scripted keeps what was written, and answers nothing.
type scripted struct{ io.Writer }

// Read implements io.Reader.
func (s *scripted) Read([]byte) (int, error) { return 0, io.EOF }

// pipes is a listener in the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipes) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (l *pipes) Addr() net.Addr { return address("pipes") }

// TestManyAtOnce: clients that come together, as after a takeover, all have their connection, each
// at its first attempt, if none is slow.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := &pipes{make(chan net.Conn), make(chan struct{})}
		s := serve(t, ln, config("n1"))
		echo(t, s.Service("kernel", 0))
		var all sync.WaitGroup
		for range 4 * maxGreeting {
			all.Go(func() {
				here, there := net.Pipe()
				defer here.Close()
				ln.conns <- there
				time.Sleep(shortGreeting / 2) // until all that have room have begun
				if err := dial(here, &header{cluster: "c1", node: "n2", service: "kernel", client: "x"}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// TestConnectEndsWithItsContext: the context ends while the handshake fails by itself.
func TestConnectEndsWithItsContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cancels := make(chan context.CancelFunc, 1)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			cancel := <-cancels
			c.Close()
			cancel()
		}
	}()
	cfg := config("n1")
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		cancels <- cancel
		if c, _, err := connect(ctx, ln.Addr().String(), &cfg, &header{service: "s"}); err == nil || c != nil {
			t.Errorf("connected to %v", c)
		}
	}
}

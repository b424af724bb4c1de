package reactor

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// slowPeer is a subscriber whose system holds little for it, and the chunks that wait for it.
type slowPeer struct {
	*peer
	raw   syscall.RawConn
	sess  *linktest.Session
	clock *atomic.Int64
	fed   *atomic.Int64 // requests its session has taken
}

const (
	chunkBytes = 1000
	chunks     = 6000 // more than a socket takes by itself
	sendWithin = int64(10 * time.Second)
)

// counted counts the requests that its session has taken.
type counted struct {
	*linktest.Session
	fed *atomic.Int64
}

func (c counted) Feed(in, out []byte, now connection.Instant) (int, []byte, connection.Verdict) {
	used, out, v := c.Session.Feed(in, out, now)
	if used > 0 {
		c.fed.Add(1)
	}
	return used, out, v
}

// overEach runs f with a slow subscriber on a loop, over TCP and a unix socket, and with one over
// TLS.
func overEach(t *testing.T, f func(t *testing.T, p *slowPeer)) {
	for _, transport := range []string{"tcp", "unix", "tls"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			f(t, subscribeSlowly(t, transport))
		})
	}
}

func subscribeSlowly(t *testing.T, transport string) *slowPeer {
	t.Helper()
	p := &slowPeer{clock: new(atomic.Int64), fed: new(atomic.Int64)}
	p.clock.Store(1)
	network := transport
	if transport == "tls" {
		network = "tcp"
	}
	s := start(t, network, func(c *Config) {
		open := c.Open
		c.Open = func(port *connection.Port) connection.Session { return counted{open(port).(*linktest.Session), p.fed} }
		c.Now = func() connection.Instant { return connection.Instant{Mono: p.clock.Load()} }
		c.Limits.SendWithin, c.Limits.ChunkBytes = sendWithin, connection.DefaultChunkBytes
	})
	p.peer = p.dial(t, s, transport)
	p.send(linktest.Frame(linktest.Open, ""))
	p.want(linktest.Open, "")
	p.sess = s.book.Last()
	for range chunks {
		p.sess.Push(string(make([]byte, chunkBytes)))
	}
	if transport != "tls" {
		s.wantLeft(stream.LeftWrite, 1)
	}
	p.settled()
	return p
}

// dial connects with a small receive buffer, so that it is the server that holds what waits.
func (p *slowPeer) dial(t *testing.T, s *server, transport string) *peer {
	t.Helper()
	ln := s.ln
	var server, client *tls.Config
	if transport == "tls" {
		plain, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server, client = tlsConfigs()
		ln = plain
		go func() { _ = s.ServeStreams(tls.NewListener(plain, server)) }()
	}
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<10) })
	}}
	c, err := d.Dial(ln.Addr().Network(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if p.raw, err = c.(syscall.Conn).SyscallConn(); err != nil {
		t.Fatal(err)
	}
	if transport == "tls" {
		c = tls.Client(c, client)
	}
	return &peer{t, c, s}
}

// settled waits until the server has given the socket all it takes, and returns how much that was.
func (p *slowPeer) settled() (sent int64) {
	p.t.Helper()
	for same := 0; same < 20; time.Sleep(5 * time.Millisecond) {
		now := p.s.Stats().BytesOut
		if same++; now != sent {
			same, sent = 0, now
		}
	}
	return sent
}

// arrived returns how many bytes the peer's system has for it.
func (p *slowPeer) arrived() (n int) {
	_ = p.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	return n
}

// TestASlowSubscriberStays for as long as it reads, however long that takes, and goes once it
// stops.
func TestASlowSubscriberStays(t *testing.T) {
	overEach(t, func(t *testing.T, p *slowPeer) {
		const step = 160 // frames: more than lies unsent, and much less than a socket of some megabytes holds
		for range 20 {
			before := p.s.Stats().BytesOut
			for range step {
				p.want(linktest.Stream, string(make([]byte, chunkBytes)))
			}
			kit.Until(t, "the server to send more", func() bool { return p.s.Stats().BytesOut > before })
			p.clock.Add(sendWithin / 2)
			time.Sleep(stream.TickEvery / 16) // the timers are looked at now and then
		}
		if got := p.s.Stats().Closed; got != (stream.Snapshot{}).Closed {
			t.Fatalf("closed %v", got)
		}
		kit.Until(t, "the one who stopped to be closed", func() bool {
			p.clock.Add(sendWithin / 100)
			return p.s.Stats().Closed[connection.ReasonWrite] == 1
		})
	})
}

// TestAReplyWaitsBehindLittle: at most one frame and 64 KiB of chunks stand before it, however many
// wait (kernel-ipc §2.5). What has come to the peer's system is the peer's own.
func TestAReplyWaitsBehindLittle(t *testing.T) {
	overEach(t, func(t *testing.T, p *slowPeer) {
		for range 3 {
			fed := p.fed.Load()
			p.send(linktest.Frame(linktest.Echo, "reply"))
			kit.Until(t, "the request to be taken", func() bool { return p.fed.Load() > fed })
			arrived := 0
			if p.c.LocalAddr().Network() != "unix" { // whose peer's system has all that was sent
				arrived = p.arrived()
			}
			before := 0
			for {
				cmd, body, err := linktest.Read(p.c)
				if err != nil {
					t.Fatal(err)
				}
				if cmd == linktest.Echo {
					break
				}
				before += linktest.HeaderBytes + 1 + len(body)
			}
			if most := connection.DefaultChunkBytes + linktest.HeaderBytes + 1 + chunkBytes; before-arrived > most {
				t.Errorf("the reply came behind %d bytes, of which %d had arrived; at most %d may be the server's", before, arrived, most)
			}
			p.settled()
		}
	})
}

// tlsConfigs returns the configurations of a server on 127.0.0.1 and of a client that trusts it.
func tlsConfigs() (server, client *tls.Config) {
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	return &tls.Config{Certificates: lender.TLS.Certificates}, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

package stream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

// dialSmall connects a TCP peer whose system takes next to nothing that its program has not read.
func dialSmall(t *testing.T, h *Host, book *linktest.Book, ln net.Listener) *peer {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	c, err := d.Dial(ln.Addr().Network(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{t, c, h, book}
}

const answerBytes = 300_000 // more than dialSmall's system takes, less than the server's

// TestLastAnswersOutliveLateBytes: closing a socket with unread bytes, or getting some later,
// resets it, and that costs the peer what is still under way.
func TestLastAnswersOutliveLateBytes(t *testing.T) {
	bye := func(p *peer) { p.send(linktest.Frame('c', "bye")) }
	drain := func(p *peer) { p.host.Drain() }
	f := func(name string, end func(*peer), wrap func(net.Listener) net.Listener, secure func(net.Conn) net.Conn) {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			h, book := newHost(t, nil)
			go func() { _ = h.ServeListener(wrap(ln)) }()
			p := dialSmall(t, h, book, ln)
			p.c = secure(p.c)
			p.send(linktest.Sized('b', answerBytes), linktest.Frame('e', "last"))
			kit.Until(t, "the answers to be sent", func() bool { return h.Snapshot().BytesOut > answerBytes })
			end(p)
			kit.Until(t, "the session to end", func() bool { return h.Gate.Open() == 0 })
			for range 40 { // much more than is ever dropped at once
				if _, err := p.c.Write(make([]byte, 32<<10)); err != nil {
					t.Fatalf("cannot send: %v", err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			p.wantPattern('b', answerBytes)
			p.want('e', "last")
			if rest, err := io.ReadAll(p.c); err != nil {
				t.Fatalf("after the answers: %d bytes, %v", len(rest), err)
			}
			_ = p.c.Close()
			kit.Until(t, "the connection to be closed", func() bool { return h.Gate.Lingering() == 0 })
		})
	}
	plain := func(ln net.Listener) net.Listener { return ln }
	as := func(c net.Conn) net.Conn { return c }
	f("the session closes", bye, plain, as)
	f("drain", drain, plain, as)
	server, client := tlsConfigs()
	client.ServerName = "127.0.0.1"
	under := func(ln net.Listener) net.Listener { return tls.NewListener(ln, server) }
	f("TLS", drain, under, func(c net.Conn) net.Conn { return tls.Client(c, client) })
}

// TestSlotsAreFreeWhileConnectionsLinger: a peer may come again at once, and those that do not take
// their answers keep no one out.
func TestSlotsAreFreeWhileConnectionsLinger(t *testing.T) {
	h, book, ln := listen(t, "tcp", func(c *Config) { c.MaxConnections, c.Refuse = 2, full })
	end := func(nth int64) *peer {
		t.Helper()
		p := dialSmall(t, h, book, ln)
		p.send(linktest.Sized('b', answerBytes), linktest.Frame('c', "bye"))
		kit.Until(
			t,
			"the slot to be free",
			func() bool { return h.Snapshot().Closed[connection.ReasonProtocol] == nth && h.Gate.Open() == 0 },
		)
		if n := h.Gate.Lingering(); n != int(min(nth, 2)) {
			t.Errorf("%d linger, of %d under a limit of 2", n, nth)
		}
		return p
	}
	lingering := []*peer{end(1), end(2)}
	end(3)
	p := dial(t, h, book, ln)
	p.send(linktest.Frame('e', "in"))
	p.want('e', "in")
	for _, p := range lingering {
		p.wantPattern('b', answerBytes)
		p.want('c', "bye")
		_ = p.c.Close()
	}
	kit.Until(t, "them to be closed", func() bool { return h.Gate.Lingering() == 0 })
}

// TestLingeringTakesItsTimeAtMost: from a peer that never takes its answers the socket is taken.
func TestLingeringTakesItsTimeAtMost(t *testing.T) {
	h, book, ln := listen(t, "tcp", func(c *Config) { c.Limits.SendWithin = int64(200 * time.Millisecond) })
	p := dialSmall(t, h, book, ln)
	p.send(linktest.Sized('b', answerBytes), linktest.Frame('c', "bye"))
	kit.Until(t, "the session to end", func() bool { return h.Snapshot().Closed[connection.ReasonProtocol] == 1 })
	kit.Until(t, "the time to be up", func() bool { return h.Gate.Lingering() == 0 })
}

// TestShutdownWaitsForLingering, but not longer than its grace.
func TestShutdownWaitsForLingering(t *testing.T) {
	f := func(name string, grace time.Duration, reads bool) {
		t.Run(name, func(t *testing.T) {
			h, book, ln := listen(t, "tcp", func(c *Config) { c.Limits.DrainWithin = int64(grace) })
			p := dialSmall(t, h, book, ln)
			p.send(linktest.Sized('b', answerBytes), linktest.Frame('e', "last"))
			kit.Until(t, "the answers to be sent", func() bool { return h.Snapshot().BytesOut > answerBytes })
			ended := make(chan error, 1)
			go func() { ended <- h.Shutdown(context.Background()) }()
			kit.Until(t, "the session to end", func() bool { return h.Gate.Open() == 0 })
			if reads {
				select {
				case <-ended:
					t.Fatal("Shutdown did not wait")
				case <-time.After(50 * time.Millisecond):
				}
				p.wantPattern('b', answerBytes)
				p.want('e', "last")
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if n := h.Gate.Lingering(); n != 0 {
				t.Errorf("%d still linger", n)
			}
		})
	}
	f("the peer reads", 20*time.Second, true)
	f("it does not", 100*time.Millisecond, false)
}

// TestAQuietPeerDoesNotKeepItsSocket: who has everything and stays is let go without being asked to
// end.
func TestAQuietPeerDoesNotKeepItsSocket(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		h, book, ln := listen(t, network, nil)
		p := dial(t, h, book, ln)
		p.send(linktest.Frame('c', "bye"))
		kit.Until(t, "the session to end", func() bool { return h.Snapshot().Closed[connection.ReasonProtocol] == 1 })
		kit.Until(t, "the socket to be closed", func() bool { return h.Gate.Lingering() == 0 })
		p.want('c', "bye")
	}
}

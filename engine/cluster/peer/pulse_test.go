package peer

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"trunkline/engine/connection"
)

// TestLatePieces: what was on its way for a term is used, and what took longer, or is dated later
// than now, is not. The time for which the service reads nothing does not count.
func TestLatePieces(t *testing.T) {
	const term = 100
	a := &arrivals{at: 1000}
	for clock, late := range map[int64]bool{1000 - term: false, 1000 - term - 1: true, 1000: false, 1001: true} {
		if a.late(clock, term) != late {
			t.Errorf("clock %d: late is %v", clock, !late)
		}
	}
	if a.kept = 50; a.late(1000-term-50, term) || !a.late(1000-term-51, term) {
		t.Error("the service is slow, and that counts")
	}
}

// TestDatedConnections: pieces of any length come whole, and the connection ends at one that is
// late.
func TestDatedConnections(t *testing.T) {
	ca, certs := authority(t)
	for name, secure := range map[string]*tls.Config{"clear": nil,
		"TLS": {Certificates: certs, RootCAs: ca, ClientCAs: ca, ClientAuth: tls.RequireAndVerifyClientCert,
			MinVersion: tls.VersionTLS13}} {
		t.Run(name, func(t *testing.T) { datedConnection(t, secure) })
	}
}

func datedConnection(t *testing.T, secure *tls.Config) {
	cfg := config("n1")
	cfg.Term, cfg.ServerTLS = time.Minute, secure
	s, addr := start(t, cfg)
	ln := s.Service("kernel", 2)
	from := config("n2")
	from.Term, from.ClientTLS = cfg.Term, secure
	d := NewDialer(&from)
	defer d.Close()
	c, err := d.Dial(t.Context(), addr, "kernel", 2, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	sent := make([]byte, 2*maxPiece+7)
	for i := range sent {
		sent[i] = byte(i * i >> 3)
	}
	go func() { _, _ = c.Write(sent) }()
	all := make([]byte, len(sent))
	if _, err := io.ReadFull(got, all); err != nil || string(all) != string(sent) {
		t.Errorf("%d bytes come otherwise: %v", len(sent), err)
	}
	answered := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(c)
		answered <- string(b)
	}()
	_, _ = got.Write([]byte("answer"))
	if err := got.(interface{ CloseWrite() error }).CloseWrite(); err != nil || <-answered != "answer" {
		t.Errorf("the answer comes otherwise: %v", err)
	}
	c.(*dated).pulse.clock.Store(connection.Mono() - 2*int64(cfg.Term))
	if _, err := c.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if n, err := got.Read(all); n != 0 || !errors.Is(err, errLate) {
		t.Errorf("a late piece: %d bytes, %v", n, err)
	}
}

// nodeOf is a node that answers handshakes by hand: serve has the version of each.
func nodeOf(t *testing.T, serve func(c net.Conn, version byte)) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			hello := make([]byte, len(magic)+versionBytes+lenBytes)
			_, _ = io.ReadFull(c, hello)
			_, _ = io.ReadFull(c, make([]byte, binary.BigEndian.Uint16(hello[len(magic)+versionBytes:])))
			serve(c, hello[len(magic)])
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-ended
	})
	return ln.Addr().String()
}

// TestEarlierVersion: a node that knows no dated connections gets one as before.
func TestEarlierVersion(t *testing.T) {
	addr := nodeOf(t, func(c net.Conn, version byte) {
		if version == ofDates {
			_ = c.Close()
			return
		}
		_, _ = c.Write([]byte{byte(accepted)})
		b := make([]byte, 4)
		_, _ = io.ReadFull(c, b)
		_, _ = c.Write(b)
	})
	cfg := config("n2")
	cfg.Term = time.Second
	d := NewDialer(&cfg)
	defer d.Close()
	for range 2 {
		c, err := d.Dial(t.Context(), addr, "kernel", 0, "x")
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4)
		_, _ = c.Write([]byte("ping"))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
			t.Errorf("the answer is %q, %v", b, err)
		}
		_ = c.Close()
	}
}

// TestSilentNode: connections to a node that is not heard for a term end.
func TestSilentNode(t *testing.T) {
	addr := nodeOf(t, func(c net.Conn, _ byte) {
		_, _ = c.Write(append([]byte{byte(accepted)}, make([]byte, clockBytes)...)) // the clock of a pulse, once
	})
	cfg := config("n2")
	cfg.Term = 50 * time.Millisecond
	d := NewDialer(&cfg)
	defer d.Close()
	c, err := d.Dial(t.Context(), addr, "kernel", 0, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.ReadFull(c, make([]byte, clockBytes))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection ends with %v", err)
	}
}

// TestStoppedProcess: a stop of a term is none; after a longer one nothing is dialled for two.
func TestStoppedProcess(t *testing.T) {
	d := &Dialer{cfg: &Config{Term: 100}}
	d.looked.Store(1000)
	for _, look := range []struct {
		at  int64
		may bool
	}{{1100, true}, {1201, false}, {1290, false}, {1380, false}, {1401, false}, {1402, true}} {
		if d.mayDial(look.at) != look.may {
			t.Errorf("at %d: it may dial is %v", look.at, !look.may)
		}
	}
}

package ipcclient

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/codec/frame"
)

// selfSigned makes a certificate for 127.0.0.1 and localhost, and the pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// serveTLS answers every request of one TLS connection with an empty map.
func serveTLS(t *testing.T, network, listen string, cert tls.Certificate) (addr string) {
	t.Helper()
	l, err := tls.Listen(network, listen, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		p := newPeer(t, nc)
		<-p.serve(func(req request) (frame.Type, string) {
			return frame.Response, `{"id":"` + req.ID + `","ok":true,"body":{}}`
		})
	}()
	t.Cleanup(func() {
		l.Close()
		<-stopped
	})
	return l.Addr().String()
}

func TestDialTLS(t *testing.T) {
	cert, pool := selfSigned(t)
	socket := t.TempDir() + "/s"
	serveTLS(t, "unix", socket, cert)
	for _, addr := range []string{serveTLS(t, "tcp", "127.0.0.1:0", cert), "unix://" + socket} {
		c, err := Dial(t.Context(), addr, WithTLS(&tls.Config{RootCAs: pool}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Call(t.Context(), "kernel", "X", nil); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		c.Close()
	}
}

func TestDialTLSChecksTheServer(t *testing.T) {
	cert, _ := selfSigned(t)
	_, err := Dial(t.Context(), serveTLS(t, "tcp", "127.0.0.1:0", cert), WithTLS(&tls.Config{RootCAs: x509.NewCertPool()}))
	var untrusted *tls.CertificateVerificationError
	var lost *ConnError
	if !errors.As(err, &untrusted) || !errors.As(err, &lost) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "cannot connect to "+lost.Addr+": cannot complete the TLS handshake: ") {
		t.Errorf("it said %s", text)
	}
}

func TestDialSaysThatThereWasNoConnection(t *testing.T) {
	f := func(addr, want string, reason error) {
		t.Helper()
		_, err := Dial(t.Context(), addr)
		var failed *ConnError
		if !errors.As(err, &failed) || !errors.Is(err, reason) || err.Error() != want {
			t.Errorf("Dial(%q) said %v, want %s", addr, err, want)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // no server answers there any more
	addr := l.Addr().String()
	f(addr, "cannot connect to "+addr+": connect: connection refused", syscall.ECONNREFUSED)
	path := "unix://" + t.TempDir() + "/s"
	f(path, "cannot connect to "+path+": connect: no such file or directory", syscall.ENOENT)
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts nothing: the handshake is never answered
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, l.Addr().String(), WithTLS(&tls.Config{}))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

// TestForeignPeers: the first bytes of other protocols are recognised, in an answer and by a probe.
func TestForeignPeers(t *testing.T) {
	f := func(answer string, want Foreign) {
		t.Helper()
		c, p := dialLoopback(t, "tcp", "127.0.0.1:0")
		reply := start(c, "Ping", t)
		p.want("kernel.Ping")
		p.raw([]byte(answer))
		p.nc.Close()
		var got Foreign
		err := (<-reply).err
		if errors.As(err, &got); got != want || want != "" && !errors.Is(err, ErrProtocol) || c.Heard() {
			t.Errorf("%q: %v, want %q", answer, err, want)
		}
	}
	f("HTTP/1.1 400 Bad Request\r\n\r\n", http)
	f("\x15\x03\x01\x00\x02\x02\x46", TLS)
	f(`{"ok":false}`+"\n", lines)
	f("SSH-2.0-x\r\n", "")
	f("", "")
}

func TestProbe(t *testing.T) {
	f := func(answer string, want Foreign) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			if line, err := bufio.NewReader(nc).ReadString('\n'); err != nil || line != "GET / HTTP/1.0\r\n" {
				t.Errorf("got %q, %v", line, err)
			}
			_, _ = io.WriteString(nc, answer)
		}()
		if got := Probe(t.Context(), l.Addr().String()); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
		l.Close()
		<-done
		if got := Probe(t.Context(), l.Addr().String()); got != "" {
			t.Errorf("nothing listens, and it speaks %q", got)
		}
	}
	f("HTTP/1.0 404 Not Found\r\n\r\n", http)
	f(`{"ok":false,"error":"invalid JSON"}`+"\n", lines)
	f("", "")
	f("\x00\x00\x00\x02\xff", "")
}

// TestProbeOfASilentPeer ends with its context.
func TestProbeOfASilentPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := Probe(ctx, l.Addr().String()); got != "" {
		t.Errorf("silence is %q", got)
	}
}

package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// certificate returns both sides of TLS.
func certificate() (server, client *tls.Config) {
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	srv.Close() // only its certificate is used
	return &tls.Config{Certificates: srv.TLS.Certificates}, &tls.Config{InsecureSkipVerify: true}
}

// secure connects over TLS.
func secure(t *testing.T, addr string, trust *tls.Config) *wire {
	t.Helper()
	nc, err := tls.Dial("tcp4", addr, trust)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &wire{t, nc, bufio.NewReader(nc)}
}

// TestTLS has clients over TLS, whose nodes speak TLS too.
func TestTLS(t *testing.T) {
	server, trust := certificate()
	c := setUp(t, setup{partitions: 3, secure: server, trust: trust})
	w, l := tls.NewListener(listen(t), server), tls.NewListener(listen(t), server)
	var tasks sync.WaitGroup
	t.Cleanup(tasks.Wait)
	tasks.Go(func() { _ = c.web.Serve(w) })
	tasks.Go(func() { _ = c.lines.Serve(l) })
	t.Cleanup(func() { _, _ = w.Close(), l.Close() })

	p := secure(t, w.Addr().String(), trust)
	for range 3 {
		for partition := range 3 {
			p.served(partition)
		}
	}
	if n := c.dials(); n != 3 {
		t.Errorf("%d dials", n)
	}
	p.unfinished(1)
	_ = p.Conn.(*tls.Conn).CloseWrite()
	if a, closes := p.answer("POST"); !strings.Contains(a, "the body cannot be read to its end") || !closes {
		t.Error(a)
	}

	p = secure(t, l.Addr().String(), trust)
	_, _ = io.WriteString(p, authLine(bearerOf("lead", three[1], "coordinator"))+strings.Repeat(ping, 1000)+"x")
	_ = p.Conn.(*tls.Conn).CloseWrite()
	p.want(`{"id":0,"ok":true`)
	if rest := p.rest(); rest != strings.Repeat(pinged, 1000) {
		t.Errorf("%d bytes", len(rest))
	}
	p = secure(t, l.Addr().String(), trust)
	_, _ = io.WriteString(p, authLine(bearerOf("lead", three[2], "coordinator")))
	p.want(`{"id":0,"ok":true`)
	c.lose(2)
	p.ends()
}

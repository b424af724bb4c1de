package httpd

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
)

// TestUnsentIsWhatThePeerDidNotRead: of an answer larger than all buffers, until it is read.
func TestUnsentIsWhatThePeerDidNotRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a socket has is known on Linux")
	}
	const size = 32 << 20
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	book := NewBook("http", "web")
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = w.Write(make([]byte, size))
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(book.Limit(ln, 2)) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	await := func(what string, met func(row *obs.Connection) bool) {
		t.Helper()
		rows := book.Connections(nil)
		for deadline := time.Now().Add(20 * time.Second); len(rows) != 1 || !met(&rows[0]); rows = book.Connections(nil) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, rows)
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("nothing is unsent", func(row *obs.Connection) bool { return row.UnsentBytes > 0 })
	if _, err := io.CopyN(io.Discard, c, size); err != nil {
		t.Fatal(err)
	}
	await("something stays unsent", func(row *obs.Connection) bool { return row.UnsentBytes == 0 })
	_ = c.Close()
	_ = srv.Close()
	<-served
}

// TestBook follows one connection of an HTTP server through a request.
func TestBook(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	book := NewBook("http", "web")
	begun, release := make(chan bool), make(chan bool)
	srv := &http.Server{ConnContext: with, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, began := Peer(r.Context())
		if p.Name() != "web-1" || p.Remote() != r.RemoteAddr || began <= 0 {
			t.Errorf("a request came from %s %s at %d", p.Name(), p.Remote(), began)
		}
		begun <- true
		<-release
		fmt.Fprint(w, "answer")
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(book.Limit(ln, 2)) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	_, _ = io.WriteString(c, request)
	<-begun
	row := book.Connections(nil)[0]
	if row.ID != "web-1" || row.Protocol != "http" || row.Listener != ln.Addr().String() || row.Peer != c.LocalAddr().String() ||
		row.BytesIn != int64(len(request)) || row.BytesOut != 0 || row.InFlight != 1 || row.State != "open" || row.AgeSeconds < row.IdleSeconds {
		t.Errorf("%+v", row)
	}
	release <- true
	reply := make([]byte, 4096)
	n, _ := c.Read(reply)
	if !strings.HasSuffix(string(reply[:n]), "answer") {
		t.Fatalf("the reply is %q", reply[:n])
	}
	for row = book.Connections(nil)[0]; row.InFlight != 0; row = book.Connections(nil)[0] {
		time.Sleep(time.Millisecond)
	}
	if row.BytesOut != int64(n) {
		t.Errorf("%+v after %d bytes", row, n)
	}
	_ = c.Close()
	_ = srv.Close()
	<-served
	if open, in, out := book.Totals(); open != 0 || in != int64(len(request)) || out != int64(n) {
		t.Errorf("%d open, %d bytes in, %d out after the end", open, in, out)
	}
	if rows := book.Connections(nil); len(rows) != 0 {
		t.Errorf("%+v are open after the end", rows)
	}
	if p, began := Peer(t.Context()); p != nil || began <= 0 {
		t.Errorf("%v at %d without a connection", p, began)
	}
}

// TestDrop: the connection of a name is closed under its request, also over TLS.
func TestDrop(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) { lookAtDrop(t, secure) })
	}
}

func lookAtDrop(t *testing.T, secure bool) {
	begun, gone := make(chan bool, 2), make(chan bool)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		if r.URL.Path == "/wait" {
			<-r.Context().Done()
			gone <- true
		}
	}))
	book := NewBook("http", "web")
	client := http.DefaultClient
	if secure {
		srv.TLS = new(tls.Config)
		srv.StartTLS()
		srv.Close() // only its certificate is used
		client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme, inner := "http://", net.Listener(ln)
	if secure {
		scheme, inner = "https://", tls.NewListener(ln, &tls.Config{Certificates: srv.TLS.Certificates})
	}
	web := &http.Server{Handler: srv.Config.Handler, ConnContext: with}
	served := make(chan error, 1)
	go func() { served <- web.Serve(book.Limit(inner, 3)) }()
	failed := make(chan error, 1)
	go func() {
		resp, err := client.Get(scheme + ln.Addr().String() + "/wait")
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-begun
	id := book.Connections(nil)[0].ID
	if book.Drop("web-9") || book.Drop("http-1") || !book.Drop(id) || book.Drop(id) {
		t.Error("another connection was dropped, or this one was not")
	}
	<-gone
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	if rows := book.Connections(nil); len(rows) != 0 {
		t.Errorf("%+v are open", rows)
	}
	client.CloseIdleConnections()
	_ = web.Close()
	<-served
}

package exchange

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTLS shows that the stand-ins for net/http's own answers sit above the encryption (kernel-ipc
// D41: TLS beyond loopback).
func TestTLS(t *testing.T) {
	lender := httptest.NewTLSServer(nil)
	certs := lender.TLS.Certificates
	lender.Close()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(newEngine(), HTTPConfig{}.withDefaults())
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: certs}))
	}()
	addr := ln.Addr().String()

	c, err := tls.Dial("tcp4", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	f := func(request string, status int) {
		t.Helper()
		if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/json" || resp.ContentLength < 1 {
			t.Errorf("%q: %d %v", request, resp.StatusCode, resp.Header)
		}
	}
	f("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: 18\n\n"+`{"raw_input":"hi"}`, 200)
	f("POST / HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}", 404)
	f("malformed\n\n", 400)
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the connection ended with %v", err)
	}

	plain := dial(t, addr)
	plain.post(hi)
	_, _ = io.Copy(io.Discard, plain) // an alert, then the end

	c.Close()
	plain.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

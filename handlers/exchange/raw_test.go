package exchange

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMalformedHTTP is about what net/http refuses before any handler: the answers must be error
// objects all the same.
func TestMalformedHTTP(t *testing.T) {
	s, addr := start(t, HTTPConfig{}, nil)
	n := uint64(0)
	f := func(request string, status int) {
		t.Helper()
		p := dial(t, addr)
		p.write("%s", strings.ReplaceAll(request, "\n", "\r\n"))
		p.wantHangUp(request, p.wantError(request, status, "bad_request"))
		if n++; s.Stats().Requests[status/100] == 0 {
			t.Errorf("%q was not counted", request)
		}
	}
	const post = "POST /api/v1/process HTTP/1.1\n"
	f("garbage\n\n", 400)
	f("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400)
	f(post+"\n", 400)                              // no Host
	f(post+"Host: a b\n\n", 400)                   // not a host
	f(post+"Host: x\nNo colon\n\n", 400)           // not a field
	f(post+"Host: x\nBad Name: 1\n\n", 400)        // not a name
	f(post+"Host: x\nX: a\x01b\n\n", 400)          // not a value
	f(post+"Host: x\nContent-Length: -1\n\n", 400) // not a length
	f(post+"Host: x\nContent-Length: 1\nContent-Length: 2\n\n", 400)
	f("POST /%zz HTTP/1.1\nHost: x\n\n", 400)
	f("POST / HTTP/x\nHost: x\n\n", 400)
	f("PRI * HTTP/2.0\n\nSM\n\n", 400)
	f("POST /api/v1/process HTTP/2.0\nHost: x\n\n", http.StatusHTTPVersionNotSupported)
	f(post+"Host: x\nTransfer-Encoding: gzip\n\n", http.StatusNotImplemented)
	f(post+"Host: x\nExpect: miracles\nContent-Length: 2\n\n{}", http.StatusExpectationFailed)
	f(post+"Host: x\nTransfer-Encoding: chunked\n\nzz\n", 400) // not a chunk
	f(post+"Host: x\nTransfer-Encoding: chunked\n\n1\nabc\n", 400)
	st := s.Stats()
	if st.Requests != [6]uint64{4: n - 2, 5: 2} {
		t.Errorf("%+v", st)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	p.write("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: 100\n\n{}")
	p.CloseWrite()
	p.wantHangUp("half a body", p.wantError("half a body", 400, "bad_request"))
}

func TestHeaderLimit(t *testing.T) {
	const limit = 1 << 10
	s, addr := start(t, HTTPConfig{MaxHeaderBytes: limit}, nil)
	f := func(n int) *peer {
		t.Helper()
		p := dial(t, addr)
		host, length := "Host: x\r\n", "Content-Length: 18\r\n"
		fill := "X-Fill: " + strings.Repeat("a", n-len(host)-len(length)-len("X-Fill: \r\n")) + "\r\n"
		p.write("POST /api/v1/process HTTP/1.1\n%s%s%s\n%s", host, length, fill, `{"raw_input":"hi"}`)
		return p
	}
	f(limit).wantEnvelope("at the limit", "perception")
	for _, n := range []int{limit + 1, limit + 4000, limit + 5000, 100 * limit} { // net/http answers the larger ones
		p := f(n)
		p.wantHangUp("over the limit", p.wantError("over the limit", 431, "headers_too_large"))
	}
	if st := s.Stats(); st.Requests != [6]uint64{2: 1, 4: 4} {
		t.Errorf("%+v", st)
	}
}

func TestBodyLimit(t *testing.T) {
	const limit = 1 << 10
	_, addr := start(t, HTTPConfig{MaxBodyBytes: limit}, nil)
	body := func(n int) string { return `{"raw_input":"` + strings.Repeat("x", n-16) + `"}` }
	p := dial(t, addr)
	chunked := func(b string) {
		p.write("POST /api/v1/process HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n%x\n%s\n%x\n%s\n0\n\n", len(b)/2, b[:len(b)/2], len(b)-len(b)/2, b[len(b)/2:])
	}
	p.post(body(limit))
	p.wantEnvelope("at the limit", "perception")
	chunked(body(limit))
	p.wantEnvelope("at the limit, chunked", "perception")
	chunked(body(limit + 1))
	p.wantHangUp("chunked", p.wantError("one more, chunked", 413, "too_large"))
	p = dial(t, addr)
	p.post(body(limit + 1))
	p.wantHangUp("length", p.wantError("one more", 413, "too_large"))
	p = dial(t, addr)
	p.write("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: %d\n\n", limit+1)
	p.wantHangUp("before the body", p.wantError("before the body", 413, "too_large"))
}

// TestLargeBodyStillGetsItsAnswer is about a client that sends all of its body before it reads:
// closing at once would reset the connection under it.
func TestLargeBodyStillGetsItsAnswer(t *testing.T) {
	_, addr := start(t, HTTPConfig{MaxBodyBytes: 100}, nil)
	text := strings.Repeat("x", 12<<20)
	p := dial(t, addr)
	p.post(text)
	p.wantHangUp("12 MiB", p.wantError("12 MiB", 413, "too_large"))
	p = dial(t, addr)
	p.write("POST / HTTP/1.1\nHost: x\nContent-Length: %d\n\n%s", len(text), text)
	p.wantHangUp("12 MiB to nowhere", p.wantError("12 MiB to nowhere", 404, "not_found"))
	p = dial(t, addr)
	p.write("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n%x\n%s\n0\n\n", len(text), text)
	p.wantHangUp("12 MiB chunked", p.wantError("12 MiB chunked", 404, "not_found"))
}

func TestBodyTimeout(t *testing.T) {
	_, addr := start(t, HTTPConfig{ReadBodyTimeout: 20 * time.Millisecond}, nil)
	p := dial(t, addr)
	p.write("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: 10\n\n{")
	p.wantHangUp("slow", p.wantError("slow", 408, "timeout"))
	p = dial(t, addr)
	p.write("POST /api/v1/process HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n1\n{\n")
	p.wantHangUp("slow chunks", p.wantError("slow chunks", 408, "timeout"))
	p = dial(t, addr)
	p.write("POST /nowhere HTTP/1.1\nHost: x\nContent-Length: 10\n\n{")
	p.wantHangUp("slow to nowhere", p.wantError("slow to nowhere", 404, "not_found"))
}

// TestTheBodyTimeoutEndsWithTheBody: what comes after the body has its own time.
func TestTheBodyTimeoutEndsWithTheBody(t *testing.T) {
	_, addr := start(t, HTTPConfig{ReadBodyTimeout: 150 * time.Millisecond}, nil)
	p := dial(t, addr)
	p.wantOpen("first")
	time.Sleep(300 * time.Millisecond)
	p.wantOpen("after twice the timeout")
}

func TestHeaderTimeout(t *testing.T) {
	s, addr := start(t, HTTPConfig{ReadHeaderTimeout: 100 * time.Millisecond}, nil)
	for _, head := range []string{"P", "POST /api", "POST /api/v1/process HTTP/1.1\n", "POST /api/v1/process HTTP/1.1\nHost: x\nConte"} {
		p := dial(t, addr)
		p.write(head)
		p.wantHangUp(head, p.wantError(head, 408, "timeout"))
		p = dial(t, addr)
		p.wantOpen("first")
		p.write(head + strings.Repeat("x", 4)) // net/http waits for four bytes before the time begins
		p.wantHangUp(head, p.wantError(head, 408, "timeout"))
	}
	dial(t, addr).wantClosed("nothing sent")
	if st := s.Stats(); st.Requests != [6]uint64{2: 4, 4: 8} {
		t.Errorf("%+v", st)
	}
}

func TestIdleTimeoutSaysNothing(t *testing.T) {
	_, addr := start(t, HTTPConfig{IdleTimeout: 30 * time.Millisecond}, nil)
	p := dial(t, addr)
	p.wantOpen("first")
	p.wantClosed("idle")
}

func TestExpectContinue(t *testing.T) {
	_, addr := start(t, HTTPConfig{MaxBodyBytes: 100}, nil)
	ask := func(target, kind string, length int) *peer {
		p := dial(t, addr)
		p.write("POST %s HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Type: %s\nContent-Length: %d\n\n", target, kind, length)
		return p
	}
	p := ask(path, "application/json", 18)
	if line, err := p.in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = p.in.ReadString('\n')
	p.write("%s", `{"raw_input":"hi"}`)
	p.wantEnvelope("continued", "perception")
	p.wantOpen("continued")

	p = ask(path, "application/json", 101)
	p.wantHangUp("too large", p.wantError("too large", 413, "too_large"))
	// Whether the body follows is the peer's choice: the connection cannot go on.
	p = ask("/", "application/json", 18)
	p.wantHangUp("nowhere", p.wantError("nowhere", 404, "not_found"))
	p = ask(path, "text/plain", 18)
	p.wantHangUp("text", p.wantError("text", 415, "unsupported_media_type"))
}

func TestHTTP10(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	p.write("POST /api/v1/process HTTP/1.0\nConnection: keep-alive\nContent-Length: %d\n\n%s", len(hi), hi)
	p.wantEnvelope("kept", "perception")
	p.write("POST /api/v1/process HTTP/1.0\nContent-Length: %d\n\n%s", len(hi), hi)
	p.wantEnvelope("last", "perception")
	p.wantClosed("HTTP/1.0")
}

func TestPipelinedRequests(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	p.write(strings.Repeat("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: 18\n\n"+`{"raw_input":"hi"}`, 3) + "GET / HTTP/1.1\nHost: x\n\n")
	for range 3 {
		p.wantEnvelope("pipelined", "perception")
	}
	p.wantError("pipelined", 404, "not_found")
	p.post(`{"raw_input":"hi"}`)
	p.write("junk\n\n")
	p.wantEnvelope("before junk", "perception")
	p.wantHangUp("junk", p.wantError("junk", 400, "bad_request"))
}

func TestClientsWish(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	p.write("POST /api/v1/process HTTP/1.1\nHost: x\nConnection: close\nContent-Length: 18\n\n" + `{"raw_input":"hi"}`)
	p.wantHangUp("close", p.wantEnvelope("close", "perception"))
}

func TestParseFixedTakesNothingElse(t *testing.T) {
	for _, s := range []string{
		"", "HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "HTTP/1.1 100 Continue\r\n\r\n",
		`HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nx`,
		"HTTP/1.1 4x0 " + textHeaders,
	} {
		if _, _, fixed := parseFixed([]byte(s)); fixed {
			t.Errorf("%q is taken for an answer of net/http", s)
		}
	}
}

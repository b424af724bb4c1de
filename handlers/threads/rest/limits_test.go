package rest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

func TestBodyLimit(t *testing.T) {
	s := start(t, Config{})
	const limit = 1 << 20
	full := `{"body":"` + strings.Repeat("x", limit-11) + `"}`
	chunked := func(body string) string {
		half := len(body) / 2
		return "POST /v1/post_message HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n" +
			strconv.FormatInt(int64(half), 16) + "\n" + body[:half] + "\n" + strconv.FormatInt(int64(len(body)-half), 16) + "\n" + body[half:] + "\n0\n\n"
	}
	p := s.dial(t)
	for _, request := range []string{post("/v1/post_message", "", full), chunked(full), chunked("{}"), post("/v1/post_message", "", "{}")} {
		p.write(request)
		p.want("at the limit", 200)
	}
	if calls, _ := s.taken(); len(calls) != 4 || !strings.HasSuffix(calls[1], " 1048576 bytes") {
		t.Errorf("%q", calls)
	}
	f := func(why, request, code string, status int) {
		t.Helper()
		p := s.dial(t)
		p.write(request)
		r, _ := p.wantError(why, status, code)
		p.wantClosed(why, r)
	}
	big := strings.Repeat("x", 2<<20)
	f("one more", post("/v1/post_message", "", full+" "), "VALIDATION_ERROR", 413)
	f("one more, chunked", chunked(full+" "), "VALIDATION_ERROR", 413)
	f("one more, legacy", post("/v1/mcp/post_message", "", full+" "), "INVALID_ARGUMENT", 413)
	f("2 MiB", post("/v1/post_message", "", big), "VALIDATION_ERROR", 413)
	f("2 MiB, bad token", strings.Replace(post("/v1/post_message", "", big), "good", "bad", 1), "UNAUTHORIZED", 401)
	f("2 MiB to nowhere", post("/nope", "", big), "NOT_FOUND", 404)
	f("2 MiB announced", "POST /v1/post_message HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Type: application/json\nContent-Length: 2097152\n\n", "VALIDATION_ERROR", 413)
	f("2 MiB announced, bad token", "POST /v1/post_message HTTP/1.1\nHost: x\nContent-Length: 2097152\n\n", "UNAUTHORIZED", 401)
	if calls, _ := s.taken(); len(calls) > 0 {
		t.Errorf("%q", calls)
	}
	// The length of a chunked body is not known when the answer is sent.
	p = s.dial(t)
	p.write(strings.Replace(chunked(big), "good", "bad", 1))
	p.wantError("2 MiB chunked, bad token", 401, "UNAUTHORIZED")
	p.wantEnd("2 MiB chunked, bad token")
}

// TestRefusalsDoNotWaitForTheBody sends the body, and what follows it, only after the answer.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	for _, line := range []string{"POST /v1/get_thread", "POST /nope", "GET /health"} {
		p.write(line + " HTTP/1.1\nHost: x\nContent-Length: 4\n\n")
		if r := p.read(line, http.MethodPost); r.Close {
			t.Error(r.raw)
		}
		p.write("abcd")
		p.wantOpen(line)
	}
}

func TestExpectContinue(t *testing.T) {
	s := start(t, Config{})
	const head = "POST /v1/get_thread HTTP/1.1\nHost: x\nContent-Type: application/json\nExpect: 100-continue\nContent-Length: 2\n"
	p := s.dial(t)
	p.write(head + "Authorization: Bearer bad\n\n")
	r, _ := p.wantError("bad token", 401, "UNAUTHORIZED")
	p.wantClosed("bad token", r)
	p = s.dial(t)
	p.write(strings.Replace(head, "application/json", "text/plain", 1) + "Authorization: Bearer good\n\n")
	r, _ = p.wantError("media type", 415, "VALIDATION_ERROR")
	p.wantClosed("media type", r)
	p = s.dial(t)
	p.write(head + "Authorization: Bearer good\n\n")
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	b := make([]byte, len(goOn))
	if _, err := io.ReadFull(p.in, b); string(b) != goOn || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	p.write("{}")
	p.want("good token", 200)
	p.wantOpen("good token")
}

func TestBodyTimeout(t *testing.T) {
	s := start(t, Config{Limits: Limits{BodyTimeout: 20 * time.Millisecond}})
	f := func(why, request, code string, status int) {
		t.Helper()
		p := s.dial(t)
		p.write(request)
		p.wantError(why, status, code)
		p.wantEnd(why)
	}
	const head = " HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Type: application/json\n"
	f("slow", "POST /v1/get_thread"+head+"Content-Length: 10\n\n{", "VALIDATION_ERROR", 408)
	f("slow, legacy", "POST /v1/mcp/get_thread"+head+"Content-Length: 10\n\n{", "INVALID_ARGUMENT", 408)
	f("slow chunks", "POST /v1/get_thread"+head+"Transfer-Encoding: chunked\n\n1\n{\n", "VALIDATION_ERROR", 408)
	f("refused and slow", "POST /nope"+head+"Content-Length: 10\n\n{", "NOT_FOUND", 404)
	if calls, _ := s.taken(); len(calls) > 0 {
		t.Errorf("%q", calls)
	}
}

// TestHalfABody ends the body early, or breaks its chunks.
func TestHalfABody(t *testing.T) {
	s := start(t, Config{})
	const head = " HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Type: application/json\n"
	p := s.dial(t)
	p.write("POST /v1/get_thread" + head + "Content-Length: 10\n\n{")
	_ = p.Conn.(*net.TCPConn).CloseWrite()
	r, _ := p.wantError("half", 400, "VALIDATION_ERROR")
	p.wantClosed("half", r)
	p = s.dial(t)
	p.write("POST /v1/get_thread" + head + "Transfer-Encoding: chunked\n\nzz\n" + post("/v1/get_thread", "", "{}"))
	r, _ = p.wantError("no chunk", 400, "VALIDATION_ERROR")
	p.wantClosed("no chunk", r)
	p = s.dial(t)
	p.write("POST /nope" + head + "Transfer-Encoding: chunked\n\nzz\n" + post("/v1/get_thread", "", "{}"))
	p.wantError("refused, and no chunk", 404, "NOT_FOUND")
	p.wantEnd("refused, and no chunk")
	if calls, _ := s.taken(); len(calls) > 0 {
		t.Errorf("%q", calls)
	}
}

func TestHeaderAndIdleTimeouts(t *testing.T) {
	s := start(t, Config{Limits: Limits{HeaderTimeout: 20 * time.Millisecond, IdleTimeout: 20 * time.Millisecond}})
	p := s.dial(t)
	p.write("POST /v1/get_thread HTTP/1.1\nHost: x\nConte")
	p.wantClosed("headers", p.want("headers", 400))
	p = s.dial(t)
	p.wantEnd("nothing sent")
	p = s.dial(t)
	p.write("GET /health HTTP/1.1\nHost: x\n\n")
	p.want("idle", 200)
	p.wantEnd("idle")
}

// TestWriteTimeout leaves a large answer unread.
func TestWriteTimeout(t *testing.T) {
	log := lines{written: make(chan struct{}, 1)}
	s := start(t, Config{Limits: Limits{WriteTimeout: 50 * time.Millisecond},
		Surface: method.Surface{Logger: log.logger(slog.LevelDebug)}})
	s.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		return append(dst, make([]byte, 64<<20)...), method.Outcome{}
	}
	p := s.dial(t)
	p.write(post("/v1/read_messages", "", "{}"))
	<-log.written // the server gave up
	if n, err := io.Copy(io.Discard, p.in); n >= 64<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestHeaderLimit(t *testing.T) {
	s := start(t, Config{})
	f := func(n int) (*peer, reply) {
		t.Helper()
		p := s.dial(t)
		text := "Host: x\r\nX: "
		p.write("GET /health HTTP/1.1\nHost: x\nX: " + strings.Repeat("a", n-len(text)-2) + "\n\n")
		return p, p.read(strconv.Itoa(n), http.MethodGet)
	}
	p, r := f(32 << 10)
	if r.StatusCode != 200 {
		t.Error(r.raw)
	}
	p.wantOpen("at the limit")
	for _, n := range []int{32<<10 + 1, 35 << 10, 40 << 10, 200 << 10} { // net/http answers the larger ones
		p, r := f(n)
		if r.StatusCode != 431 || r.body != "431 Request Header Fields Too Large" {
			t.Error(r.raw)
		}
		p.wantClosed("over the limit", r)
	}
}

// TestMalformedHTTP checks that the answers of net/http end the connection.
func TestMalformedHTTP(t *testing.T) {
	s := start(t, Config{})
	f := func(text string, status int) {
		t.Helper()
		p := s.dial(t)
		p.write(text)
		p.wantClosed(text, p.want(text, status))
	}
	f("garbage\n\n", 400)
	f("POST /v1/get_thread HTTP/1.1\n\n", 400) // no Host
	f("POST /v1/get_thread HTTP/1.1\nHost: x\nContent-Length: -1\n\n", 400)
	f("POST /v1/get_thread HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2\n\n", 400)
	f("POST /%zz HTTP/1.1\nHost: x\n\n", 400)
	f("POST /v1/get_thread HTTP/2.0\nHost: x\n\n", 505)
	f("POST /v1/get_thread HTTP/1.1\nHost: x\nTransfer-Encoding: gzip\n\n", 501)
	f("POST /v1/get_thread HTTP/1.1\nHost: x\nExpect: miracles\nContent-Length: 2\n\n{}", 417)
}

func TestConnectionLimit(t *testing.T) {
	s := start(t, Config{Limits: Limits{Connections: 1}})
	first, second := s.dial(t), s.dial(t)
	first.wantOpen("first")
	second.write("GET /health HTTP/1.1\nHost: x\n\n")
	_ = second.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := second.in.Peek(1); err == nil {
		t.Error("a connection over the limit was served")
	}
	_ = second.SetReadDeadline(time.Now().Add(20 * time.Second))
	first.Close()
	second.want("second", 200)
}

func TestFailedAuthenticationsAreLimited(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	bad := strings.Replace(post("/v1/get_thread", "", "{}"), "good", "bad", 1)
	for range token.DefaultFailures {
		p.write(bad)
		p.wantError("within the limit", 401, "UNAUTHORIZED")
	}
	if _, refused := s.taken(); len(refused) != token.DefaultFailures {
		t.Errorf("%d refusals for the audit", len(refused))
	}
	s.pass(8500 * time.Millisecond)
	for _, request := range []string{bad, "POST /v1/nope HTTP/1.1\nHost: x\n\n", bad} {
		p = s.dial(t) // the port does not count
		p.write(request)
		r, e := p.wantError("over the limit", 429, "RATE_LIMITED")
		if r.Header.Get("Retry-After") != "2" || string(e.Error.Details) != `{"retry_after_ms":1500}` || r.Header["Www-Authenticate"] != nil {
			t.Errorf("%v %s", r.Header, e.Error.Details)
		}
		p.wantOpen("over the limit")
	}
	if _, refused := s.taken(); len(refused) != 0 {
		t.Errorf("refused %q: the audit is about 401 and 403", refused)
	}
	p.write(post("/v1/get_thread", "", "{}"))
	p.want("a good token of a limited peer", 200)
	p.write(strings.Replace(bad, "bad", "nokeys", 1))
	p.wantError("no fault of the peer", 503, "INTERNAL")
	s.pass(1500 * time.Millisecond)
	p.write(bad)
	p.wantError("in the next window", 401, "UNAUTHORIZED")
}

// TestShutdownFinishesWhatRuns stops the server while a request waits in the dispatcher.
func TestShutdownFinishesWhatRuns(t *testing.T) {
	s := start(t, Config{})
	in, out := make(chan struct{}), make(chan struct{})
	s.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		close(in)
		<-out
		return append(dst, "{}"...), method.Outcome{}
	}
	p := s.dial(t)
	p.write(post("/v1/get_thread", "", "{}") + post("/v1/get_thread", "", "{}"))
	<-in
	done := make(chan error, 1)
	stopping := make(chan struct{}, 2)
	s.HTTP.RegisterOnShutdown(func() { stopping <- struct{}{} }) // after the listeners are closed
	go func() { done <- s.Shutdown(context.Background()) }()
	<-stopping
	if c, err := net.Dial("tcp4", s.addr); err == nil {
		c.Close()
		t.Error("a connection was accepted after the listener's end")
	}
	close(out)
	p.want("in flight", 200)
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = p.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := io.Copy(io.Discard, p.in); n > 0 || err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	s := start(t, Config{})
	in, out := make(chan struct{}), make(chan struct{})
	s.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		close(in)
		<-out
		return dst, method.Outcome{}
	}
	p := s.dial(t)
	p.write(post("/v1/get_thread", "", "{}"))
	<-in
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(out)
}

// TestAStoppingServerRefuses looks at the answers between the mark and the end of a connection.
func TestAStoppingServerRefuses(t *testing.T) {
	s := start(t, Config{})
	s.Draining.Store(true)
	p := s.dial(t)
	p.write(post("/v1/get_thread", "", "{}"))
	r, e := p.wantError("method", 503, "INTERNAL")
	if r.Header.Get("Retry-After") != "1" || !e.Error.Retryable {
		t.Errorf("%v", r.Header)
	}
	p.write("GET /ready HTTP/1.1\nHost: x\n\n")
	p.want("ready", 503)
	p.write("GET /health HTTP/1.1\nHost: x\n\n")
	p.want("health", 200)
	if calls, _ := s.taken(); !slices.Equal(calls, nil) {
		t.Errorf("%q", calls)
	}
}

// TestPendingBytes: bodies and answers of all connections together are bounded. What one request
// holds is free once it is answered, or once its connection is gone.
func TestPendingBytes(t *testing.T) {
	const most = 512 << 10 // a body of 300 KiB takes this much while it is read
	s := start(t, Config{Surface: method.Surface{Pending: method.NewBudget(most)}})
	body := `{"body":"` + strings.Repeat("x", 300<<10) + `"}`
	request := post("/v1/post_message", "", body)
	slow := s.dial(t)
	slow.write(request[:len(request)-1])
	waitFor(t, func() bool { return !room(s.cfg.Pending, 100<<10) })
	other := s.dial(t)
	other.write(post("/v1/get_thread", "", "{}"))
	other.want("a small one beside it", 200)
	other.write(request)
	r, _ := other.wantError("one too many", 503, "INTERNAL")
	other.wantClosed("one too many", r)
	slow.write(request[len(request)-1:])
	slow.want("the first one", 200)
	waitFor(t, func() bool { return room(s.cfg.Pending, most) })
	slow.write(request[:len(request)-1])
	waitFor(t, func() bool { return !room(s.cfg.Pending, 100<<10) })
	slow.Close()
	waitFor(t, func() bool { return room(s.cfg.Pending, most) })
}

// room reports whether a request with so many bytes would fit.
func room(b *method.Budget, bytes int) bool {
	var held int
	defer b.Free(&held)
	return b.Fit(&held, bytes)
}

// waitFor waits until done.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

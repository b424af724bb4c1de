package rest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/threads/method"
)

// echo is a dispatcher that keeps nothing.
type echo struct{}

func (echo) Call(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
	return append(dst, `{"ok":true}`...), method.Outcome{}
}
func (echo) Await(uint64) error                            { return nil }
func (echo) Refused(*method.Caller, string, *method.Fault) {}

// fuzzBody is the limit of bodies in FuzzHTTP.
const fuzzBody = 1000

// asked is one request as the model reads it.
type asked struct {
	method   string
	complete bool // the body is there
	cut      bool // the connection may end behind the answer without an announcement
}

// requestsOf reads the requests of a connection one after the other.
func requestsOf(data []byte) (out []asked, rest bool) {
	in := bufio.NewReader(bytes.NewReader(data))
	last := ""
	for {
		if last == http.MethodPost { // net/http skips line ends behind a body
			for range 4 {
				if b, err := in.Peek(1); err == nil && (b[0] == '\r' || b[0] == '\n') {
					_, _ = in.Discard(1)
				} else {
					break
				}
			}
		}
		r, err := http.ReadRequest(in)
		if err != nil {
			return out, err != io.EOF
		}
		last = r.Method
		n, err := io.Copy(io.Discard, r.Body)
		out = append(out, asked{method: r.Method, complete: err == nil, cut: err != nil || n > fuzzBody})
		if err != nil {
			return out, false
		}
	}
}

// FuzzHTTP sends arbitrary bytes over a connection: each complete request gets one answer, in
// order, until an answer ends the connection.
func FuzzHTTP(f *testing.F) {
	good := post("/v1/get_thread", "", "{}")
	for _, seed := range []string{good, good + good, post("/v1/mcp/ack_read", "X-Request-Id: a\nX-Error-Dialect: spec\n", "\xef\xbb\xbf{}"),
		strings.Replace(good, "good", "bad", 1) + good, "GET /health HTTP/1.1\nHost: x\n\nHEAD /metrics HTTP/1.0\n\n", "GET /v1/audit HTTP/1.1\nHost: x\n\n",
		"POST /nope HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n3;a=b\nabc\n0\nT: v\n\n" + good, "OPTIONS * HTTP/1.1\nHost: x\n\n", "PRI * HTTP/2.0\n\nSM\n\n",
		"POST /v1/get_thread HTTP/1.1\nHost: x\nExpect: 100-continue\nAuthorization: Bearer good\nContent-Type: application/json\nContent-Length: 2\n\n{}" + good,
		post("/v1/get_thread", "", strings.Repeat("x", 2000)) + good, "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}" + good, good[:len(good)-1], "garbage\n\n",
		"CONNECT x:1 HTTP/1.1\nHost: x\n\n", "GET http://x HTTP/1.1\nHost: x\n\n", good + "\n\n" + good} {
		f.Add([]byte(strings.ReplaceAll(seed, "\n", "\r\n")))
	}
	dir, err := os.MkdirTemp("", "web")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	ln, err := net.Listen("unix", filepath.Join(dir, "s")) // a port of its own for each run would be used up
	if err != nil {
		f.Fatal(err)
	}
	mcp := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	s := startOn(
		f,
		ln,
		Config{Surface: method.Surface{Dispatcher: echo{}}, MCP: mcp, Limits: Limits{BodyBytes: fuzzBody}},
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := net.Dial("unix", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = c.Write(data)
			_ = c.(*net.UnixConn).CloseWrite()
		}()
		got, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) { // a reset is an end, too
			t.Fatalf("the connection does not end: %q to %q", got, data)
		}
		<-sent
		checkAnswers(t, data, got)
	})
}

// checkAnswers compares the answers of a connection with the requests that the model reads.
func checkAnswers(t *testing.T, data, got []byte) {
	requests, rest := requestsOf(data)
	in := bufio.NewReader(bytes.NewReader(got))
	next := func(method string) *http.Response {
		for {
			r, err := http.ReadResponse(in, &http.Request{Method: method})
			if err != nil {
				return nil
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Fatalf("an answer is cut: %q to %q", got, data)
			}
			if r.Close && r.ContentLength < 0 { // of net/http, which has a body even for HEAD
				_, _ = io.Copy(io.Discard, in)
			}
			if r.StatusCode != http.StatusContinue {
				return r
			}
		}
	}
	mayEnd := false
	for i, a := range requests {
		r := next(a.method)
		if r == nil && a.complete && !mayEnd {
			t.Fatalf("%d of %d requests answered: %q to %q", i, len(requests), got, data)
		}
		if r != nil && r.StatusCode == http.StatusInternalServerError {
			t.Fatalf("a defect: %q to %q", got, data)
		}
		if rest = rest && r != nil && !r.Close; r == nil || r.Close {
			break
		}
		mayEnd = mayEnd || a.cut
	}
	if rest { // what cannot be read gets one answer at most
		next(http.MethodGet)
	}
	if left, _ := io.ReadAll(in); len(left) > 0 {
		t.Fatalf("more than the answers: %q of %q to %q", left, got, data)
	}
}

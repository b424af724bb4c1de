//go:build !race

package rest

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// sink is a response that goes nowhere. It has the deadlines of net/http's own.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header              { return s.h }
func (s *sink) Write(p []byte) (int, error)      { return len(p), nil }
func (s *sink) WriteHeader(int)                  {}
func (s *sink) SetReadDeadline(time.Time) error  { return nil }
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// body is one that can be read again.
type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// TestAllocations checks what a request costs beyond net/http: nothing, but the text of an id that
// the server makes and its header value, because net/http keeps them until it writes.
func TestAllocations(t *testing.T) {
	claims, _ := verify("good")
	known := func(string) (*token.Claims, error) { return claims, nil }
	s := New(Config{Surface: method.Surface{Rows: testRows(), Dispatcher: fixed{}, Verify: known,
		IDs:    func(dst []byte) []byte { return append(dst, "req_1"...) },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}})
	f := func(why string, want float64, h http.Header) {
		t.Helper()
		data := []byte(benchBody)
		text := bytes.NewReader(data)
		r := &http.Request{Method: "POST", RequestURI: "/v1/post_message", URL: &url.URL{}, Header: h, Body: body{text}, ContentLength: int64(len(benchBody)), Host: "x"}
		w := &sink{h: http.Header{}}
		if got := testing.AllocsPerRun(200, func() {
			text.Reset(data)
			s.serveHTTP(w, r)
		}); got > want {
			t.Errorf("%s: %v allocations, want at most %v", why, got, want)
		}
	}
	head := http.Header{"Authorization": {"Bearer good"}, "Content-Type": {"application/json"}}
	f("id of the server", 2, head)
	named := head.Clone()
	named["X-Request-Id"] = []string{"mine"}
	f("id of the client", 0, named)
}

// TestCountingDoesNotAllocate checks the counters of all answers.
func TestCountingDoesNotAllocate(t *testing.T) {
	m := metrics{}
	label := m.name("x")
	if n := testing.AllocsPerRun(100, func() { m.count(label, "BREW", 418, time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
)

// played is a connection whose frames come from a test.
type played struct {
	frames chan []Frame
	closed chan struct{}
}

func (p *played) Next(ctx context.Context) ([]Frame, error) {
	select {
	case f, ok := <-p.frames:
		if !ok {
			return []Frame{{Type: "closed"}}, io.EOF
		}
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *played) Close() { close(p.closed) }

func TestMonitorStreams(t *testing.T) {
	c := newConfig(t)
	p := &played{make(chan []Frame), make(chan struct{})}
	var asked string
	c.Monitor = func(conn string, payload int) (Monitor, error) {
		asked = conn
		if payload != 7 {
			t.Errorf("payload %d", payload)
		}
		return p, nil
	}
	resp, err := http.Get(start(t, c) + "/monitor?conn=ipc-1&payload=7")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if asked != "ipc-1" || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("asked for %q, got %v", asked, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	want := Frame{At: time.Unix(5, 0).UTC(), Direction: "in", Type: "request", Method: "kernel.Ping", ID: "7", Bytes: 12, Payload: json.RawMessage(`{"a":1}`)}
	p.frames <- []Frame{want}
	var got Frame
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got.Method != want.Method || !got.At.Equal(want.At) || string(got.Payload) != string(want.Payload) {
		t.Errorf("%s, %v", lines.Bytes(), err)
	}
	close(p.frames)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"type":"closed"`) || lines.Scan() {
		t.Errorf("the end is %q", lines.Text())
	}
	<-p.closed
}

// slowly is a writer that needs the whole time of a deadline for each write.
type slowly struct {
	*httptest.ResponseRecorder
	until time.Time
	late  int
}

func (s *slowly) SetWriteDeadline(t time.Time) error { s.until = t; return nil }

func (s *slowly) Write(b []byte) (int, error) {
	if s.until.IsZero() {
		s.late++
	}
	s.until = time.Time{}
	return s.ResponseRecorder.Write(b)
}

// TestASlowReaderOfAMonitor: what is read at once need not be written in the time of one write.
func TestASlowReaderOfAMonitor(t *testing.T) {
	c := newConfig(t)
	p := &played{make(chan []Frame, 1), make(chan struct{})}
	c.Monitor = func(string, int) (Monitor, error) { return p, nil }
	p.frames <- make([]Frame, 100)
	close(p.frames)
	w := &slowly{ResponseRecorder: httptest.NewRecorder()}
	handler(c).ServeHTTP(w, httptest.NewRequest("GET", "/monitor?conn=x", nil))
	if n := strings.Count(w.Body.String(), "\n"); n != 101 || w.late != 0 {
		t.Errorf("%d lines, %d of them after the deadline", n, w.late)
	}
}

func TestMonitorEndsWithItsReader(t *testing.T) {
	c := newConfig(t)
	p := &played{make(chan []Frame), make(chan struct{})}
	c.Monitor = func(string, int) (Monitor, error) { return p, nil }
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", start(t, c)+"/monitor?conn=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	<-p.closed
	resp.Body.Close()
}

func TestMonitorRefuses(t *testing.T) {
	c := newConfig(t)
	f := func(path string, status int, body string) {
		t.Helper()
		if code, got, _ := ask(c, "GET", path); code != status || !strings.Contains(got, body) {
			t.Errorf("%s = %d %q, want %d with %q", path, code, got, status, body)
		}
	}
	f("/monitor?conn=x", 404, "")
	f("/overview", 404, "")
	err := error(&Refusal{Status: 409, Text: "taken", Hint: "wait"})
	c.Monitor = func(string, int) (Monitor, error) { return nil, err }
	f("/monitor?conn=x", 409, `{"error":"taken","hint":"wait"}`)
	f("/monitor?conn=x&payload=65536", 409, "taken")
	f("/monitor?conn=x&payload=65537", 400, `cannot show \"65537\" bytes of payloads: want 0 to 65536`)
	f("/monitor?conn=x&payload=-1", 400, "want 0 to")
	f("/monitor?conn=x&payload=all", 400, "want 0 to")
	err = errors.New("odd")
	f("/monitor?conn=x", 500, `{"error":"odd"}`)
	c.Overview = func() obs.Overview { return obs.Overview{Version: "v9", Latencies: []obs.Latency{}} }
	f("/overview", 200, `"version":"v9"`)
}

package exchange

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"trunkline/engine/envelope"
)

// engineFunc is what a server answers with.
type engineFunc = func(dst, src []byte) ([]byte, envelope.Reason, *envelope.Error)

// start serves on a port of its own until the end of the test, with process in place of the engine
// unless it is nil.
func start(t testing.TB, cfg HTTPConfig, process engineFunc) (s *Server, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = NewServer(newEngine(), cfg.withDefaults())
	if process != nil {
		s.process = process
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		// A test that failed half-way may have left a connection open.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !t.Failed() {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		for s.Stats().InFlight > 0 { // one that was cut off
			time.Sleep(time.Millisecond)
		}
		if st := s.Stats(); !t.Failed() && st.Connections != 0 {
			t.Errorf("after Shutdown: %+v", st)
		}
	})
	return s, ln.Addr().String()
}

// peer is one connection, spoken to in raw bytes.
type peer struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *peer {
	t.Helper()
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &peer{t, c.(*net.TCPConn), bufio.NewReader(c)}
}

// write sends text; "\n" stands for a line end of HTTP. A peer that hung up already is no failure:
// its answer counts.
func (p *peer) write(format string, args ...any) {
	p.t.Helper()
	_, _ = io.WriteString(p, fmt.Sprintf(strings.ReplaceAll(format, "\n", "\r\n"), args...))
}

// post sends a whole request with a body.
func (p *peer) post(body string) {
	p.t.Helper()
	p.write("POST /api/v1/process HTTP/1.1\nHost: x\nContent-Length: %d\n\n%s", len(body), body)
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body   string
	object map[string]any
}

// read reads one reply and checks what holds for all of them: JSON with its length.
func (p *peer) read(why, method string) reply {
	p.t.Helper()
	resp, err := http.ReadResponse(p.in, &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("%s: no reply: %v", why, err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatalf("%s: half a reply: %v", why, err)
	}
	r := reply{Response: resp, body: string(b)}
	if resp.Header.Get("Content-Type") != "application/json" || resp.ContentLength < 1 || resp.TransferEncoding != nil {
		p.t.Errorf("%s: not JSON with a length: %v", why, resp.Header)
	}
	if method == http.MethodHead {
		return r
	}
	if err := json.Unmarshal(b, &r.object); err != nil || r.object == nil {
		p.t.Errorf("%s: body %q: %v", why, b, err)
	}
	return r
}

// wantError reads an error object.
func (p *peer) wantError(why string, status int, code string) reply {
	p.t.Helper()
	r := p.read(why, http.MethodPost)
	if r.StatusCode != status || r.object["error"] != true || r.object["code"] != code || r.object["message"] == "" {
		p.t.Errorf("%s: %d %s, want %d %s", why, r.StatusCode, r.body, status, code)
	}
	return r
}

// wantEnvelope reads a processed envelope.
func (p *peer) wantEnvelope(why, stage string) reply {
	p.t.Helper()
	r := p.read(why, http.MethodPost)
	if r.StatusCode != 200 || r.object["error"] != nil || r.object["current_stage"] != stage {
		p.t.Errorf("%s: %d %s, want stage %s", why, r.StatusCode, r.body, stage)
	}
	return r
}

// wantOpen shows that the connection serves another request.
func (p *peer) wantOpen(why string) {
	p.t.Helper()
	p.post(`{"raw_input":"hi"}`)
	p.wantEnvelope(why+", next request", "perception")
}

// wantClosed shows that the server sends no more and ends the connection without a reset.
func (p *peer) wantClosed(why string) {
	p.t.Helper()
	if b, err := io.ReadAll(p.in); err != nil || len(b) > 0 {
		p.t.Errorf("%s: the connection goes on with %q, %v", why, b, err)
	}
}

// wantHangUp checks the announcement and the end.
func (p *peer) wantHangUp(why string, r reply) {
	p.t.Helper()
	if !r.Close {
		p.t.Errorf("%s: no Connection: close in %v", why, r.Header)
	}
	p.wantClosed(why)
}

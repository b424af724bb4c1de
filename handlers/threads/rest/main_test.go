package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// methodNames are the nine methods of the contract.
var methodNames = strings.Fields("ack_read create_thread get_thread heartbeat_session post_message read_messages summarize_thread trigger_participant update_thread_status")

func testRows() (rows []method.Row) {
	for _, name := range methodNames {
		rows = append(rows, method.Row{Name: name})
	}
	return rows
}

// script is a dispatcher that records what it is asked.
type script struct {
	mu      sync.Mutex
	calls   []string // dialect, method, request id, document
	refused []string // operation, condition, agent
	awaited []uint64

	answer func(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome)
	await  func(uint64) error
}

func (d *script) Call(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome) {
	d.mu.Lock()
	d.calls = append(d.calls, fmt.Sprint(c.Dialect, " ", row.Name, " ", string(c.RequestID), " ", c.FromClient, c.BadRequestID, " ", jsonText(doc)))
	d.mu.Unlock()
	if d.answer != nil {
		return d.answer(dst, c, row, doc)
	}
	return append(dst, `{"ok":true}`...), method.Outcome{}
}

// jsonText shows a long document by its length.
func jsonText(doc []byte) string {
	if len(doc) > 100 {
		return strconv.Itoa(len(doc)) + " bytes"
	}
	return string(doc)
}

func (d *script) Await(index uint64) error {
	d.mu.Lock()
	d.awaited = append(d.awaited, index)
	d.mu.Unlock()
	if d.await != nil {
		return d.await(index)
	}
	return nil
}

func (d *script) Refused(c *method.Caller, operation string, f *method.Fault) {
	agent := "nobody"
	if c.Claims != nil {
		agent = c.Claims.Agent
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = append(d.refused, operation+" "+f.Condition.Codes().Spec+" "+agent)
}

// taken returns what was recorded since the last call of taken.
func (d *script) taken() (calls, refused []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls, refused = d.calls, d.refused
	d.calls, d.refused = nil, nil
	return calls, refused
}

// verify knows a few tokens by name.
func verify(text string) (*token.Claims, error) {
	switch text {
	case "good":
		return &token.Claims{Agent: "lead", Workspace: "wk", Session: "s", ID: "j", Role: token.Coordinator}, nil
	case "elsewhere":
		return nil, token.ErrOutOfScope
	case "nokeys":
		return nil, &token.Refusal{Reason: "unknown_key", Unavailable: true, Retry: time.Second}
	case "newkey":
		return nil, &token.Refusal{Reason: "unknown_key", Retry: 20 * time.Second}
	case "strange":
		return nil, errors.New("strange")
	}
	return nil, &token.Refusal{Reason: "expired"}
}

// clock is a clock that only tests move.
type clock struct{ nanos atomic.Int64 }

var noon = time.Date(2026, 2, 17, 12, 5, 0, 0, time.UTC)

func (c *clock) now() time.Time       { return noon.Add(time.Duration(c.nanos.Load())) }
func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

// server is one under test.
type server struct {
	*Server
	*script
	*clock
	addr    string
	network string
}

// start serves on a port of its own until the end of the test. Members of cfg that are not set get
// those of the tests.
func start(t testing.TB, cfg Config) *server {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, ln, cfg)
}

func startOn(t testing.TB, ln net.Listener, cfg Config) *server {
	t.Helper()
	s := &server{script: &script{}, clock: &clock{}, addr: ln.Addr().String(), network: ln.Addr().Network()}
	cfg.Rows = testRows()
	if cfg.Dispatcher == nil {
		cfg.Dispatcher = s.script
	}
	if cfg.Verify == nil {
		cfg.Verify = verify
	}
	if cfg.IDs == nil {
		cfg.IDs = func(dst []byte) []byte { return append(dst, "req_1"...) }
	}
	if cfg.Now == nil {
		cfg.Now = s.now
	}
	s.Server = New(cfg)
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
	})
	return s
}

// peer is one connection, spoken to in raw bytes.
type peer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (s *server) dial(t testing.TB) *peer {
	t.Helper()
	c, err := net.Dial(s.network, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &peer{t, c, bufio.NewReader(c)}
}

// write sends text; "\n" stands for a line end of HTTP. A peer that hung up already is no failure:
// its answer counts.
func (p *peer) write(text string) {
	p.t.Helper()
	_, _ = io.WriteString(p, strings.ReplaceAll(text, "\n", "\r\n"))
}

// post is a whole request with a good token, further header lines and a body.
func post(path, lines, body string) string {
	return "POST " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Type: application/json\n" + lines +
		"Content-Length: " + strconv.Itoa(len(body)) + "\n\n" + body
}

// reply is one answer.
type reply struct {
	*http.Response
	raw  string // all bytes of it, without the Date line
	body string
}

var dateLine = regexp.MustCompile("Date: [^\r]*GMT\r\n")

// read returns the next answer to a request with that HTTP method.
func (p *peer) read(why, httpMethod string) reply {
	p.t.Helper()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(&oneByte{p.in}, &raw))
	r, err := http.ReadResponse(in, &http.Request{Method: httpMethod})
	if err != nil {
		p.t.Fatalf("%s: %v after %q", why, err, raw.String())
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatalf("%s: %v after %q", why, err, raw.String())
	}
	return reply{r, dateLine.ReplaceAllString(raw.String(), ""), string(body)}
}

// oneByte reads single bytes, so that nothing behind an answer is taken.
type oneByte struct{ r io.Reader }

func (o *oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// want reads an answer with that status.
func (p *peer) want(why string, status int) reply {
	p.t.Helper()
	r := p.read(why, http.MethodPost)
	if r.StatusCode != status {
		p.t.Errorf("%s: %d %s, want %d", why, r.StatusCode, r.body, status)
	}
	return r
}

// envelope is the error object of threads §3.4.
type envelope struct {
	Error struct {
		Code       string          `json:"code"`
		Message    string          `json:"message"`
		RequestID  string          `json:"request_id"`
		Retryable  bool            `json:"retryable"`
		SpecCode   string          `json:"spec_code"`
		LegacyCode string          `json:"legacy_code"`
		Details    json.RawMessage `json:"details"`
	} `json:"error"`
	RequestID  string `json:"request_id"`
	OccurredAt string `json:"occurred_at"`
}

// wantError reads an error envelope with that status and code.
func (p *peer) wantError(why string, status int, code string) (reply, envelope) {
	p.t.Helper()
	r := p.want(why, status)
	var e envelope
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Error.Code != code || e.Error.Message == "" || e.Error.RequestID != e.RequestID ||
		e.RequestID != r.Header.Get("x-request-id") || e.OccurredAt == "" {
		p.t.Errorf("%s: %v: not an envelope with %s: %s", why, err, code, r.body)
	}
	if r.Header.Get("content-type") != "application/json; charset=utf-8" || r.Header.Get("cache-control") != "no-store" {
		p.t.Errorf("%s: %v", why, r.Header)
	}
	return r, e
}

// wantOpen checks that the connection serves another request.
func (p *peer) wantOpen(why string) {
	p.t.Helper()
	p.write("GET /health HTTP/1.1\nHost: x\n\n")
	p.want(why+": the next request", http.StatusOK)
}

// wantClosed checks that the connection is at its end, and that its last answer was r.
func (p *peer) wantClosed(why string, r reply) {
	p.t.Helper()
	if !r.Close {
		p.t.Errorf("%s: no Connection: close", why)
	}
	p.wantEnd(why)
}

func (p *peer) wantEnd(why string) {
	p.t.Helper()
	if b, err := io.ReadAll(p.in); len(b) > 0 || err != nil {
		p.t.Errorf("%s: %q, %v, want the end of the connection", why, b, err)
	}
}

// lines is a log as JSON lines.
type lines struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{} // gets a value after a line, if it has room
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.written <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level}))
}

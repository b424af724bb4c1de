package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// script is a dispatcher that records what it is asked. Inputs are checked as in production.
type script struct {
	mu      sync.Mutex
	calls   []string // agent, method, arguments
	refused []string // operation, code, agent
	awaited []uint64

	answer func(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome)
	await  func(uint64) error
}

func (d *script) Call(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome) {
	d.mu.Lock()
	d.calls = append(d.calls, fmt.Sprintf("%s %s %v%v %s", c.Claims.Agent, row.Name, c.FromClient, c.BadRequestID, doc))
	d.mu.Unlock()
	if d.answer != nil {
		return d.answer(dst, c, row, doc)
	}
	return checked(dst, c, row, doc)
}

// checked answers with what it was asked, if that is valid.
func checked(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome) {
	var in method.Input
	f := row.Parse(&in, doc, false)
	if f == nil {
		f = row.Authorize(c.Claims)
	}
	if f == nil {
		f = in.CheckClaims(c.Claims)
	}
	if f != nil {
		return dst, method.Outcome{Fault: f}
	}
	return append(append(append(dst, `{"ok":true,"title":"<é&\u2028`+"\u2028"+`\\\"\n>","method":"`...), row.Name...), `"}`...), method.Outcome{}
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
	agent := "-"
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
	case "other":
		return &token.Claims{Agent: "other", Workspace: "wk", Session: "s2", ID: "j2", Role: token.Participant}, nil
	case "elsewhere":
		return nil, token.ErrOutOfScope
	case "nokeys":
		return nil, &token.Refusal{Reason: "unknown_key", Unavailable: true, Retry: time.Second}
	}
	return nil, &token.Refusal{Reason: "expired"}
}

// clock is a clock that only tests move.
type clock struct{ nanos atomic.Int64 }

var noon = time.Date(2026, 2, 17, 12, 5, 0, 0, time.UTC)

func (c *clock) now() time.Time       { return noon.Add(time.Duration(c.nanos.Load())) }
func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

// fixedID makes the request id of all tests.
func fixedID(dst []byte) []byte { return append(dst, "req_1"...) }

// server is one under test.
type server struct {
	*script
	*clock
	*Handler
	url string
}

// start serves on a port of its own until the end of the test. Members of cfg that are not set get
// those of the tests.
func start(t testing.TB, cfg Config) *server {
	t.Helper()
	s := &server{script: &script{}, clock: &clock{}}
	s.Handler = New(s.config(cfg))
	web := httptest.NewServer(s.Handler)
	t.Cleanup(web.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s.url = web.URL + "/mcp"
	return s
}

func (s *server) config(cfg Config) Config {
	if cfg.Rows == nil {
		cfg.Rows = method.Rows
	}
	if cfg.Dispatcher == nil {
		cfg.Dispatcher = s.script
	}
	if cfg.CallsPerMinute == 0 {
		cfg.CallsPerMinute = 1_000_000
	}
	cfg.Verify, cfg.IDs, cfg.Now = verify, fixedID, s.now
	return cfg
}

// head is header fields, one "Name: value" in each line. "-Name" takes a field away.
type head string

// Revisions of MCP.
const (
	latest = "2026-07-28"
	legacy = "2025-11-25"
)

// era are the header fields of a request of the latest revision.
func era(name, tool string) head {
	h := "MCP-Protocol-Version: " + latest + "\nMcp-Method: " + name
	if tool != "" {
		h += "\nMcp-Name: " + tool
	}
	return head(h)
}

// meta is _meta of a request of the latest revision.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// callText is a tools/call of the older revisions.
func callText(tool, args string) string {
	return `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

// request is a request with a good token and what a client sends, changed by lines.
func request(method, url string, lines head, body string) *http.Request {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for line := range strings.Lines(string(lines)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch cut, drop := strings.CutPrefix(name, "-"); {
		case drop:
			r.Header.Del(cut)
		case name == "Host":
			r.Host = value
		case name != "":
			r.Header[http.CanonicalHeaderKey(name)] = append(r.Header[http.CanonicalHeaderKey(name)][:0:0], value)
		}
	}
	return r
}

// reply is an answer.
type reply struct {
	*http.Response
	body string
}

// do sends a request.
func (s *server) do(t testing.TB, httpMethod string, lines head, body string) reply {
	t.Helper()
	r, err := http.DefaultClient.Do(request(httpMethod, s.url, lines, body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{r, string(b)}
}

// want sends a request and checks the status, and that the body has what is given.
func (s *server) want(t testing.TB, why, httpMethod string, lines head, body string, status int, parts ...string) reply {
	t.Helper()
	r := s.do(t, httpMethod, lines, body)
	if r.StatusCode != status {
		t.Errorf("%s: %d %s, want %d", why, r.StatusCode, r.body, status)
	}
	for _, p := range parts {
		if !strings.Contains(r.body, p) {
			t.Errorf("%s: %s\nlacks %s", why, r.body, p)
		}
	}
	return r
}

// wantEnvelope checks an error envelope (threads §3.4).
func wantEnvelope(t testing.TB, why, text, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Code, Message string
			RequestID     string `json:"request_id"`
			SpecCode      string `json:"spec_code"`
			LegacyCode    string `json:"legacy_code"`
		}
		RequestID  string `json:"request_id"`
		OccurredAt string `json:"occurred_at"`
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error.Code != code || e.Error.SpecCode != code || e.Error.LegacyCode == "" ||
		e.Error.Message == "" || e.RequestID != "req_1" || e.Error.RequestID != "req_1" || e.OccurredAt != "2026-02-17T12:05:00.000Z" {
		t.Errorf("%s: %v: not an envelope with %s: %s", why, err, code, text)
	}
}

// toolResult is the result of a tools/call.
type toolResult struct {
	Result struct {
		Meta              map[string]json.RawMessage `json:"_meta"`
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
		ResultType        string          `json:"resultType"`
	}
}

func (r reply) result(t testing.TB) toolResult {
	t.Helper()
	var got toolResult
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Result.Content) != 1 || got.Result.Content[0].Type != "text" {
		t.Fatalf("%v: not the result of a tool: %s", err, r.body)
	}
	return got
}

// serve lets a handler answer without a socket.
func serve(h http.Handler, r *http.Request) reply {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return reply{w.Result(), w.Body.String()}
}

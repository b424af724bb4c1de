package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"trunkline/handlers/threads/method"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is a server of agent threads as far as a bridge sees it.
type backend struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // method, path, token, type, body
	status int
	answer string
	held   chan struct{} // if set, a request waits for it to close
	came   chan struct{} // gets a value for each request, if set
}

func startBackend(t *testing.T) *backend {
	b := &backend{status: 200, answer: `{"ok":true}`}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.asked = append(b.asked, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", r.Header.Get("Content-Type"), " ", string(body)))
		status, answer, held, came := b.status, b.answer, b.held, b.came
		b.mu.Unlock()
		if came != nil {
			came <- struct{}{}
		}
		if held != nil {
			<-held
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) set(status int, answer string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.answer = status, answer
}

// last returns the last request.
func (b *backend) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) == 0 {
		return ""
	}
	return b.asked[len(b.asked)-1]
}

// client is a client of a bridge, spoken to in lines.
type client struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
	end chan error
}

var noon = time.Date(2026, 2, 17, 12, 5, 0, 0, time.UTC)

// launch runs a bridge until the end of the test.
func launch(t *testing.T, cfg Config) *client {
	t.Helper()
	if cfg.Token == nil {
		cfg.Token = func() (string, error) { return "tok", nil }
	}
	cfg.Now = func() time.Time { return noon }
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t, inW, bufio.NewReader(outR), make(chan error, 1)}
	go func() {
		err := Run(context.Background(), inR, outW, cfg)
		outW.Close()
		c.end <- err
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

// want reads a line and checks that it has the parts.
func (c *client) want(parts ...string) string {
	c.t.Helper()
	text, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v after %q, want %q", err, text, parts)
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			c.t.Errorf("%s\nlacks %s", text, p)
		}
	}
	return text
}

// finish ends the input, and checks that nothing but the end comes.
func (c *client) finish() {
	c.t.Helper()
	c.in.Close()
	if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
		c.t.Errorf("%q, %v at the end", rest, err)
	}
	if err := <-c.end; err != nil {
		c.t.Errorf("Run: %v", err)
	}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

func call(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}`+"\n", id, tool, args)
}

// TestBothEras speaks as a client with a handshake, and as one without (threads §2.3).
func TestBothEras(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL + "/"})
	c.send(hello)
	c.want(`"protocolVersion":"2025-06-18"`, `"capabilities":{"prompts":{},"resources":{},"tools":{}}`, `"name":"threads"`)
	c.send(call(1, "ack_read", `{ "a":1e2 }`))
	c.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"ok\":true}"}],"structuredContent":{"ok":true}}}`)
	if want := `POST /v1/ack_read Bearer tok application/json { "a":1e2 }`; b.last() != want {
		t.Errorf("the server was asked %q, want %q", b.last(), want)
	}
	c.send("\n\r\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_thread"}}` + "\r\n")
	c.want(`"id":2,"result"`)
	if want := `POST /v1/get_thread Bearer tok application/json {}`; b.last() != want {
		t.Errorf("the server was asked %q, want %q", b.last(), want)
	}
	c.send(call(3, "nope", `{}`))
	c.want(`"id":3,"error":{"code":-32602`)
	c.send(`{"jsonrpc":"2.0","id":4,"method":"nope"}` + "\n")
	c.want(`"id":4,"error":{"code":-32601`)
	c.finish()

	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	c = launch(t, Config{URL: b.URL})
	c.send(`{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{` + meta + `}}` + "\n")
	c.want(`"id":"d"`, `"2026-07-28"`, `"ttlMs":3600000`)
	c.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{` + meta + `}}` + "\n")
	c.want(`"id":"l"`, `"ttlMs":3600000`, `"cacheScope":"public"`, `"name":"update_thread_status"`)
	c.send(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"ack_read","arguments":{},` + meta + `}}` + "\n")
	c.want(`"id":"c"`, `"structuredContent":{"ok":true}`, `"resultType":"complete"`, `"io.modelcontextprotocol/serverInfo"`)
	c.finish()
}

// textOf is the text of a tool's result.
func textOf(t *testing.T, line string) string {
	t.Helper()
	var m struct {
		Result struct {
			Content           []struct{ Text string }
			IsError           bool
			StructuredContent json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.Result.Content) != 1 || !m.Result.IsError || m.Result.StructuredContent != nil {
		t.Fatalf("%v: not the error of a tool: %s", err, line)
	}
	return m.Result.Content[0].Text
}

// TestAnswers checks how the answers of a server are mapped (threads §2.2).
func TestAnswers(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL})
	c.send(hello)
	c.want(`"id":0`)
	ulid := regexp.MustCompile(`"request_id":"req_[0-7][0-9A-HJKMNP-TV-Z]{25}"`)
	const envelope = `{"error":{"code":"NOT_FOUND","message":"no <thread>"},"request_id":"req_9"}`
	for _, status := range []int{400, 401, 403, 404, 409, 413, 429, 500, 503} {
		b.set(status, envelope)
		c.send(call(1, "ack_read", `{}`))
		if got := textOf(t, c.want()); got != envelope {
			t.Errorf("%d: %s", status, got)
		}
	}
	for _, answer := range []struct {
		status int
		text   string
	}{{200, `<html>`}, {200, ``}, {200, `[]`}, {200, `{"ok":true`}, {204, ``}, {302, `{"ok":true}`}, {502, `<html>`}, {503, `{}`}, {404, `{"error":"x"}`},
		{200, `{"x":"` + strings.Repeat("x", maxAnswer) + `"}`}} {
		b.set(answer.status, answer.text)
		c.send(call(1, "ack_read", `{}`))
		if got := textOf(t, c.want()); !strings.Contains(got, `"code":"INTERNAL"`) || !strings.Contains(got, `"retryable":true`) || !strings.Contains(got, `"occurred_at":"2026-02-17T12:05:00.000Z"`) || !ulid.MatchString(got) {
			t.Errorf("%d %.20s: %s", answer.status, answer.text, got)
		}
	}
	if b.last() != `POST /v1/ack_read Bearer tok application/json {}` {
		t.Errorf("the last request was %q: a redirection was followed", b.last())
	}
	c.finish()
}

// TestSameID checks that the id of a call can be used again once its answer was read.
func TestSameID(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL})
	c.send(hello)
	c.want(`"id":0`)
	for range 500 {
		c.send(call(1, "ack_read", `{}`))
		c.want(`{"jsonrpc":"2.0","id":1,"result":`)
	}
	c.finish()
}

// TestUnreachable checks the answer without a server, and that the server is found when it comes
// (threads §2.3).
func TestUnreachable(t *testing.T) {
	b := startBackend(t)
	b.Close()
	c := launch(t, Config{URL: b.URL})
	c.send(hello)
	c.want(`"id":0`)
	c.send(call(1, "ack_read", `{}`))
	if got := textOf(t, c.want()); !strings.Contains(got, `"code":"INTERNAL"`) || !strings.Contains(got, `"retryable":true`) {
		t.Error(got)
	}
	c.finish()
}

// TestMalformedToken checks that a token of several lines is not taken for a server that is away.
func TestMalformedToken(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL, Token: func() (string, error) { return "a\nb", nil }})
	c.send(hello)
	c.want(`"id":0`)
	c.send(call(1, "ack_read", `{}`))
	if got := textOf(t, c.want()); !strings.Contains(got, `"code":"UNAUTHORIZED"`) || !strings.Contains(got, `"reason":"malformed"`) {
		t.Error(got)
	}
	c.finish()
}

// TestBadLines checks that a line that is no message is answered, and does not end the bridge.
func TestBadLines(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL})
	for text, code := range map[string]string{
		"nonsense": "-32700", `{"jsonrpc":"2.0"`: "-32700", `{} {}`: "-32700", `[]`: "-32600", `7`: "-32600",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:  "-32600",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`: "-32600", strings.Repeat("x", maxLine+1): "-32600",
		strings.Repeat("x", 3*maxLine): "-32600",
	} {
		c.send(text + "\n")
		c.want(`"id":null`, `"code":`+code)
	}
	for _, text := range []string{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`} {
		c.send(text + "\n")
		c.want(`"id":1,`, `"code":-32600`)
	}
	if b.last() != "" {
		t.Errorf("the server was asked %q", b.last())
	}
	c.finish()
}

// TestLongLines: a call at the limit is served, and one beyond is answered with its id, wherever
// that stands (threads §2.3).
func TestLongLines(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL})
	args := func(form string, n int) string {
		return fmt.Sprintf(form, strings.Repeat("x", n-len(form)+len("%s")))
	}
	const first = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ack_read","arguments":{"x":"%s"}}}`
	c.send(args(first, maxLine) + "\n")
	c.want(`"id":7,"result"`)
	for form, id := range map[string]string{
		first: `7`,
		`{"method":"tools/call","params":{"name":"ack_read","id":3,"arguments":{"id":"a","x":"%s","y":"}\",\"id\":4}"}},"jsonrpc":"2.0","id":9007199254740993}`: `9007199254740993`,
		`{"x":"\"id\":1","a":[{"id":2},"%s"],"id" : "s-\"}\\" , "method":"ping"}`:                                                                               `"s-\"}\\"`,
		`{"id":{"id":1},"x":"%s"}`: `null`,
		`[{"id":1,"x":"%s"}]`:      `null`,
		`{"x":"%s"}`:               `null`,
	} {
		for _, n := range []int{maxLine + 1, 3 * maxLine} {
			c.send(args(form, n) + "\n")
			c.want(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32600,`, "1064960 bytes")
		}
	}
	c.send(call(8, "ack_read", `{}`))
	c.want(`"id":8,"result"`)
	c.finish()
}

// TestWithoutHandshake: calls before initialize, batches and a last line without its end are
// served, and ids come back digit for digit (threads §2.3).
func TestWithoutHandshake(t *testing.T) {
	b := startBackend(t)
	c := launch(t, Config{URL: b.URL})
	for _, id := range []string{"1795956150000000123", "9223372036854775807", "-0", "1e2", `""`, `"\u00e9\ud800"`} {
		for verb, part := range map[string]string{`"tools/list"`: `"tools":[`,
			`"tools/call","params":{"name":"ack_read"}`: `"structuredContent":{"ok":true}`, `"nope"`: `"code":-32601`} {
			c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":` + verb + "}\n")
			c.want(`{"jsonrpc":"2.0","id":`+id+`,`, part)
		}
	}
	c.send("\xef\xbb\xbf[" + strings.TrimSpace(call(1, "ack_read", `{}`)) +
		`,{"jsonrpc":"2.0","method":"notifications/nope"},{"jsonrpc":"2.0","id":"b","method":"ping"}]` + "\n")
	c.want(`[{"jsonrpc":"2.0","id":1,"result":`, `,{"jsonrpc":"2.0","id":"b","result":{}}]`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/nope"}` + "\n" + strings.TrimSpace(call(9, "get_thread", `null`)))
	c.in.Close()
	c.want(`"id":9,"result"`)
	if want := `POST /v1/get_thread Bearer tok application/json {}`; b.last() != want {
		t.Errorf("the server was asked %q, want %q", b.last(), want)
	}
	c.finish()
}

// TestAnswersBeforeTheEnd ends the input while calls are worked on.
func TestAnswersBeforeTheEnd(t *testing.T) {
	b := startBackend(t)
	b.held, b.came = make(chan struct{}), make(chan struct{}, 8)
	c := launch(t, Config{URL: b.URL})
	c.send(hello)
	c.want(`"id":0`)
	c.send(call(1, "ack_read", `{}`) + call(2, "ack_read", `{}`))
	<-b.came
	<-b.came
	c.in.Close()
	close(b.held)
	if got := c.want(`"result"`) + c.want(`"result"`); !strings.Contains(got, `"id":1,`) || !strings.Contains(got, `"id":2,`) {
		t.Error(got)
	}
	c.finish()
}

// TestCancelled checks that a call that was given up leaves nothing behind.
func TestCancelled(t *testing.T) {
	b := startBackend(t)
	b.held, b.came = make(chan struct{}), make(chan struct{}, 8)
	defer close(b.held)
	c := launch(t, Config{URL: b.URL})
	c.send(hello)
	c.want(`"id":0`)
	c.send(call(1, "ack_read", `{}`))
	<-b.came
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n")
	c.want(`"id":1`)
	c.finish()
}

// TestPendingIsBounded checks that no more than maxPending calls are worked on.
func TestPendingIsBounded(t *testing.T) {
	b := startBackend(t)
	b.held, b.came = make(chan struct{}), make(chan struct{}, 2*maxPending)
	c := launch(t, Config{URL: b.URL})
	c.send(hello)
	c.want(`"id":0`)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range 2 * maxPending {
			_, _ = io.WriteString(c.in, call(i+1, "ack_read", `{}`))
		}
	}()
	for range maxPending {
		<-b.came
	}
	b.mu.Lock()
	if n := len(b.asked); n != maxPending {
		t.Errorf("%d calls at a time, want %d", n, maxPending)
	}
	b.mu.Unlock()
	close(b.held)
	for range 2 * maxPending {
		c.want(`"result"`)
	}
	<-sent
	c.finish()
}

// TestTokenFile checks that a token is read again when its file changes, and only then.
func TestTokenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	get := TokenFile(name)
	if _, err := get(); err == nil {
		t.Error("a token without a file")
	}
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	want := func(token string) {
		t.Helper()
		if got, err := get(); got != token || err != nil {
			t.Errorf("%q, %v, want %q", got, err, token)
		}
	}
	write(" one\n", noon)
	want("one")
	write(" two\n", noon) // with the same times and size
	want("one")
	write(" two\n", noon.Add(time.Second))
	want("two")
	write("three\n", noon.Add(time.Second))
	want("three")

	b := startBackend(t)
	c := launch(t, Config{URL: b.URL, Token: get})
	c.send(hello)
	c.want(`"id":0`)
	c.send(call(1, "ack_read", `{}`))
	c.want(`"result"`)
	write("four\n", noon.Add(time.Minute))
	c.send(call(2, "ack_read", `{}`))
	c.want(`"result"`)
	if !strings.Contains(b.last(), "Bearer four ") {
		t.Error(b.last())
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	c.send(call(3, "ack_read", `{}`))
	if got := textOf(t, c.want()); !strings.Contains(got, `"code":"UNAUTHORIZED"`) || strings.Contains(got, name) {
		t.Error(got)
	}
	c.finish()
}

// TestBadURL checks that a bridge without a server does not start.
func TestBadURL(t *testing.T) {
	for _, u := range []string{"", "localhost:3000", "127.0.0.1:3000", "ftp://x", "http://", "http://user:pass@x",
		"http://x?y", "::"} {
		if err := Run(t.Context(), strings.NewReader(""), io.Discard, Config{URL: u}); err == nil {
			t.Errorf("Run accepts %q", u)
		}
	}
	if err := Run(t.Context(), strings.NewReader(""), io.Discard, Config{URL: "127.0.0.1:3000"}); err == nil ||
		!strings.Contains(err.Error(), "http://127.0.0.1:3000") {
		t.Error(err)
	}
}

// TestCancelledRun checks that Run ends with its context.
func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	inR, inW := io.Pipe()
	defer inW.Close()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, inR, io.Discard, Config{URL: "http://127.0.0.1:1"}) }()
	if _, err := io.WriteString(inW, hello); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("Run returns nil")
	}
}

// TestOfficialClient speaks through the client of the SDK, in each revision that it has.
func TestOfficialClient(t *testing.T) {
	b := startBackend(t)
	for _, version := range sdk.SupportedProtocolVersions() {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		end := make(chan error, 1)
		go func() {
			err := Run(context.Background(), inR, outW, Config{URL: b.URL, Token: func() (string, error) { return "tok", nil }})
			outW.Close()
			end <- err
		}()
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if got := s.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("the client speaks %s, want %s", got, version)
		}
		list, err := s.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != len(method.Rows) {
			t.Errorf("%s: tools %v, %v", version, list, err)
		}
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ack_read", Arguments: map[string]any{"thread_id": "x", "last_read_seq": 1}})
		if err != nil || r.IsError || fmt.Sprint(r.StructuredContent) != "map[ok:true]" {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if err := <-end; err != nil {
			t.Errorf("%s: Run: %v", version, err)
		}
	}
}

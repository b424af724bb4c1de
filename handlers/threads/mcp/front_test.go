package mcp

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"trunkline/handlers/threads/method"
)

// versions are values of MCP-Protocol-Version; empty: no such field.
var versions = []string{"", "2024-11-05", "2025-03-26", "2025-06-18", legacy, latest, "2027-01-01", "2020-01-01"}

// fresh is an exchange with a good token.
func (h *Handler) fresh() *exchange {
	x := h.exchanges.Get().(*exchange)
	x.id = h.cfg.IDs(x.id[:0])
	x.caller.RequestID, x.ctx = x.id, context.Background()
	x.caller.Claims, _ = verify("good")
	return x
}

// oracle lets the SDK alone answer a request.
func (h *Handler) oracle(r *http.Request) reply {
	x, w := h.fresh(), httptest.NewRecorder()
	x.screen(r)
	x.readBody(r)
	x.out = x.out[:0]
	x.revise()
	x.m.scan(x.in, &x.strict)
	x.reply(w, x.askSDK())
	return reply{w.Result(), w.Body.String()}
}

// ask lets the handler answer a request. ok is set for the result of a tool that the SDK does not
// know of.
func (h *Handler) ask(r *http.Request) (got reply, ok bool) {
	x, w := h.fresh(), httptest.NewRecorder()
	defer h.give(x)
	x.serve(w, r)
	got = reply{w.Result(), w.Body.String()}
	return got, !x.sdk && strings.Contains(got.body, `"result":`) && !strings.HasPrefix(got.body, "[")
}

// failer is a *testing.T, or one of a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare checks that the results of tools that the SDK does not know of are as the SDK writes
// them. It reports whether there was one.
func compare(t failer, s *server, lines head, body string) bool {
	t.Helper()
	r := request("POST", "http://127.0.0.1/mcp", lines, body)
	got, answered := s.ask(r)
	calls, refused := s.taken()
	if !answered {
		return false
	}
	want := s.oracle(request("POST", "http://127.0.0.1/mcp", lines, body))
	wantCalls, wantRefused := s.taken()
	if strings.Contains(want.body, `"failed to extract name from parameters`) { // it decodes arguments into floating point
		return true
	}
	got.Header.Del("Content-Length")
	want.Header.Del("Content-Length")
	if got.StatusCode != want.StatusCode || got.body != want.body || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") ||
		got.Header.Get("Cache-Control") != want.Header.Get("Cache-Control") || len(got.Header) != len(want.Header) {
		t.Fatalf("%q %q:\n%d %v %s\nthe SDK:\n%d %v %s", lines, body, got.StatusCode, got.Header, got.body, want.StatusCode, want.Header, want.body)
	}
	if !slices.Equal(calls, wantCalls) || !slices.Equal(refused, wantRefused) {
		t.Fatalf("%q %q: %q %q\nthe SDK: %q %q", lines, body, calls, refused, wantCalls, wantRefused)
	}
	return true
}

// withVersion are header fields of a call of a tool in a revision.
func withVersion(version, tool string) head {
	if version == "" {
		return ""
	}
	return head("Mcp-Protocol-Version: " + version + "\nMcp-Method: tools/call\nMcp-Name: " + tool)
}

// newScripted returns a server without a socket.
func newScripted() *server {
	s := &server{script: &script{}, clock: &clock{}}
	s.Handler = New(s.config(Config{}))
	return s
}

const newMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`

// TestFrontAnswersAsTheSDK compares the front with the SDK where it answers.
func TestFrontAnswersAsTheSDK(t *testing.T) {
	s := newScripted()
	f := func(version, id, params string) {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{` + params + `}}`
		if !compare(t, s, withVersion(version, "get_thread"), body) {
			t.Errorf("the front does not answer %q %s", version, body)
		}
	}
	const args = `"arguments":{"thread_id":"th_1"}`
	for _, version := range versions[:6] {
		meta := ``
		if version == latest {
			meta = `,"_meta":{` + newMeta + `{}}`
		}
		for _, id := range []string{"0", "1", "5", "999999999999999", `"a"`, `"0"`, `"<&>"`, `"` + strings.Repeat("x", 300) +
			`"`,
			"-1", "1.0", "1e2", "9223372036854775807", "1795956150000000123", "12345678901234567890", `""`, `"é"`, `"\u0061"`,
			`"\ud800"`} {
			f(version, id, `"name":"get_thread",`+args+meta)
		}
		f(version, "1", `"name":"get_thread"`+meta)
		f(version, "1", `"name":"get_thread","arguments":{}`+meta)
		f(version, "1", `"name":"get_thread","arguments":{"thread_id":7,"x":[1,2.5,-0,{"a":null}]}`+meta)
		f(version, "1", `"name":"get_thread","arguments":{"thread_id":"<é>","x":"\u00e9\ud800"}`+meta)
		f(version, "1", `"name":"get_thread","arguments":null`+meta)
		f(version, "1", `"name":"get_thread","arguments":{"thread_id":"th_1","role":"x"}`+meta)
		f(version, "1", ` "arguments" : { "thread_id" : "é\u2028`+"\u2028"+`\n" } , "name" : "get_thread" `+meta)
		f(version, "1", `"x":{"y":[]},"name":"get_thread",`+args+meta)
	}
	for _, version := range versions[:5] {
		f(version, "1", `"name":"get_thread",`+args+`,"_meta":{}`)
		f(version, "1", `"name":"get_thread",`+args+`,"_meta":{"progressToken":7,"x":"y"}`)
		f(version, "1", `"name":"get_thread","arguments":{"thread_id":"th_1","x":1e999}`)
	}
	for _, capabilities := range []string{`{}`, `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`,
		`{"experimental":{"a":{}},"extensions":{"io.x/y":{}},"tasks":{}}`} {
		f(latest, "1", `"name":"get_thread",`+args+`,"_meta":{`+newMeta+capabilities+`,"io.modelcontextprotocol/clientInfo":{"name":"n","version":"v","title":"t","x":"y"},`+
			`"io.modelcontextprotocol/logLevel":"debug","progressToken":"a","traceparent":"00-1-2-3"}`)
	}
}

// TestFrontLeavesTheUnusual checks what the front leaves to the SDK.
func TestFrontLeavesTheUnusual(t *testing.T) {
	s := newScripted()
	f := func(lines head, body string) {
		t.Helper()
		if compare(t, s, lines, body) {
			t.Errorf("the front answers %q %s", lines, body)
		}
	}
	ok := callText("get_thread", `{"thread_id":"th_1"}`)
	for _, lines := range []head{"Content-Type: text/plain", "-Content-Type", "Accept: text/event-stream",
		"Mcp-Protocol-Version: 2027-01-01", "Mcp-Protocol-Version: 2020-01-01", "Mcp-Protocol-Version: x", withVersion(latest, "get_thread")} {
		f(lines, ok)
	}
	g := func(body string) { t.Helper(); f("", body) }
	for _, id := range []string{"null", "1.5", "01", "{}", "[1]", "true", "1e30", strings.Repeat("1", 65)} {
		g(strings.Replace(ok, `"id":5`, `"id":`+id, 1))
	}
	g(strings.Replace(ok, `"id":5,`, ``, 1))
	g(strings.Replace(ok, `"2.0"`, `"1.0"`, 1))
	g(strings.Replace(ok, `"jsonrpc":"2.0",`, ``, 1))
	g(strings.Replace(ok, `"id":5`, `"id":5,"id":6`, 1))
	g(strings.Replace(ok, `"id":5`, `"id":5,"i\u0064":6`, 1))
	g(strings.Replace(ok, `"tools/call"`, `"tools\/call"`, 1))
	g(strings.Replace(ok, `"tools/call"`, `"tools/list"`, 1))
	g(strings.Replace(ok, `"get_thread"`, `"nope"`, 1))
	g(strings.Replace(ok, `"get_thread"`, `"get\u005fthread"`, 1))
	g(strings.Replace(ok, `{"thread_id":"th_1"}`, `[]`, 1))
	g(strings.Replace(ok, `"th_1"`, "\"\xff\"", 1))
	g(strings.Replace(ok, `"name"`, `"requestState":"x","name"`, 1))
	g(strings.Replace(ok, `"name"`, `"inputResponses":{},"name"`, 1))
	g(strings.Replace(ok, `"name"`, `"_meta":null,"name"`, 1))
	g(strings.Replace(ok, `"name"`, `"_meta":{"x":1e999},"name"`, 1))
	g(strings.Replace(ok, `"name"`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"},"name"`, 1))
	g("[" + ok + "]")
	g("")
	g("{")
	h := func(meta, args string) {
		t.Helper()
		f(withVersion(latest, "get_thread"), `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"get_thread","arguments":`+args+`,"_meta":{`+meta+`}}}`)
	}
	for _, capabilities := range []string{`null`, `[]`, `1`, `{"roots":true}`, `{"roots":{"listChanged":1}}`, `{"listChanged":null}`, `{"r\u006fots":{}}`, `{"experimental":{"x":1}}`,
		`{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}`} {
		h(newMeta+capabilities, `{}`)
	}
	for _, client := range []string{`null`, `[]`, `{"name":1}`, `{"icons":"x"}`, `{"ic\u006fns":"x"}`} {
		h(newMeta+`{},"io.modelcontextprotocol/clientInfo":`+client, `{}`)
	}
	h(strings.Replace(newMeta, "2026-07-28", "2026-07-29", 1)+`{}`, `{}`)
	h(newMeta+`{},"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `{}`)
	f(withVersion(latest, "ack_read"), `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"get_thread","_meta":{`+newMeta+`{}}}}`)
}

// TestFrontOfLongBodies checks the bounds of a body.
func TestFrontOfLongBodies(t *testing.T) {
	s := start(t, Config{})
	body := func(n int) string {
		text := callText("get_thread", `{"thread_id":"th_1","x":""}`)
		return strings.Replace(text, `"x":""`, `"x":"`+strings.Repeat("x", n-len(text))+`"`, 1)
	}
	s.want(t, "the longest body", "POST", "", body(maxBody), 200, `"structuredContent"`)
	s.want(t, "too long a body", "POST", "", body(maxBody+1), 413)
	s.script.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		return append(append(append(dst, `{"x":"`...), strings.Repeat("<é>", 1<<20)...), `"}`...), method.Outcome{}
	}
	r := s.want(t, "a long answer", "POST", "", callText("read_messages", `{}`), 200)
	if r.ContentLength != int64(len(r.body)) || len(r.body) < 5<<20 {
		t.Errorf("Content-Length %d of %d bytes", r.ContentLength, len(r.body))
	}
}

// TestPending: bodies and answers of all requests together are bounded.
func TestPending(t *testing.T) {
	s := start(t, Config{Surface: method.Surface{Pending: method.NewBudget(512 << 10)}})
	s.script.answer = func(dst []byte, _ *method.Caller, _ *method.Row, doc []byte) ([]byte, method.Outcome) {
		return append(append(append(dst, `{"x":"`...), strings.Repeat("x", 10*len(doc))...), `"}`...), method.Outcome{}
	}
	call := func(n int) string {
		return callText("read_messages", `{"x":"`+strings.Repeat("x", n)+`"}`)
	}
	s.want(t, "as much as fits", "POST", "", call(10<<10), 200, `"structuredContent"`)
	res := s.want(t, "too long an answer", "POST", "", call(20<<10), 200).result(t).Result
	wantEnvelope(t, "too long an answer", res.Content[0].Text, "INTERNAL")
	r := s.want(t, "too long a body", "POST", "", call(600<<10), 503)
	if wantEnvelope(t, "too long a body", r.body, "INTERNAL"); r.Header.Get("Retry-After") != "1" || !r.Close {
		t.Error(r.Header, r.Close)
	}
	s.want(t, "a small one", "POST", "", call(1), 200, `"structuredContent"`)
	if calls, _ := s.taken(); len(calls) != 3 {
		t.Errorf("%d calls", len(calls))
	}
	var held int
	for deadline := time.Now().Add(20 * time.Second); !s.cfg.Pending.Fit(&held, 512<<10); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was answered stays")
		}
	}
}

// TestFrontOfLateBodies checks the answer to a body that does not come in time.
func TestFrontOfLateBodies(t *testing.T) {
	s := newScripted()
	w := httptest.NewRecorder()
	r := request("POST", "http://127.0.0.1/mcp", "", "")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"jsonrpc":`), iotest.ErrReader(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded})))
	s.Handler.ServeHTTP(w, r)
	if body := w.Body.String(); w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" || strings.Contains(body, "read") {
		t.Errorf("%d %v %q", w.Code, w.Header(), body)
	}
}

// FuzzFront compares the front with the SDK.
func FuzzFront(f *testing.F) {
	tool := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_thread","arguments":{"thread_id":"<é\u2028>","n":[1,-2.5,0.10]}}}`)
	newer := []byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"get_thread","arguments":{"thread_id":"x"},"_meta":{` + newMeta +
		`{"roots":{"listChanged":true},"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"}}}}`)
	for i := range versions {
		f.Add(uint8(i), "tools/call", "get_thread", "application/json", "application/json, text/event-stream", tool)
		f.Add(uint8(i), "tools/call", "get_thread", "application/json; charset=utf-8", "*/*", newer)
	}
	f.Add(uint8(0), "", "", "Application/JSON", "text/*;q=1, application/*", []byte(`{"jsonrpc":"2.0","id":1,"method":"nope"} `))
	f.Add(uint8(2), "", "", "application/json", "",
		[]byte(`[{"jsonrpc":"2.0","id":1.50,"method":"ping"},{"jsonrpc":"2.0","method":"x"},`+string(tool)+`]`))
	f.Add(uint8(5), "nope", "", "application/json", "", []byte(`{"id":1,"method":"prompts/list","jsonrpc":"2.0","params":{}}{}`))
	s := newScripted()
	f.Fuzz(func(t *testing.T, version uint8, rpc, name, media, accept string, body []byte) {
		lines := head("Content-Type: x\nAccept: x\nMcp-Method: x\nMcp-Name: x\nMcp-Protocol-Version: " + versions[int(version)%len(versions)])
		for _, r := range []string{rpc, name, media, accept} {
			if strings.ContainsFunc(r, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				return // no such field reaches a handler
			}
		}
		lines += head("\nMcp-Method: " + rpc + "\nMcp-Name: " + name + "\nContent-Type: " + media + "\nAccept: " + accept)
		if version%uint8(len(versions)) == 0 {
			lines += "\n-Mcp-Protocol-Version"
		}
		compare(t, s, lines, string(body))
	})
}

package rest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

func TestAnswersByteForByte(t *testing.T) {
	s := start(t, Config{Surface: method.Surface{ResourceMetadata: "https://x/m"}})
	p := s.dial(t)
	f := func(request, want string) {
		t.Helper()
		p.write(request)
		if got := p.read(request, strings.Fields(request)[0]).raw; got != strings.ReplaceAll(want, "\n", "\r\n") {
			t.Errorf("%s\n%s\nwant\n%s", request, got, want)
		}
	}
	const head = "Cache-Control: no-store\nContent-Type: application/json; charset=utf-8\n"
	const unauthorized = `{"error":{"code":"UNAUTHORIZED","message":"the bearer token is not accepted","request_id":"req_1","retryable":false,"spec_code":"UNAUTHORIZED","legacy_code":"UNAUTHORIZED","details":{"reason":"missing"}},"request_id":"req_1","occurred_at":"2026-02-17T12:05:00.000Z"}`
	f(post("/v1/ack_read", "", "{}"), "HTTP/1.1 200 OK\n"+head+"X-Request-Id: req_1\nContent-Length: 11\n\n{\"ok\":true}")
	f(post("/v1/mcp/ack_read", "x-request-id: mine\n", "{}"), "HTTP/1.1 200 OK\n"+head+"X-Request-Id: mine\nContent-Length: 11\n\n{\"ok\":true}")
	f("POST /v1/ack_read HTTP/1.1\nHost: x\n\n", "HTTP/1.1 401 Unauthorized\n"+head+
		"Www-Authenticate: Bearer resource_metadata=\"https://x/m\"\nX-Request-Id: req_1\nContent-Length: "+strconv.Itoa(len(unauthorized))+"\n\n"+unauthorized)
	f("GET /health HTTP/1.1\nHost: x\n\n", "HTTP/1.1 200 OK\n"+head+"X-Request-Id: req_1\nContent-Length: 67\n\n"+`{"ok":true,"service":"bridge-api","now":"2026-02-17T12:05:00.000Z"}`)
	f("HEAD /health HTTP/1.1\nHost: x\n\n", "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Length: 67\nContent-Type: application/json; charset=utf-8\nX-Request-Id: req_1\n\n")
	const notFound = `{"error":{"code":"NOT_FOUND","message":"there is no method or path \"/nope\"","request_id":"req_1","retryable":false,"spec_code":"NOT_FOUND","legacy_code":"NOT_FOUND"},"request_id":"req_1","occurred_at":"2026-02-17T12:05:00.000Z"}`
	f("GET /nope?token=x HTTP/1.1\nHost: x\n\n", "HTTP/1.1 404 Not Found\n"+head+"X-Request-Id: req_1\nContent-Length: "+strconv.Itoa(len(notFound))+"\n\n"+notFound)
}

// TestEveryMethodOnBothPaths checks names, dialects and what the dispatcher is given.
func TestEveryMethodOnBothPaths(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	f := func(request string, want string) {
		t.Helper()
		p.write(request)
		p.want(request, 200)
		if calls, _ := s.taken(); !slices.Equal(calls, []string{want}) {
			t.Errorf("%s: calls %q, want %q", request, calls, want)
		}
	}
	for _, name := range methodNames {
		f(post("/v1/"+name, "", `{"a":1}`), "0 "+name+` req_1 false false {"a":1}`)
		f(post("/v1/mcp/"+name, "", `{"a":1}`), "1 "+name+` req_1 false false {"a":1}`)
	}
	f(post("/v1/ack_read?x=%zz&/y", "", "{}"), "0 ack_read req_1 false false {}")
	f(post("http://elsewhere/v1/mcp/ack_read", "", "{}"), "1 ack_read req_1 false false {}")
	f(post("/v1/ack_read", "X-Error-Dialect: legacy\n", "{}"), "1 ack_read req_1 false false {}")
	f(post("/v1/mcp/ack_read", "X-Error-Dialect: spec\n", "{}"), "0 ack_read req_1 false false {}")
	f(post("/v1/mcp/ack_read", "X-Error-Dialect: Spec\n", "{}"), "1 ack_read req_1 false false {}")
	f(post("/v1/mcp/ack_read", "X-Error-Dialect: spec\nX-Error-Dialect: spec\n", "{}"), "1 ack_read req_1 false false {}")
	f(post("/v1/ack_read", "X-Request-Id: a!~\n", "{}"), "0 ack_read a!~ true false {}")
	f(post("/v1/ack_read", "X-Request-Id: "+strings.Repeat("i", 200)+"\n", "{}"), "0 ack_read "+strings.Repeat("i", 200)+" true false {}")
	for _, bad := range []string{"", "a b", "é", strings.Repeat("i", 201), "a\nX-Request-Id: b"} {
		f(post("/v1/ack_read", "X-Request-Id: "+bad+"\n", "{}"), "0 ack_read req_1 false true {}")
	}
	f(post("/v1/ack_read", "", "\xef\xbb\xbf{}"), "0 ack_read req_1 false false {}")
	f(post("/v1/ack_read", "", "\xef\xbb\xbf\xef\xbb\xbf{}"), "0 ack_read req_1 false false \xef\xbb\xbf{}")
	f(post("/v1/ack_read", "", ""), "0 ack_read req_1 false false ")
	const chunked = "POST /v1/ack_read HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
	f(chunked+"1\n{\n5;x=y\n\"a\":1\n1\n}\n0\nT: v\n\n", `0 ack_read req_1 false false {"a":1}`)
}

// TestEveryPairOfGates fails each subset of the gates, and wants the answer of the first.
func TestEveryPairOfGates(t *testing.T) {
	s := start(t, Config{Limits: Limits{BodyBytes: 100}})
	s.answer = func(dst []byte, _ *method.Caller, _ *method.Row, doc []byte) ([]byte, method.Outcome) {
		if doc[0] != '{' {
			return dst, method.Outcome{Fault: &method.Fault{Condition: method.Invalid, Message: "no object"}}
		}
		return append(dst, "{}"...), method.Outcome{}
	}
	gates := []struct {
		name, good, bad string
		status          int
	}{
		{"token", "good", "bad", 401},
		{"path", "/v1/get_thread", "/v1/get_threads", 404},
		{"HTTP method", "POST", "PUT", 405},
		{"media type", "application/json", "text/plain", 415},
		{"size", "", strings.Repeat(" ", 200), 413},
		{"document", "{}", "[]", 400},
	}
	for set := range 1 << len(gates) {
		v, status, why := make([]string, len(gates)), 0, ""
		for i, g := range gates {
			if v[i] = g.good; set&(1<<i) != 0 {
				v[i], why = g.bad, why+" "+g.name
				if status == 0 {
					status = g.status
				}
			}
		}
		s.pass(time.Second) // the limit of failed authentications is another test
		body := v[5] + v[4]
		p := s.dial(t)
		p.write(v[2] + " " + v[1] + " HTTP/1.1\nHost: x\nAuthorization: Bearer " + v[0] + "\nContent-Type: " + v[3] + "\nContent-Length: " + strconv.Itoa(len(body)) + "\n\n" + body)
		if status == 0 {
			p.want("no gate", 200)
			s.taken()
			continue
		}
		r, e := p.wantError(why, status, codeOf(status))
		if allow := r.Header.Get("Allow"); (allow == "POST") != (status == 405) {
			t.Errorf("%s: Allow %q", why, allow)
		}
		if challenge := r.Header.Get("WWW-Authenticate"); (challenge == `Bearer error="invalid_token"`) != (status == 401) || status == 401 && string(e.Error.Details) != `{"reason":"expired"}` {
			t.Errorf("%s: %q %s", why, challenge, e.Error.Details)
		}
		if v[4] != "" {
			p.wantClosed(why, r)
		} else {
			p.wantOpen(why)
		}
		if calls, refused := s.taken(); (len(calls) > 0) != (status == 400) || (len(refused) > 0) != (status == 401) {
			t.Errorf("%s: calls %q, refused %q", why, calls, refused)
		}
	}
}

func codeOf(status int) string {
	return map[int]string{401: "UNAUTHORIZED", 404: "NOT_FOUND"}[status] + map[bool]string{true: "VALIDATION_ERROR"}[status != 401 && status != 404]
}

// TestRefusalsThatKeepTheConnection walks through the rows of threads §8 about HTTP, on one
// connection. Each runs with and without a body.
func TestRefusalsThatKeepTheConnection(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	f := func(line, lines string, status int, code string) reply {
		t.Helper()
		s.pass(time.Second)
		p.write(line + " HTTP/1.1\nHost: x\n" + lines + "\n")
		r, _ := p.wantError(line, status, code)
		for _, body := range []string{"Content-Length: 400000\n\n" + strings.Repeat("x", 400000), "Transfer-Encoding: chunked\n\n3\nabc\n0\n\n"} {
			s.pass(time.Second)
			p.write(line + " HTTP/1.1\nHost: x\n" + lines + body)
			if r, _ := p.wantError(line+" with a body", status, code); r.Close {
				t.Errorf("%s: Connection: close", line)
			}
		}
		return r
	}
	const good, json = "Authorization: Bearer good\n", "Content-Type: application/json\n"
	for _, bad := range []string{"", "Authorization: Basic x\n", "Authorization: Bearer\n", "Authorization: Bearer a b\n", "Authorization: Bearer good, Bearer good\n",
		good + good, "Authorization: Bearer \tgood\n", "Authorization: good\n", "Authorization: Bearer " + strings.Repeat("a", 8193) + "\n", "Authorization: Bearer strange\n"} {
		want := "Bearer"
		if strings.Contains(bad, "Bearer") {
			want += ` error="invalid_token"`
		}
		if r := f("POST /v1/get_thread", bad+json, 401, "UNAUTHORIZED"); r.Header.Get("WWW-Authenticate") != want {
			t.Errorf("%.40s: %v, want %s", bad, r.Header, want)
		}
	}
	f("POST /v1/", json, 401, "UNAUTHORIZED")
	f("GET /v1/nope", json, 401, "UNAUTHORIZED")
	if r := f("POST /v1/get_thread", "Authorization: Bearer nokeys\n", 503, "INTERNAL"); r.Header.Get("Retry-After") != "1" || r.Header["Www-Authenticate"] != nil {
		t.Errorf("no keys: %v", r.Header)
	}
	if r := f("POST /v1/get_thread", "Authorization: Bearer newkey\n", 401, "UNAUTHORIZED"); r.Header.Get("Retry-After") != "20" {
		t.Errorf("a key that may come: %v", r.Header)
	}
	f("POST /v1/get_thread", "Authorization: Bearer elsewhere\n", 403, "OUT_OF_SCOPE_WORKSPACE")
	f("POST /v1/mcp/get_thread", "Authorization: Bearer elsewhere\n", 403, "WORKSPACE_MISMATCH")
	for _, path := range []string{"/v1/mcp/nope", "/v1/mcp/constructor", "/v1/mcp/__proto__", "/v1/mcp/get_thread/", "/v1/get_thread/", "/v1/mcp/", "/v1/mcp", "/v1/",
		"/v1/Get_thread", "/v1/get%5fthread", "/v1//get_thread", "/v1/./get_thread", "/v1/get_thread#x", "/v1/mcp/mcp/get_thread", "/v1/audit", "/v1/toString"} {
		f("POST "+path, good+json, 404, "NOT_FOUND")
	}
	for _, path := range []string{"/nope", "/", "//v1/get_thread", "/V1/get_thread", "/%76%31/get_thread", "*", "/v1", "/mcp", "/health/", "/.well-known/oauth-protected-resource"} {
		f("POST "+path, "", 404, "NOT_FOUND")
	}
	f("OPTIONS *", "", 404, "NOT_FOUND")
	f("POST /\x80\xff"+strings.Repeat("é", 200), "", 404, "NOT_FOUND")
	for _, m := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post"} {
		if r := f(m+" /v1/get_thread", good, 405, "VALIDATION_ERROR"); r.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %v", m, r.Header)
		}
		f(m+" /v1/mcp/get_thread", good, 405, "INVALID_ARGUMENT")
	}
	if r := f("POST /health", "", 405, "VALIDATION_ERROR"); r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%v", r.Header)
	}
	for _, kind := range []string{"", "Content-Type: text/plain\n", "Content-Type: application/x-www-form-urlencoded\n", json + json, json + "Content-Encoding: gzip\n",
		"Content-Type: application/json; charset=latin1\n"} {
		f("POST /v1/get_thread", good+kind, 415, "VALIDATION_ERROR")
	}
	f("POST /v1/get_thread", good+"X-Error-Dialect: legacy\n", 415, "INVALID_ARGUMENT")
	p.wantOpen("after all refusals")
}

func TestAcceptedHeads(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	f := func(lines string) {
		t.Helper()
		p.write("POST /v1/get_thread HTTP/1.1\nHost: x\n" + lines + "Content-Length: 2\n\n{}")
		p.want(lines, 200)
	}
	const good, json = "Authorization: Bearer good\n", "Content-Type: application/json\n"
	f("authorization: bearer good\n" + json)
	f("Authorization: BEARER   good\n" + json)
	f(good + "Content-Type: Application/JSON\n")
	f(good + "content-type: application/json; charset=UTF-8\n")
	f(good + "Content-Type: application/json; charset=\"utf-8\"; x=y\n")
	f(good + "Content-Type: application/json;\n")
	f(good + "Content-Type: application/json; odd\n")
	f(good + json + "Content-Encoding: identity\n")
}

// TestTheWorkedToken checks the whole way with the verifier of the server (threads §9).
func TestTheWorkedToken(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := token.New(token.Config{HS256SecretFile: secret, Issuer: "https://issuer.example"})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	s := start(t, Config{Surface: method.Surface{Verify: v.Verify}})
	const worked = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoib3JraXZhIiwiYWdlbnRfaWQiOiJyZXZpZXdlcl9hZ2VudCIsIndvcmtzcGFjZV9pZCI6IndrX21vYmlsZV9jb3JlIiwicm9sZSI6InBhcnRpY2lwYW50Iiwic2Vzc2lvbl9pZCI6InNlc3NfcnZfMTIiLCJpYXQiOjE3NzEzMjk2MDAsImV4cCI6NDEwMjQ0NDgwMCwianRpIjoianRpLTAwMDEifQ.vYKo_JgWRjKiA_WU5XzqUVI1JVpeC2e5zrrkja-Nqo4"
	s.answer = func(dst []byte, c *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		return append(append(append(dst, `{"agent":"`...), c.Claims.Agent...), `"}`...), method.Outcome{}
	}
	p := s.dial(t)
	p.write(strings.Replace(post("/v1/get_thread", "", "{}"), "good", worked, 1))
	if r := p.want("worked", 200); r.body != `{"agent":"reviewer_agent"}` {
		t.Error(r.body)
	}
	p.write(strings.Replace(post("/v1/get_thread", "", "{}"), "good", worked[:len(worked)-4]+"AAAA", 1))
	if _, e := p.wantError("other signature", 401, "UNAUTHORIZED"); string(e.Error.Details) != `{"reason":"bad_signature"}` {
		t.Errorf("%s", e.Error.Details)
	}
}

func TestOutcomes(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	f := func(why string, o method.Outcome, status int) (reply, envelope) {
		t.Helper()
		s.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
			return append(dst, `{"seq":1}`...), o
		}
		p.write(post("/v1/post_message", "", "{}"))
		if o.Fault == nil && status == 200 {
			return p.want(why, 200), envelope{}
		}
		r, e := p.wantError(why, status, map[int]string{429: "RATE_LIMITED", 503: "INTERNAL", 403: "FORBIDDEN", 409: "CONFLICT"}[status])
		p.wantOpen(why)
		return r, e
	}
	if r, _ := f("plain", method.Outcome{}, 200); r.body != `{"seq":1}` || r.Header["X-Idempotent-Replay"] != nil || len(s.awaited) > 0 {
		t.Errorf("%s %v, awaited %v", r.body, r.Header, s.awaited)
	}
	if r, _ := f("replay", method.Outcome{Replay: true, Index: 7}, 200); r.body != `{"seq":1}` || r.Header.Get("x-idempotent-replay") != "true" || !slices.Equal(s.awaited, []uint64{7}) {
		t.Errorf("%s %v, awaited %v", r.body, r.Header, s.awaited)
	}
	fault := func(c method.Condition, details string) method.Outcome {
		o := method.Outcome{Fault: &method.Fault{Condition: c, Message: "m"}, Index: 9}
		if details != "" {
			o.Fault.Details = []byte(details)
		}
		return o
	}
	f("fault", fault(method.Conflict, ""), 409)
	if !slices.Equal(s.awaited, []uint64{7, 9}) {
		t.Errorf("awaited %v: a refusal waits for what it shows", s.awaited)
	}
	f("role", fault(method.Forbidden, ""), 403)
	if _, refused := s.taken(); !slices.Equal(refused, []string{"mcp.post_message FORBIDDEN lead"}) {
		t.Errorf("refused %q", refused)
	}
	retry := func(details, want string) {
		t.Helper()
		if r, e := f("quota "+details, fault(method.RateLimited, details), 429); r.Header.Get("Retry-After") != want || !e.Error.Retryable {
			t.Errorf("%s: %v", details, r.Header)
		}
	}
	retry("", "1")
	retry(`{"retry_after_ms":1}`, "1")
	retry(`{"retry_after_ms":1000}`, "1")
	retry(`{"x":{"retry_after_ms":5000},"retry_after_ms":1001}`, "2")
	retry(`{"retry_after_ms":9223372036854775807}`, "9223372036854776")
	retry(`{"retry_after_ms":-1}`, "1")
	retry(`{"retry_after_ms":"5000"}`, "1")
	s.await = func(uint64) error { return errors.New("stopped") }
	if r, e := f("the journal stopped", method.Outcome{Index: 1, Replay: true}, 503); r.Header.Get("Retry-After") != "1" || r.Header["X-Idempotent-Replay"] != nil || !e.Error.Retryable {
		t.Errorf("%v", r.Header)
	}
}

// TestStatusOfTheDialect uses the one condition whose status differs.
func TestStatusOfTheDialect(t *testing.T) {
	s := start(t, Config{})
	s.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		return dst, method.Outcome{Fault: &method.Fault{Condition: method.NoSuchMessage, Message: "m"}}
	}
	p := s.dial(t)
	p.write(post("/v1/post_message", "", "{}"))
	p.wantError("spec", 404, "NOT_FOUND")
	p.write(post("/v1/mcp/post_message", "", "{}"))
	p.wantError("legacy", 400, "INVALID_ARGUMENT")
}

func TestPipelinedRequests(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	text := post("/v1/get_thread", "X-Request-Id: 1\n", "{}") + "GET /nope HTTP/1.1\nHost: x\nX-Request-Id: 2\n\n" +
		strings.Replace(post("/v1/get_thread", "X-Request-Id: 3\n", "{}"), "good", "bad", 1) + post("/v1/mcp/ack_read", "X-Request-Id: 4\n", "{}")
	p.write(text)
	for i, status := range []int{200, 404, 401, 200} {
		if r := p.want("pipelined", status); r.Header.Get("X-Request-Id") != strconv.Itoa(i+1) {
			t.Errorf("answer %d has the id of %s", i+1, r.Header.Get("X-Request-Id"))
		}
	}
	p = s.dial(t)
	for _, b := range []byte(strings.ReplaceAll(post("/v1/get_thread", "", "{}"), "\n", "\r\n")) {
		if _, err := p.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	p.want("byte by byte", 200)
}

func TestHeadHasNoBody(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	f := func(line string, status int) {
		t.Helper()
		p.write(line + " HTTP/1.1\nHost: x\nAuthorization: Bearer good\n\n")
		if r := p.read(line, "HEAD"); r.StatusCode != status || r.ContentLength < 1 || r.body != "" {
			t.Errorf("%s: %s", line, r.raw)
		}
	}
	f("HEAD /v1/get_thread", 405)
	f("HEAD /nope", 404)
	f("HEAD /ready", 200)
	f("HEAD /metrics", 200)
	p.wantOpen("HEAD")
}

func TestPanicIsADefect(t *testing.T) {
	var log lines
	s := start(t, Config{Surface: method.Surface{Logger: log.logger(0)}})
	s.answer = func([]byte, *method.Caller, *method.Row, []byte) ([]byte, method.Outcome) { panic("boom") }
	p := s.dial(t)
	p.write(post("/v1/get_thread", "", "{}"))
	if r, _ := p.wantError("panic", 500, "INTERNAL"); strings.Contains(r.raw, "boom") || r.Close {
		t.Error(r.raw)
	}
	p.wantOpen("panic")
	if text := log.text(); !strings.Contains(text, `"panic":"boom"`) || !strings.Contains(text, "TestPanicIsADefect") {
		t.Error(text)
	}
}

// TestHTTP10 checks that an older client gets a length and its connection's end.
func TestHTTP10(t *testing.T) {
	s := start(t, Config{})
	p := s.dial(t)
	p.write("POST /v1/get_thread HTTP/1.0\nAuthorization: Bearer bad\nContent-Length: 2\n\n{}")
	r, _ := p.wantError("1.0", 401, "UNAUTHORIZED")
	if r.ContentLength < 1 {
		t.Error(r.raw)
	}
	p.wantEnd("1.0")
}

// TestUnixSocket checks a transport without addresses.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "web")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	p := startOn(t, ln, Config{}).dial(t)
	p.write("POST /v1/get_thread HTTP/1.1\nHost: x\n\n")
	p.wantError("no token", 401, "UNAUTHORIZED")
	p.wantOpen("no token")
}

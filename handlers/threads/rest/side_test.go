package rest

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/handlers/threads/method"
)

func TestHealthAndReadiness(t *testing.T) {
	var ready atomic.Bool
	s := start(t, Config{Unready: func() string {
		if ready.Load() {
			return ""
		}
		return "key_set"
	}})
	p := s.dial(t)
	f := func(path string, status int, body string) reply {
		t.Helper()
		p.write("GET " + path + " HTTP/1.1\nHost: x\n\n")
		r := p.want(path, status)
		if r.body != body {
			t.Errorf("%s: %s, want %s", path, r.body, body)
		}
		return r
	}
	const rest = `,"service":"bridge-api","now":"2026-02-17T12:05:00.000Z"`
	f("/health", 200, `{"ok":true`+rest+"}")
	if r := f("/ready", 503, `{"ok":false`+rest+`,"reason":"key_set"}`); r.Header.Get("Retry-After") != "1" {
		t.Errorf("%v", r.Header)
	}
	ready.Store(true)
	f("/ready?x", 200, `{"ok":true`+rest+"}")
}

func TestMetrics(t *testing.T) {
	s := start(t, Config{Metrics: func(dst []byte) []byte { return append(dst, "thread_messages_total 7\n"...) }, MCP: http.NotFoundHandler()})
	p := s.dial(t)
	for _, request := range []string{post("/v1/get_thread", "", "{}"), post("/v1/mcp/get_thread", "", "{}"), "PUT /v1/get_thread HTTP/1.1\nHost: x\n\n",
		"BREW /v1/secret-path HTTP/1.1\nHost: x\nAuthorization: Bearer good\n\n", "GET /health HTTP/1.1\nHost: x\n\n", "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
		"GET /metrics HTTP/1.1\nHost: x\n\n"} {
		p.write(request)
		p.read(request, http.MethodPost)
	}
	p.write("GET /metrics HTTP/1.1\nHost: x\n\n")
	r := p.want("metrics", 200)
	if r.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("%v", r.Header)
	}
	got := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.body), "\n"), func(l string) bool { return strings.HasPrefix(l, "bridge_request_duration_ms_total{") })
	want := []string{"# HELP bridge_requests_total Answers over HTTP.", "# TYPE bridge_requests_total counter",
		`bridge_requests_total{operation="other",method="other",status_code="404"} 1`,
		`bridge_requests_total{operation="mcp.get_thread",method="POST",status_code="200"} 2`,
		`bridge_requests_total{operation="mcp.get_thread",method="PUT",status_code="401"} 1`,
		`bridge_requests_total{operation="GET /health",method="GET",status_code="200"} 1`,
		`bridge_requests_total{operation="GET /metrics",method="GET",status_code="200"} 1`,
		`bridge_requests_total{operation="mcp_endpoint",method="POST",status_code="404"} 1`,
		"# HELP bridge_request_duration_ms_total Time of all requests, in milliseconds.", "# TYPE bridge_request_duration_ms_total counter",
		"# HELP bridge_errors_total Error envelopes over HTTP, by the code of the spec dialect.", "# TYPE bridge_errors_total counter",
		`bridge_errors_total{code="NOT_FOUND"} 1`, `bridge_errors_total{code="UNAUTHORIZED"} 1`,
		"thread_messages_total 7"}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range append([]string{"GET /health", "GET /ready", "GET /metrics", "mcp_endpoint", "other"}, methodNames...) {
		if strings.Contains(name, "_") && name != "mcp_endpoint" {
			name = "mcp." + name
		}
		if !strings.Contains(r.body, `bridge_request_duration_ms_total{operation="`+name+`"} `) {
			t.Errorf("no duration of %s", name)
		}
	}
}

func TestDurationIsInMilliseconds(t *testing.T) {
	m := metrics{}
	label := m.name("x")
	m.count(label, "GET", 299, 1500*time.Microsecond)
	m.count(label, "GET", 299, -time.Second)
	for _, want := range []string{`bridge_request_duration_ms_total{operation="x"} 1.5` + "\n", `bridge_requests_total{operation="x",method="GET",status_code="other"} 2` + "\n"} {
		if text := string(m.append(nil)); !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestExtensions(t *testing.T) {
	var fault *method.Fault
	extension := func(name string) Extension {
		return func(c *method.Caller, query url.Values, dst []byte) ([]byte, *method.Fault) {
			if fault != nil {
				return dst, fault
			}
			return fmt.Appendf(dst, `{"name":"%s","agent":"%s","limit":"%s"}`, name, c.Claims.Agent, query.Get("limit")), nil
		}
	}
	s := start(t, Config{Audit: extension("audit"), Jobs: extension("jobs")})
	p := s.dial(t)
	f := func(line string) {
		t.Helper()
		p.write(line + " HTTP/1.1\nHost: x\nAuthorization: Bearer good\n\n")
	}
	f("GET /v1/audit?limit=5&after=%31")
	if r := p.want("audit", 200); r.body != `{"name":"audit","agent":"lead","limit":"5"}` {
		t.Error(r.body)
	}
	f("GET /v1/trigger_jobs?limit=6")
	if r := p.want("jobs", 200); r.body != `{"name":"jobs","agent":"lead","limit":"6"}` {
		t.Error(r.body)
	}
	f("GET /v1/audit?limit=%zz")
	p.wantError("query", 400, "VALIDATION_ERROR")
	f("POST /v1/audit")
	if r, _ := p.wantError("POST", 405, "VALIDATION_ERROR"); r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%v", r.Header)
	}
	p.write("GET /v1/audit HTTP/1.1\nHost: x\n\n")
	p.wantError("no token", 401, "UNAUTHORIZED")
	fault = &method.Fault{Condition: method.Forbidden, Message: "m"}
	f("GET /v1/audit")
	p.wantError("role", 403, "FORBIDDEN")
	if _, refused := s.taken(); !slices.Equal(refused, []string{"GET /v1/audit UNAUTHORIZED nobody", "GET /v1/audit FORBIDDEN lead"}) {
		t.Errorf("%q", refused)
	}
}

func TestMountedHandlers(t *testing.T) {
	mount := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("X-Case") {
			case "401":
				w.Header().Set("Content-Length", "2")
				w.Header().Set("Www-Authenticate", "Bearer")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = w.Write([]byte("no"))
			case "panic":
				panic("boom")
			case "late panic":
				_, _ = w.Write([]byte("half"))
				w.(http.Flusher).Flush()
				panic("boom")
			case "abort":
				panic(http.ErrAbortHandler)
			case "nothing":
			case "deadline":
				if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
					t.Error(err)
				}
			default:
				_, _ = w.Write([]byte(name + " " + r.Method))
			}
		})
	}
	s := start(t, Config{MCP: mount("mcp"), Metadata: mount("metadata")})
	p := s.dial(t)
	ask := func(line, kind string) *peer {
		p.write(line + " HTTP/1.1\nHost: x\nX-Case: " + kind + "\nContent-Length: 2\n\n{}")
		return p
	}
	f := func(line, body string) {
		t.Helper()
		if r := ask(line, "").want(line, 200); r.body != body {
			t.Errorf("%s: %s", line, r.body)
		}
	}
	f("POST /mcp", "mcp POST")
	f("DELETE /mcp?x=y", "mcp DELETE")
	f("GET /.well-known/oauth-protected-resource", "metadata GET")
	f("OPTIONS /.well-known/oauth-protected-resource/mcp", "metadata OPTIONS")
	ask("POST /mcp", "nothing").want("nothing", 200)
	ask("POST /mcp", "deadline").want("deadline", 200)
	f("POST /mcp/", "mcp POST")
	ask("POST /mcp/x", "").wantError("not exact", 404, "NOT_FOUND")
	ask("POST /mcp", "panic").wantError("panic", 500, "INTERNAL")
	if r := ask("POST /mcp", "401").want("401", 401); r.body != "no" || r.Header.Get("X-Request-Id") != "req_1" {
		t.Error(r.body, r.Header)
	}
	f("POST /mcp", "mcp POST")
	p.wantOpen("mounted")
	if r, err := http.ReadResponse(ask("POST /mcp", "late panic").in, nil); err == nil {
		r.Body.Close()
	}
	p = s.dial(t)
	ask("POST /mcp", "abort").wantEnd("abort")
}

// TestLogLines checks what a line has, and at which level.
func TestLogLines(t *testing.T) {
	var all, some lines
	for log, level := range map[*lines]slog.Level{&all: slog.LevelDebug, &some: slog.LevelInfo} {
		s := start(t, Config{Surface: method.Surface{Logger: log.logger(level)}})
		p := s.dial(t)
		p.write(post("/v1/get_thread", "X-Request-Id: mine\n", `{"secret":1}`))
		p.want("success", 200)
		p.write(strings.Replace(post("/v1/get_thread", "", `{"secret":1}`), "good", "badsecret", 1))
		p.want("refusal", 401)
		p.wantOpen("the lines are written") // after the answer
	}
	if text := all.text(); !strings.Contains(text,
		`"level":"DEBUG","msg":"request","request_id":"mine","operation":"mcp.get_thread","status":200,"duration_secs":0.`) ||
		strings.Contains(text, "secret") {
		t.Error(text)
	}
	if text := some.text(); strings.Count(text, "\n") != 1 ||
		!strings.Contains(text,
			`"level":"INFO","msg":"request","request_id":"req_1","operation":"mcp.get_thread","status":401,"duration_secs":0.`) {
		t.Error(text)
	}
}

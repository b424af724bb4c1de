package ops

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trunkline/engine/obs"
	"trunkline/fuzz/kit"
)

func TestMain(m *testing.M) { kit.Leaks(m) }

func newConfig(t *testing.T) Config {
	t.Helper()
	b := obs.ReadBuild("v9", "rev")
	r, err := obs.NewRegistry(b)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Addr: "127.0.0.1:0", Live: func() error { return nil }, Ready: new(Readiness),
		Recovery: func() *Recovery { return nil }, Store: func() Store { return Store{Mode: "memory", Warnings: []string{}} },
		Registry: r, Build: b, Logger: slog.New(slog.DiscardHandler),
	}
}

// ask sends one request to the handler and returns status and body.
func ask(c Config, method, path string) (int, string, http.Header) {
	w := httptest.NewRecorder()
	handler(c).ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, w.Body.String(), w.Result().Header
}

func TestRoutes(t *testing.T) {
	c := newConfig(t)
	f := func(method, path string, status int, body string) {
		t.Helper()
		code, got, _ := ask(c, method, path)
		if code != status || !strings.Contains(got, body) {
			t.Errorf("%s %s = %d %q, want %d with %q", method, path, code, got, status, body)
		}
	}
	f("GET", "/healthz", 200, `{"alive":true}`)
	f("HEAD", "/healthz", 200, "")
	f("GET", "/readyz", 200, `{"ready":true,"reasons":[]}`)
	f("GET", "/version", 200, `"version":"v9","revision":"rev"`)
	f("GET", "/metrics", 200, "trunkline_build_info{")
	f("GET", "/nope", 404, "")
	f("GET", "/debug/pprof/", 404, "")
	c.Pprof = true
	f("GET", "/debug/pprof/", 200, "goroutine")
	f("GET", "/debug/pprof/cmdline", 200, "")
}

func TestOnlyReading(t *testing.T) {
	c := newConfig(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT"} {
		for _, path := range []string{"/healthz", "/metrics", "/nope"} {
			code, _, h := ask(c, method, path)
			if code != http.StatusMethodNotAllowed || h.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s = %d, Allow %q", method, path, code, h.Get("Allow"))
			}
		}
	}
}

// TestOrders: Config.Orders answers what is below its paths, POST included, and nothing else.
func TestOrders(t *testing.T) {
	c := newConfig(t)
	f := func(method, path string, want int) {
		t.Helper()
		if code, _, _ := ask(c, method, path); code != want {
			t.Errorf("%s %s = %d, want %d", method, path, code, want)
		}
	}
	all := []string{"/threads/x/erase", "/agents/w/a/erase", "/erasures"}
	for _, path := range all {
		f("POST", path, http.StatusMethodNotAllowed)
		f("GET", path, http.StatusNotFound)
	}
	c.Orders = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, path := range all {
		f("POST", path, http.StatusTeapot)
		f("GET", path, http.StatusTeapot)
		f("DELETE", path, http.StatusMethodNotAllowed)
	}
	f("POST", "/threads", http.StatusMethodNotAllowed)
	f("POST", "/metrics", http.StatusMethodNotAllowed)
	c.Guard = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	}
	f("POST", "/threads/x/erase", http.StatusUnauthorized)
}

func TestHealthShowsTheReason(t *testing.T) {
	c := newConfig(t)
	c.Live = func() error { return errors.New("loop 1 has not ticked for 5s") }
	code, body, _ := ask(c, "GET", "/healthz")
	if code != 503 || !strings.Contains(body, "loop 1 has not ticked") || !strings.Contains(body, `"alive":false`) {
		t.Errorf("healthz = %d %q", code, body)
	}
}

func TestReadinessKeepsReasonsInOrder(t *testing.T) {
	c := newConfig(t)
	f := func(status int, want ...string) {
		t.Helper()
		code, body, _ := ask(c, "GET", "/readyz")
		var got Ready
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if code != status || got.Ready != (len(want) == 0) || strings.Join(got.Reasons, ",") != strings.Join(want, ",") {
			t.Errorf("readyz = %d %+v, want %d %v", code, got, status, want)
		}
	}
	f(200)
	c.Ready.Hold("starting")
	c.Ready.Hold("draining")
	c.Ready.Hold("starting")
	f(503, "starting", "draining")
	c.Ready.Release("starting")
	c.Ready.Release("never held")
	f(503, "draining")
	c.Ready.Release("draining")
	f(200)
}

func TestListenRefusesBeyondLoopback(t *testing.T) {
	f := func(addr string, insecure, ok bool) {
		t.Helper()
		c := newConfig(t)
		c.Addr, c.InsecureBind = addr, insecure
		s, err := Listen(c)
		if ok != (err == nil) {
			t.Errorf("Listen(%q, insecure %v) = %v", addr, insecure, err)
		}
		if s != nil {
			_ = s.Shutdown(context.Background())
		} else if !strings.Contains(err.Error(), "admin.listen_addr") {
			t.Errorf("the error does not name the setting: %v", err)
		}
	}
	f("127.0.0.1:0", false, true)
	f("localhost:0", false, true)
	f("0.0.0.0:0", false, false)
	f(":0", false, false)
	f("0.0.0.0:0", true, true)
	f("127.0.0.1", false, false)
	f("127.0.0.1:99999", false, false)
}

// start serves c and returns the base URL; the server is shut down and checked at the end of the
// test.
func start(t *testing.T, c Config) string {
	t.Helper()
	s, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := net.Dial("tcp", s.Addr()); err == nil {
			t.Error("the listener is open after Shutdown")
		}
	})
	return "http://" + s.Addr()
}

func TestServeAndShutdown(t *testing.T) {
	base := start(t, newConfig(t))
	resp, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || !strings.Contains(string(b), "go_goroutines") {
		t.Errorf("metrics over a socket = %d, %d bytes", resp.StatusCode, len(b))
	}
}

func TestHeaderLimit(t *testing.T) {
	base := start(t, newConfig(t))
	f := func(n, want int) {
		t.Helper()
		req, _ := http.NewRequest("GET", base+"/healthz", nil)
		req.Header.Set("X-Fill", strings.Repeat("a", n))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes = %d, want %d", n, resp.StatusCode, want)
		}
	}
	f(maxHeaderBytes/2, 200)
	// net/http grants 4096 bytes beyond the limit.
	f(maxHeaderBytes+8192, http.StatusRequestHeaderFieldsTooLarge)
}

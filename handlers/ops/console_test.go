package ops

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGuard: what nothing answers, and other ways to write a path, are guarded too. Only probes,
// and scrapes by a setting, are not.
func TestGuard(t *testing.T) {
	c := newConfig(t)
	c.Pprof, c.Projects, c.Console = true, http.NotFoundHandler(), http.NotFoundHandler()
	c.Guard = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	}
	f := func(path string, status int) {
		t.Helper()
		if code, _, _ := ask(c, "GET", path); code != status {
			t.Errorf("%s: %d, want %d", path, code, status)
		}
	}
	for _, path := range []string{"/", "/nope", "/version", "/store", "/exacta/", "/exacta/projects", "/console/",
		"/debug/pprof/", "/debug/pprof/heap", "/metrics", "/metrics/",
		"/healthz/", "/healthz/x", "//healthz", "/healthz/../store", "/%2e/healthz", "/store?x=/healthz", "/Healthz"} {
		f(path, 401)
	}
	f("/healthz", 200)
	f("/readyz", 200)
	f("/%68ealthz", 200)
	c.PublicMetrics = true
	f("/metrics", 200)
	f("/metrics/x", 401)
	f("/metrics/../store", 401)
}

// TestConsole: the web console takes POST, nothing else does, and browsers are led to it.
func TestConsole(t *testing.T) {
	c := newConfig(t)
	f := func(method, path, accept string, status int, body string) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
		r.Header.Set("Accept", accept)
		handler(c).ServeHTTP(w, r)
		if w.Code != status || body != "" && w.Body.String() != body {
			t.Errorf("%s %s = %d %q, want %d %q", method, path, w.Code, w.Body, status, body)
		}
		if w.Code == http.StatusFound && w.Header().Get("Location") != "/console/" {
			t.Errorf("%s leads to %s", path, w.Header().Get("Location"))
		}
	}
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	f("GET", "/", browser, 404, "")
	f("GET", "/console/", browser, 404, "")
	f("POST", "/console/x", browser, 405, "")
	c.Console = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
	})
	f("GET", "/", browser, 302, "")
	f("GET", "/", "*/*", 404, "")
	f("GET", "/nope", browser, 404, "")
	f("GET", "/console/", browser, 200, "GET /console/")
	f("POST", "/console/x", browser, 200, "POST /console/x")
	f("PUT", "/console/x", browser, 405, "")
	f("POST", "/", browser, 405, "")
	f("POST", "/metrics", browser, 405, "")
	f("POST", "/consolex", browser, 405, "")
	f("POST", "/console/../metrics", browser, 307, "")
}

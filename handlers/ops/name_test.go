package ops

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trunkline/handlers/internal/httpd"
)

// TestNames: under loopback only this machine's names are answered, so that no page from elsewhere
// reads the server by a name of its own.
func TestNames(t *testing.T) {
	c := newConfig(t)
	c.Console = http.NotFoundHandler()
	c.AllowedHosts = []string{"Console.example:8443", "box."}
	at := func(addr string) http.Handler {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		return named(ln, httpd.NewHosts(c.AllowedHosts), handler(c))
	}
	loopback, far := at("127.0.0.1:0"), at("0.0.0.0:0")
	f := func(h http.Handler, host, path string, status int) {
		t.Helper()
		q := httptest.NewRequest("GET", path, nil)
		q.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		if w.Code != status || status == 421 && !strings.Contains(w.Body.String(), `"error":"this server answers under localhost`) {
			t.Errorf("%s %s: %d %s, want %d", host, path, w.Code, w.Body, status)
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:1", "127.0.0.1:50090", "127.8.9.1", "[::1]:50090", "[::1]", "",
		"localhost.", "LocalHost.:50090", "console.example", "CONSOLE.example.:443", "box"} {
		f(loopback, host, "/store", 200)
	}
	for _, host := range []string{"evil.example.org", "localhost.evil.org:50090", "10.0.0.1:50090", "0.0.0.0",
		"127.0.0.1.evil.org", "console.example.evil.org", "x.box"} {
		f(loopback, host, "/store", 421)
		f(loopback, host, "/console/", 421)
		f(loopback, host, "/debug/pprof/", 421)
		f(loopback, host, "/metrics/../store", 421)
		f(loopback, host, "/exacta/", 404)
		for _, path := range []string{"/healthz", "/readyz", "/version", "/metrics"} {
			f(loopback, host, path, 200)
		}
		f(far, host, "/store", 200)
	}
	s, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.lns[0].Close()
	f(s.http.HTTP.Handler, "evil.example.org", "/store", 421)
	f(s.http.HTTP.Handler, "console.example", "/store", 200)
}

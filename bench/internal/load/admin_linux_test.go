package load

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit/fakekernel"
)

// admin starts a process that reports the address of a test's admin page.
func admin(t *testing.T, page http.HandlerFunc) *Server {
	t.Helper()
	web := httptest.NewServer(page)
	t.Cleanup(web.Close)
	s, err := StartServer(script("trunkline", "echo admin listening on "+strings.TrimPrefix(web.URL, "http://")+"; echo listening x; exec sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func TestProfile(t *testing.T) {
	kernel := fakekernel.Start(t, 0, nil)
	cfg := Config{Addr: kernel.Addr, Tapes: tapes(2, request("A", "p")), Depth: 4}
	asked := ""
	s := admin(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		if err := pprof.StartCPUProfile(w); err != nil {
			t.Error(err)
		}
		for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		}
		pprof.StopCPUProfile()
	})
	path := filepath.Join(t.TempDir(), "below", "x.pprof")
	if err := s.Profile(cfg, time.Millisecond, 3*time.Second, path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	zipped := bytes.HasPrefix(b, []byte("\x1f\x8b")) // as profiles are
	if asked != "/debug/pprof/profile?seconds=3" || err != nil || !zipped || kernel.Count("A") == 0 {
		t.Errorf("asked for %s; %v, %d bytes, %d requests", asked, err, len(b), kernel.Count("A"))
	}
}

func TestProfileRefuses(t *testing.T) {
	kernel := fakekernel.Start(t, 0, nil)
	cfg := Config{Addr: kernel.Addr, Tapes: tapes(1, request("A", "p")), Depth: 1}
	f := func(s *Server, cfg Config, want string) {
		t.Helper()
		err := s.Profile(cfg, 0, time.Second, filepath.Join(t.TempDir(), "x"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	closed := admin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	f(closed, cfg, "403")
	f(closed, Config{Addr: "127.0.0.1:1", Tapes: tapes(1, request("A", "p")), Depth: 1}, "cannot dial")
	empty := admin(t, func(http.ResponseWriter, *http.Request) {})
	f(empty, cfg, "is empty")
	mute, err := StartServer(script("mute", "echo listening x; exec sleep 0.2"))
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Stop()
	f(mute, cfg, "mute: it names no admin address")
}

func TestMetrics(t *testing.T) {
	f := func(page, want string) map[string]float64 {
		t.Helper()
		got, err := admin(t, func(w http.ResponseWriter, r *http.Request) {
			if page == "" || r.URL.Path != "/metrics" {
				http.NotFound(w, r)
			}
			_, _ = io.WriteString(w, page)
		}).Metrics()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", page, err, want)
		}
		return got
	}
	got := f("# HELP a b\n# TYPE a gauge\na 1.5\nb{c=\"d e\"} 2e+06\n\nnonsense\n", "")
	if len(got) != 2 || got["a"] != 1.5 || got[`b{c="d e"}`] != 2e6 {
		t.Errorf("%v", got)
	}
	f("", "404")
	f("a b\n", `"b"`)
}

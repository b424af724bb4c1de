package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
)

// rig is a machine and settings to look at. Nothing listens by default.
type rig struct {
	t    *testing.T
	root string // of /proc and /sys
	env  map[string]string
}

func newRig(t *testing.T) *rig { return &rig{t: t, root: t.TempDir(), env: map[string]string{}} }

// file writes a file of /proc or /sys.
func (r *rig) file(name, text string) {
	r.t.Helper()
	write(r.t, filepath.Join(r.root, name), text)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// quiet are settings without an address: only what a test adds is looked at.
var quiet = []string{"--listen", "127.0.0.1:0", "--http-listen=", "--admin-listen=", "--set", "store.mode=memory"}

func load(args ...string) (*config.Config, error) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return config.Load(fs, nil)
}

// run makes all checks with the quiet settings and args over them.
func (r *rig) run(args ...string) *Report {
	r.t.Helper()
	c, err := load(append(slices.Clone(quiet), args...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return Run(r.t.Context(), Options{Config: c, Build: obs.Build{Version: "v1", Revision: "r1"}, Ask: ask, Root: r.root, Getenv: func(name string) string { return r.env[name] }})
}

// ask is the question of the program to an admin listener.
func ask(ctx context.Context, addr, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// want looks for the finding of a check about a subject.
func (r *rig) want(got *Report, id, subject string, result Result, evidence string) {
	r.t.Helper()
	var seen []Finding
	for _, f := range got.Checks {
		if f.ID != id || f.Subject != subject {
			continue
		}
		seen = append(seen, f)
		if f.Result == result && strings.Contains(f.Evidence, evidence) {
			if bad := result == Warning || result == Failed; bad != (f.Fix != "") {
				r.t.Errorf("%s: %s with the fix %q", id, result, f.Fix)
			}
			return
		}
	}
	r.t.Errorf("%s of %q: %+v, want %s with %q", id, subject, seen, result, evidence)
}

func TestNothingIsWrong(t *testing.T) {
	r := newRig(t)
	got := r.run()
	if !got.OK || got.Failures != 0 {
		t.Errorf("%+v", got)
	}
	var ids []string
	for _, f := range got.Checks {
		if !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	if !slices.Equal(ids, allIDs()) {
		t.Errorf("checks %v, want %v", ids, allIDs())
	}
	r.want(got, "settings", "", OK, "no settings file")
	r.want(got, "server", "admin.listen_addr", Skipped, "admin.listen_addr is empty")
}

func TestSettings(t *testing.T) {
	r := newRig(t)
	_, err := load("--set", "kernel.lops=1")
	got := Run(t.Context(), Options{Err: err, Ask: ask, Root: r.root, Getenv: os.Getenv})
	r.want(got, "settings", "", Failed, "the nearest known one is kernel.loops")
	r.want(got, "listeners", "", Skipped, "the settings cannot be used")
	r.want(got, "clock", "", OK, "")
	if got.OK || got.Failures != 1 {
		t.Errorf("%+v", got)
	}
	file := write(t, filepath.Join(t.TempDir(), "s.yaml"), "kernel: {loops: 2}\n")
	r.want(r.run("--config", file), "settings", "", OK, "1 from file "+file)
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(fs)
	c, err := config.Load(fs, []string{"TRUNKLINE_BIN=/x"})
	if err != nil {
		t.Fatal(err)
	}
	r.want(Run(t.Context(), Options{Config: c, Ask: ask, Root: r.root, Getenv: os.Getenv}), "settings", "", Warning, "TRUNKLINE_BIN")
}

func TestAnEarlyEnd(t *testing.T) {
	r := newRig(t)
	c, err := load(quiet...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := Run(ctx, Options{Config: c, Ask: ask, Root: r.root, Getenv: os.Getenv})
	r.want(got, "files", "", Skipped, "ended before this check")
	if len(got.Checks) != len(allIDs()) {
		t.Errorf("%d checks, want %d", len(got.Checks), len(allIDs()))
	}
}

// TestTheReferenceListsTheChecks keeps the page equal to the table.
func TestTheReferenceListsTheChecks(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range allIDs() {
		if !strings.Contains(string(page), "\n| `"+id+"` | ") {
			t.Errorf("docs/command-line.md has no row of %s", id)
		}
	}
}

// adminOf serves what an admin listener answers, by path.
func adminOf(t *testing.T, answers map[string]any) (addr string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if a, ok := answers[req.URL.Path]; ok {
			_ = json.NewEncoder(w).Encode(a)
			return
		}
		http.Error(w, "no", http.StatusNotFound)
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// healthy are the answers of a server where all is well.
func healthy() map[string]any {
	return map[string]any{
		"/version": obs.Build{Version: "v1", Revision: "r1", Go: "go1"},
		"/healthz": map[string]any{"alive": true},
		"/readyz":  map[string]any{"ready": true, "reasons": []string{}},
		"/store":   map[string]any{"mode": "memory", "warnings": []string{}},
	}
}

func TestTheRunningServer(t *testing.T) {
	r := newRig(t)
	f := func(path string, answer any, result Result, evidence string) {
		t.Helper()
		answers := healthy()
		if path != "" {
			answers[path] = answer
		}
		addr := adminOf(t, answers)
		r.want(r.run("--admin-listen", addr), "server", addr, result, evidence)
	}
	f("", nil, OK, "trunkline v1 is alive and ready")
	f("/healthz", map[string]any{"error": "a loop ended"}, Failed, "is not alive: a loop ended")
	f("/readyz", map[string]any{"reasons": []string{"recovering"}}, Warning, "is not ready: recovering")
	f("/version", obs.Build{Version: "v2", Revision: "r1", Go: "go1"}, Warning, "the server is version v2 (r1), this program is v1 (r1)")
	f("/version", map[string]any{"hello": 1}, Warning, "no trunkline")
	f("/store", map[string]any{"mode": "always"}, Warning, "the server runs with store.mode=always, these settings have memory")
	f("/store", map[string]any{"mode": "memory", "warnings": []string{"storage_full"}}, Failed, "the store reports storage_full")
	r.want(r.run("--admin-listen", "127.0.0.1:1"), "server", "127.0.0.1:1", Skipped, "no server answers")
	r.want(r.run("--admin-listen", "127.0.0.1:0"), "server", "admin.listen_addr", Skipped, "chosen at the start")
}

// allIDs lists the checks in their order.
func allIDs() (ids []string) {
	for _, c := range checks() {
		ids = append(ids, c.id)
	}
	return ids
}

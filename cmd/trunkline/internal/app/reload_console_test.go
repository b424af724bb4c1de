package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/handlers/console"
)

// consoleStatus is that of a page of the console which a token asks for, "" for none.
func (r *reloadable) consoleStatus(token string) int {
	r.t.Helper()
	status, _ := r.submit("GET", "/console/store.json", token, nil)
	return status
}

func lookAtConsoleTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := strings.Repeat("1", 16), strings.Repeat("2", 16)
	write(one)
	r := startReloadable(t)
	r.token = strings.Repeat("o", 16) // stays in force, so that outcomes can be read
	operators := filepath.Join(t.TempDir(), "operators")
	if err := os.WriteFile(operators, []byte(r.token), 0o600); err != nil {
		t.Fatal(err)
	}
	wantStatus := func(token string, status int) {
		t.Helper()
		if got := r.consoleStatus(token); got != status {
			t.Errorf("%q: %d, want %d", token, got, status)
		}
	}
	wantStatus("", 200)
	r.must("admin.console_token_file="+file, "admin.console_operator_token_file="+operators)
	wantStatus("", 401)
	wantStatus(one, 200)
	write(two)
	if out := r.reload(); !out.OK || !slices.Equal(out.Changed, []string{"admin.console_token_file"}) {
		t.Fatalf("%+v", out)
	}
	wantStatus(one, 401)
	wantStatus(two, 200)
	write("short")
	if out := r.reload(); out.OK || !strings.Contains(out.Error, "admin.console_token_file") {
		t.Errorf("%+v", out)
	}
	wantStatus(two, 200)
	write(two)
	if out := r.reload(); !out.OK || len(out.Changed) > 0 {
		t.Errorf("%+v", out)
	}
	if out := r.reload("admin.console_operator_token_file=" + file); out.OK || !strings.Contains(out.Error, "one token for two roles") {
		t.Errorf("%+v", out)
	}
}

func lookAtConsoleOperators(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	token := strings.Repeat("o", 16)
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startReloadable(t)
	form := map[string][]string{"pid": {"nothing"}}
	if status, _ := r.post("/console/process/terminate", token, form); status != 403 {
		t.Errorf("without tokens: %d", status)
	}
	r.token = token
	r.must("admin.console_operator_token_file=" + file)
	if status, body := r.post("/console/process/terminate", token, form); status != 404 {
		t.Errorf("an operator: %d %s", status, body)
	}
}

// TestConsoleShowsReloadedSettings: the page has the values in force with their origins, and marks
// those that wait for a restart.
func TestConsoleShowsReloadedSettings(t *testing.T) {
	r := startReloadable(t)
	f := func(key string, want console.Setting) {
		t.Helper()
		var list struct{ Settings []console.Setting }
		if _, body := r.get("/console/settings.json?q=" + key); json.Unmarshal([]byte(body), &list) != nil || len(list.Settings) != 1 {
			t.Fatalf("%s: %s", key, body)
		}
		got := list.Settings[0]
		if want.Key, want.Help = key, got.Help; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	f("kernel.max_streams_per_connection", console.Setting{Value: "32", Origin: "default", Reload: "live"})
	out := r.reload("kernel.max_streams_per_connection=9", "kernel.max_sessions=77")
	if !out.OK || len(out.Restart) != 1 {
		t.Fatalf("%+v", out)
	}
	f("kernel.max_streams_per_connection", console.Setting{Value: "9", Origin: "flag --set", Reload: "live"})
	f("kernel.max_sessions", console.Setting{Value: "10000", Origin: "default", Reload: "restart", Waiting: true})
	r.reload()
	f("kernel.max_sessions", console.Setting{Value: "10000", Origin: "default", Reload: "restart"})
}

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/engine/projects"
	"trunkline/handlers/exacta"
)

// TestExactaRefused has what keeps a server of projects from starting (exacta §2.1, §4.20, §6.1).
func TestExactaRefused(t *testing.T) {
	f := func(want string, sets ...string) {
		t.Helper()
		var args []string
		for _, s := range sets {
			args = append(args, "--set", "exacta."+s)
		}
		_, err := load(t, args, nil, "")
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", sets, err, want)
		}
	}
	f("", "listen_addr=127.0.0.1:0,unix:///tmp/x.sock", "ws_addr=127.0.0.1:0")
	f("exacta.insecure_bind", "listen_addr=0.0.0.0:1", "auth_token_file=/t")
	f("exacta.auth_token_file is not set", "listen_addr=0.0.0.0:1", "insecure_bind=true")
	f("exacta.auth_token_file is not set", "ws_addr=0.0.0.0:1", "insecure_bind=true")
	f("", "listen_addr=0.0.0.0:1", "ws_addr=0.0.0.0:2", "insecure_bind=true", "auth_token_file=/t")
	f("want an integer from 65536", "max_message_bytes=65535")
	f("want an integer from 100", "journal_events=99")
	f("is not an absolute path", "allowed_roots=/a,b")
	f("is not an absolute path", "diagnostics_dirs=b")
	f("", "ws_origins=https://ui.example.org,http://10.0.0.1:8080,app://ui")
	for _, origin := range []string{"*", "ui.example.org", "https://ui.example.org/", "https://user@ui.example.org", "null"} {
		f("is no origin", "ws_origins="+origin)
	}
	f("exacta.clock", "clock=tomorrow")
	f("exacta.clock", "clock=fixed:tomorrow")
	f("exacta.clock", "clock=fixed:0001-01-01T00:00:00Z")
	f("exacta.clock", "clock=fixed:9999-12-31T23:59:59-01:00")
	f("exacta.ids", "ids=seed:")
	f("exacta.ids", "ids=seed:"+strings.Repeat("x", 33))
	f("exacta.planner_command is not set", "planner=subprocess")
	f("want a JSON array of texts", "planner=subprocess", "planner_command=planner --fast")
	f("it is empty", "planner_command=[]")
	f("", "planner=subprocess", `planner_command=["planner","--fast"]`)
	f("exacta.planner_url is not set", "planner=openai_compatible")
	f("", "planner=openai_compatible", "planner_url=https://h/v1")
	f("want https, or http to this machine", "planner=openai_compatible", "planner_url=http://h/v1", "planner_model=m")
	f("no address", "planner=openai_compatible", "planner_url=https://u:p@h/v1", "planner_model=m")
	f("no address", "planner=openai_compatible", "planner_url=https://h/v1?key=x", "planner_model=m")
	f("", "planner=openai_compatible", "planner_url=http://127.0.0.1:1/v1", "planner_model=m")
	f("want one of", "log_event_level=info")
}

// TestExactaServer: the settings become the configuration of a server.
func TestExactaServer(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, []string{"--set", "exacta.auth_token_file=" + token, "--set", "exacta.clock=fixed:2026-01-15T00:00:00Z", "--set", "exacta.ids=seed:t1",
		"--set", "exacta.allowed_roots=" + link + "," + dir + "/later", "--set", "exacta.debug_commands=off", "--set", "exacta.plan_validity_seconds=7",
		"--set", "exacta.max_parked_per_project=5"}, nil, "")
	f := func(text string, ok bool) {
		t.Helper()
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Exacta.Server(); (err == nil) != ok || ok && s.AuthToken != strings.TrimSpace(text) {
			t.Errorf("a token of %d bytes: %v", len(text), err)
		}
	}
	f("0123456789abcde\n", false)
	f(strings.Repeat("x", exacta.MaxToken+1), false)
	f(strings.Repeat("x", exacta.MaxToken)+"\n", true)
	f("0123456789abcdef\n", true)
	s, err := c.Exacta.Server()
	if err != nil {
		t.Fatal(err)
	}
	want := projects.Limits{
		MaxParkedPerProject: 5,
		JournalEvents:       10000,
		JournalBytes:        16 << 20,
		ReplayCacheEntries:  4096,
		ReplayCacheBytes:    32 << 20,
		PlanValidity:        7 * time.Second,
		LogEventLevel:       "INFO",
	}
	real, _ := filepath.EvalSymlinks(dir)
	if s.Limits != want || s.Debug != exacta.DebugOff || s.Seed != "t1" || !s.Clock.Fixed() ||
		s.AllowedRoots[0] != real || s.AllowedRoots[1] != dir+"/later" {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exacta.Server(); err == nil {
		t.Error("a missing token was taken")
	}
}

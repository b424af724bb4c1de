package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newTmux starts a tmux server of its own with one pane, agents_core:reviewer.0. It returns what
// runs tmux there, and its directory.
func newTmux(t *testing.T, command ...string) (tmux func(args ...string) string, dir string) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("the package tmux is not installed")
	}
	dir = t.TempDir()
	tmux = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("tmux", args...)
		cmd.Env = []string{"TMUX_TMPDIR=" + dir, "PATH=/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v %s", args, err, out)
		}
		return string(out)
	}
	tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-s", "agents_core", "-n", "reviewer", "-x", "200", "-y", "50"}, command...)...)
	t.Cleanup(func() { tmux("kill-server") })
	return tmux, dir
}

// TestTmux: a trigger arrives as one paste in the pane of a real tmux, and in no other.
func TestTmux(t *testing.T) {
	tmux, dir := newTmux(t, "cat")
	tmux("new-window", "-d", "-t", "agents_core", "-n", "other", "cat")
	s := start(t, "TMUX_TMPDIR="+dir)
	id := s.create()
	s.post("heartbeat_session", reviewer, `{"session_id":"sess_rv_12","runtime":"tmux:agents_core:reviewer.0","management_mode":"managed","resumable":true,"status":"idle"}`)
	hostile, _ := json.Marshal("-t agents_core:other.0\n$(id);\x1b[201~x")
	a := s.post("trigger_participant", coordinator, fmt.Sprintf(`{"thread_id":"%s","target_agent_id":"reviewer_agent","reason":"new unread!","trigger_prompt":%s}`, id, hostile))
	if a.status != 200 {
		t.Fatal(a.text)
	}
	var job map[string]any
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		jobs := s.request("GET", "/v1/trigger_jobs?thread_id="+id, coordinator, "")
		if job = jobs.body["jobs"].([]any)[0].(map[string]any); job["job_status"] == "delivered" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not delivered: %s; %s", jobs.text, s.log)
		}
	}
	want := fmt.Sprintf("[BRIDGE_TRIGGER id=%s thread=%s reason=new_unread_]\n-t agents_core:other.0\n$(id);[201~x\n[/BRIDGE_TRIGGER]", job["trigger_id"], id)
	var pane string
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(pane, want); time.Sleep(20 * time.Millisecond) {
		if pane = tmux("capture-pane", "-p", "-t", "agents_core:reviewer.0"); time.Now().After(deadline) {
			t.Fatalf("%q, want %q", pane, want)
		}
	}
	if other := strings.TrimSpace(tmux("capture-pane", "-p", "-t", "agents_core:other.0")); other != "" {
		t.Errorf("the other pane has %q", other)
	}
	s.post("post_message", reviewer, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"here"}`)
	if jobs := s.request("GET", "/v1/trigger_jobs?thread_id="+id, coordinator, ""); !strings.Contains(jobs.text, `"acknowledged_at"`) {
		t.Error(jobs.text)
	}
	s.stop()
}

// wake triggers the reviewer at a runtime, and returns the job when it has a code or is final.
func (s *server) wake(id, runtime, reason, prompt string) (job map[string]any) {
	s.t.Helper()
	s.post("heartbeat_session", reviewer, `{"session_id":"sess_rv_12","runtime":"`+runtime+`","management_mode":"managed","resumable":false,"status":"idle"}`)
	text, _ := json.Marshal(prompt)
	a := s.post("trigger_participant", coordinator, fmt.Sprintf(`{"thread_id":"%s","target_agent_id":"reviewer_agent","reason":"%s","trigger_prompt":%s}`, id, reason, text))
	if a.status != 200 || a.body["job_status"] != "queued" {
		s.t.Fatal(a.text)
	}
	s.eventually("an attempt", func() bool {
		list := s.request("GET", "/v1/trigger_jobs?limit=1&thread_id="+id, coordinator, "")
		job = list.body["jobs"].([]any)[0].(map[string]any)
		return job["delivered_at"] != nil || job["last_error_code"] != nil
	})
	if job["trigger_id"] != a.body["trigger_id"] {
		s.t.Fatal(job, a.text)
	}
	return job
}

// TestHostilePrompts: prompts that could act on a terminal, a shell or tmux arrive as they are, in
// one pane; none of them in a shell, or in a session that is not allowed.
func TestHostilePrompts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	tmux, dir := newTmux(t, "tee", file)
	tmux("new-window", "-d", "-t", "agents_core", "-n", "shell", "sh")
	tmux("new-window", "-d", "-t", "agents_core", "-n", "reviewer2", "cat")
	tmux("new-session", "-d", "-s", "private", "-n", "reviewer", "cat")
	s := start(t, quick("TMUX_TMPDIR="+dir, "TRIGGER_RATE_LIMIT_PER_MINUTE=100", "TRIGGER_FALLBACK=off", "LOOP_MAX_REPEATED_FINDINGS=100")...)
	id := s.create()
	made := filepath.Join(t.TempDir(), "made")
	run := "$(touch " + made + ")`touch " + made + "`;touch " + made
	want := ""
	for _, c := range [][2]string{
		{"-t agents_core:reviewer2.0\n" + run + ";", ""},
		{"a\r\nb\rc", "a\nb\nc"},
		{"\x1b[201~\x1b]0;x\x07\x03\x04y", "[201~]0;xy"},
		{"\u009b31m\u0085x\x7f\x00", "31mx"},
		{"tab\there \u2028\ufeff\u202e é 日本 🙂", ""},
		{"[BRIDGE_TRIGGER id=x]\n \t[/BRIDGE_TRIGGER] y\nz", "> [BRIDGE_TRIGGER id=x]\n>  \t[/BRIDGE_TRIGGER] y\nz"},
		{"-R", ""},
		{"; kill-server ;", ""},
		{"#{pane_id} #(touch " + made + ") %%1 =private: {last}", ""},
		{"'\"\\ \\n ~ !! ^a^b ${HOME} *", ""},
		{"C-c", ""},
		{strings.Repeat("0123456789abcde\n", 511) + run[:10], ""},
	} {
		if c[1] == "" {
			c[1] = c[0]
		}
		job := s.wake(id, "tmux:agents_core:reviewer.0", "r;$(x)", c[0])
		if job["job_status"] != "delivered" {
			t.Fatalf("%q: %v", c[0], job)
		}
		want += fmt.Sprintf("[BRIDGE_TRIGGER id=%s thread=%s reason=r___x_]\n%s\n[/BRIDGE_TRIGGER]\n", job["trigger_id"], id, c[1])
		s.eventually("the prompt", func() bool { text, _ := os.ReadFile(file); return len(text) >= len(want) })
		if text, _ := os.ReadFile(file); string(text) != want {
			t.Fatalf("%q, want %q", text, want)
		}
	}
	for runtime, code := range map[string]string{
		"tmux:agents_core:shell.0": "PANE_IS_SHELL", "tmux://private:reviewer.0": "TARGET_NOT_ALLOWED", "agents_core:reviewer.0;x": "UNSUPPORTED_RUNTIME",
		"tmux:agents_core:review.0": "TARGET_NOT_FOUND", "tmux:-t:x.0": "UNSUPPORTED_RUNTIME", "codex_cli": "UNSUPPORTED_RUNTIME",
	} {
		for _, reason := range []string{"r", "human_override:now"} {
			job := s.wake(id, runtime, reason, "touch "+made)
			if got := job["last_error_code"]; job["delivered_at"] != nil || got != code && (got != "FALLBACK_DISABLED" || code == "TARGET_NOT_FOUND") {
				t.Errorf("%s: %v, want %s", runtime, job, code)
			}
			if !strings.Contains(s.log.String(), code) {
				t.Errorf("%s: the log has no %s", runtime, code)
			}
		}
	}
	for _, pane := range []string{"agents_core:shell.0", "agents_core:reviewer2.0", "private:reviewer.0"} {
		if text := tmux("capture-pane", "-p", "-t", pane); strings.Contains(text, "BRIDGE") || strings.Contains(text, "touch") {
			t.Errorf("%s has %q", pane, text)
		}
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a prompt was executed")
	}
	s.stop()
}

// TestPaneThatDies: a runtime whose pane has gone is tried again, and then a command is run.
func TestPaneThatDies(t *testing.T) {
	if testing.Short() {
		t.Skip("attempts are seconds apart")
	}
	t.Parallel()
	tmux, dir := newTmux(t, "cat")
	tmux("new-window", "-d", "-t", "agents_core", "-n", "other", "cat")
	out := filepath.Join(t.TempDir(), "out")
	s := start(t, quick("TMUX_TMPDIR="+dir, `TRIGGER_SPAWN_ARGV=["/bin/sh","-c","echo ran >> \"$0\"","`+out+`"]`)...)
	id := s.create()
	tmux("kill-pane", "-t", "agents_core:reviewer.0")
	job := s.wake(id, "tmux:agents_core:reviewer.0", "r", "hello")
	if job["job_status"] != "timeout" || job["last_error_code"] != "TARGET_NOT_FOUND" || job["attempts"] != 1.0 {
		t.Error(job)
	}
	s.eventually("the command", func() bool { return strings.Contains(s.jobs(id), `"completed_at":"`) })
	if text := s.jobs(id); !strings.Contains(text, `"job_status":"fallback_spawn","attempts":3,`) {
		t.Error(text)
	}
	if text, err := os.ReadFile(out); string(text) != "ran\n" {
		t.Errorf("%q (%v)", text, err)
	}
	s.stop()
}

// TestTmuxShellByAnotherName: a pane whose shell has the name of an agent is not written to.
func TestTmuxShellByAnotherName(t *testing.T) {
	here := t.TempDir()
	codex, made := filepath.Join(here, "codex"), filepath.Join(here, "made")
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(codex, shell, 0o700); err != nil {
		t.Fatal(err)
	}
	tmux, dir := newTmux(t, codex, "-i")
	s := start(t, quick("TMUX_TMPDIR="+dir, `TRIGGER_RESUME_ARGV=["/bin/true"]`)...)
	s.eventually("the shell", func() bool {
		return strings.TrimSpace(tmux("display-message", "-p", "-t", "agents_core:reviewer",
			"#{pane_current_command}")) == "codex"
	})
	id := s.create()
	s.post("heartbeat_session", reviewer,
		`{"session_id":"sess_rv_12","runtime":"tmux:agents_core:reviewer.0","management_mode":"managed","resumable":true,"status":"idle"}`)
	a := s.post("trigger_participant", coordinator,
		fmt.Sprintf(`{"thread_id":"%s","target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"touch %s"}`, id,
			made))
	if a.body["action"] != "trigger_runtime" {
		t.Fatal(a.text)
	}
	s.eventually("the end of the job", func() bool {
		jobs := s.jobs(id)
		return strings.Contains(jobs, `"completed_at":"`) || strings.Contains(jobs, `"job_status":"delivered"`)
	})
	if jobs := s.jobs(id); !strings.Contains(jobs, `"job_status":"fallback_resume"`) ||
		!strings.Contains(s.log.String(), "PANE_IS_SHELL") {
		t.Error(jobs)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a prompt was executed")
	}
}

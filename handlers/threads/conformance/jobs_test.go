package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// eventually waits until done.
func (s *server) eventually(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s does not happen: %s", what, s.log)
		}
	}
}

func (s *server) jobs(id string) string {
	s.t.Helper()
	a := s.request("GET", "/v1/trigger_jobs?thread_id="+id, auditor, "")
	if a.status != 200 {
		s.t.Fatal(a.status, a.text)
	}
	return a.text
}

func (s *server) trigger(id string) *answer {
	s.t.Helper()
	return s.post("trigger_participant", coordinator, `{"thread_id":"`+id+`","target_agent_id":"executioner_agent","reason":"r","trigger_prompt":"Read & reply"}`)
}

// quick has the worker look every 20 ms.
func quick(env ...string) []string { return append(env, "WORKER_POLL_INTERVAL_MS=20") }

// TestSpawn runs a command for a target without a session: without a shell, without tokens in its
// environment, once.
func TestSpawn(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	s := start(t, quick(`TRIGGER_SPAWN_ARGV=["/bin/sh","-c","{ printf '%s|' \"$1\"; env; } >> \"$0\"","`+out+`","{prompt}"]`, "THREADS_TOKEN=secret-token")...)
	id := s.create()
	if a := s.trigger(id); a.body["job_status"] != "fallback_spawn" {
		t.Fatal(a.text)
	}
	s.eventually("the job", func() bool { return strings.Contains(s.jobs(id), `"completed_at":"`) })
	text, err := os.ReadFile(out)
	if err != nil || strings.Count(string(text), "Read & reply") != 1 || strings.Contains(string(text), "secret") {
		t.Errorf("%s (%v)", text, err)
	}
	if a := s.request("GET", "/v1/audit?limit=500&thread_id="+id, auditor, ""); strings.Contains(a.text, "Read & reply") {
		t.Error(a.text)
	}
}

// TestSpawnIsInterrupted: a command that was running when the server died does not run again.
func TestSpawnIsInterrupted(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	s := start(t, quick(`TRIGGER_SPAWN_ARGV=["/bin/sh","-c","echo run >> \"$0\"; exec sleep 60","`+out+`"]`)...)
	id := s.create()
	s.trigger(id)
	s.eventually("the command", func() bool { b, _ := os.ReadFile(out); return len(b) > 0 })
	s.kill()
	s.run()
	s.eventually("the end of the job", func() bool { return strings.Contains(s.jobs(id), `"INTERRUPTED"`) })
	if b, _ := os.ReadFile(out); string(b) != "run\n" {
		t.Errorf("%q", b)
	}
	s.stop()
}

// TestAgentsAreDrained: a server that stops waits for the command of an agent, which can still
// report what it has done; the job is a success.
func TestAgentsAreDrained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, quick(`TRIGGER_SPAWN_ARGV=["/bin/sh","-c","touch \"$0/begun\"; until [ -e \"$0/go\" ]; do sleep 0.02; done","`+dir+`"]`,
		"TRUNKLINE_THREADS_AGENT_GRACE_SECS=60")...)
	id := s.create()
	s.trigger(id)
	s.eventually("the command", func() bool { _, err := os.Stat(dir + "/begun"); return err == nil })
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.eventually("the order to stop", func() bool { return s.request("GET", "/ready", "", "").status == 503 })
	if a := s.post("get_thread", executioner, `{"thread_id":"`+id+`"}`); a.status != 200 {
		t.Errorf("while a command runs: %d %s", a.status, a.text)
	}
	later := s.trigger(id)
	if later.status != 200 {
		t.Error(later.text)
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.log)
	}
	if err := os.Remove(dir + "/begun"); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.eventually("both jobs", func() bool { return strings.Count(s.jobs(id), `"completed_at":"`) == 2 })
	if jobs := s.jobs(id); strings.Contains(jobs, "INTERRUPTED") ||
		strings.Count(jobs, `"job_status":"fallback_spawn"`) != 2 {
		t.Error(jobs)
	}
	s.stop()
}

// TestStopsDoNotBlock: a command that outlives the grace gets SIGTERM, and the stops of a server,
// however many, are no failures that block a thread.
func TestStopsDoNotBlock(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	s := start(t, quick(`TRIGGER_SPAWN_ARGV=["/bin/sh","-c","trap 'echo term >> \"$0\"; exit 1' TERM; echo run >> \"$0\"; while :; do sleep 0.02; done","`+out+`"]`,
		"TRUNKLINE_THREADS_AGENT_GRACE_SECS=0")...)
	id := s.create()
	want := ""
	for n := 1; n <= 4; n++ {
		s.trigger(id)
		want += "run\n"
		s.eventually("the command", func() bool { b, _ := os.ReadFile(out); return string(b) == want })
		s.stop()
		want += "term\n"
		if b, _ := os.ReadFile(out); string(b) != want {
			t.Errorf("%q, want %q", b, want)
		}
		s.run()
		s.eventually("the end of the job", func() bool { return strings.Count(s.jobs(id), `"INTERRUPTED"`) == n })
	}
	if a := s.post("get_thread", auditor, `{"thread_id":"`+id+`"}`); a.body["status"] != "active" {
		t.Error(a.text)
	}
	s.stop()
}

// TestTriggerKeepsItsSession: what an acknowledged trigger was decided by survives a crash, however
// young it is.
func TestTriggerKeepsItsSession(t *testing.T) {
	t.Parallel()
	s := start(t, quick("SUPERVISOR_MODE=off")...)
	id := s.create()
	doc := `{"thread_id":"` + id +
		`","target_agent_id":"executioner_agent","reason":"r","trigger_prompt":"p","idempotency_key":"k"}`
	s.post("heartbeat_session", executioner,
		`{"session_id":"sess_ex","runtime":"tmux:agents_x:y.0","management_mode":"managed","resumable":true,"status":"idle"}`)
	before := s.post("trigger_participant", coordinator, doc)
	s.kill()
	s.run()
	if after := s.post("trigger_participant", coordinator, doc); before.body["runtime"] != "tmux:agents_x:y.0" ||
		after.text != before.text {
		t.Errorf("%s\nbefore the crash %s", after.text, before.text)
	}
}

// TestLoopProtection: three jobs that fail for one reason block the thread, also over a restart.
func TestLoopProtection(t *testing.T) {
	t.Parallel()
	s := start(t, quick(`TRIGGER_SPAWN_ARGV=["/bin/false"]`)...)
	id := s.create()
	for n := 1; n <= 3; n++ {
		if a := s.trigger(id); a.status != 200 {
			t.Fatal(a.text)
		}
		s.eventually("a failure", func() bool { return strings.Count(s.jobs(id), `"FALLBACK_SPAWN_FAILED"`) >= n })
		if n == 2 {
			s.kill()
			s.run()
			if a := s.post("get_thread", auditor, `{"thread_id":"`+id+`"}`); a.body["status"] != "active" {
				t.Errorf("after two failures: %s", a.text)
			}
		}
	}
	s.eventually("the block", func() bool {
		return s.post("get_thread", auditor, `{"thread_id":"`+id+`"}`).body["status"] == "blocked"
	})
	a := s.post("read_messages", auditor, `{"thread_id":"`+id+`"}`)
	if !strings.Contains(a.text, `"metadata":{"event_type":"thread_escalated","reason":"repeated_identical_findings:3:FALLBACK_SPAWN_FAILED"},"sender_agent_id":"system:supervisor"`) {
		t.Error(a.text)
	}
	if a := s.request("GET", "/v1/audit?limit=500&thread_id="+id, auditor, ""); strings.Count(a.text, "supervisor.auto_block") != 1 {
		t.Error(a.text)
	}
}

// TestReplayOfAFailedFallback: a request that is repeated after its command has failed shows what
// was done, in both dialects.
func TestReplayOfAFailedFallback(t *testing.T) {
	t.Parallel()
	s := start(t, quick(`TRIGGER_SPAWN_ARGV=["/bin/false"]`)...)
	id := s.create()
	doc := `{"thread_id":"` + id + `","target_agent_id":"executioner_agent","reason":"r","trigger_prompt":"p","idempotency_key":"k"}`
	s.post("trigger_participant", coordinator, doc)
	s.eventually("a failure", func() bool { return strings.Contains(s.jobs(id), `"FALLBACK_SPAWN_FAILED"`) })
	a := s.post("trigger_participant", coordinator, doc)
	if a.body["action"] != "fallback_required" || a.body["result"] != "failed" || a.body["job_status"] != "failed" || a.header.Get("X-Idempotent-Replay") != "true" {
		t.Error(a.text, a.header)
	}
	if a := s.post("trigger_participant", coordinator, doc, "X-Error-Dialect", "legacy"); a.body["result"] != "fallback_required" {
		t.Error(a.text)
	}
}

// TestNoFallback: without a fallback a request without a live target is refused, and a thread that
// is closed ends its jobs.
func TestNoFallback(t *testing.T) {
	t.Parallel()
	s := start(t, quick("TRIGGER_FALLBACK=off", "SUPERVISOR_MODE=off")...)
	id := s.create()
	if a := s.trigger(id); a.status < 400 || a.code() == "" {
		t.Error(a.status, a.text)
	}
	s.post("heartbeat_session", executioner, `{"session_id":"sess_ex","runtime":"tmux:agents_x:y.0","management_mode":"managed","resumable":true,"status":"idle"}`)
	if a := s.trigger(id); a.body["job_status"] != "queued" {
		t.Fatal(a.text)
	}
	s.post("update_thread_status", coordinator, `{"thread_id":"`+id+`","status":"closed","reason":"done"}`)
	s.eventually("the end of the job", func() bool { return strings.Contains(s.jobs(id), `"THREAD_CLOSED"`) })
	if a := s.trigger(id); a.code() != "CONFLICT" {
		t.Error(a.text)
	}
}

// TestUnread reports participants with unread messages once; where it is asked for, they are woken.
func TestUnread(t *testing.T) {
	if testing.Short() {
		t.Skip("unread messages wake after ten seconds")
	}
	t.Parallel()
	for setting, woken := range map[string]bool{"UNREAD_AUTO_TRIGGER=off": false, "UNREAD_AUTO_TRIGGER=all": true, "SUPERVISOR_MODE=off": false} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			s := start(t, quick(setting, `TRIGGER_SPAWN_ARGV=["/bin/true"]`)...)
			id := s.create()
			s.post("post_message", reviewer, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"x"}`)
			report := `"reason":"new_unread_dormant_participant","thread_id":"` + id + `","agent_id":"executioner_agent","latest_seq":1`
			if !woken {
				s.eventually("a report", func() bool { return strings.Contains(s.log.String(), report) })
				s.eventually("the gauge", func() bool { // it is set behind the last report
					return strings.Contains(
						s.request("GET", "/metrics", "", "").text,
						"unread_dormant_participants 1\n",
					)
				})
				s.post("ack_read", executioner, `{"thread_id":"`+id+`","last_read_seq":1}`)
				s.eventually("the end of it", func() bool {
					return strings.Contains(s.request("GET", "/metrics", "", "").text, "unread_dormant_participants 0\n")
				})
				if n := strings.Count(s.log.String(), report); n != 1 || strings.Contains(s.jobs(id), "trigger_id") {
					t.Errorf("%d reports, jobs %s", n, s.jobs(id))
				}
				return
			}
			// The messages have to be ten seconds old.
			s.eventually("a job", func() bool { return strings.Contains(s.jobs(id), `"completed_at":"`) })
			if text := s.jobs(id); strings.Count(text, `"trigger_id"`) != 1 || !strings.Contains(text, `"executioner_agent"`) {
				t.Error(text)
			}
		})
	}
}

// TestStaleSessions: a session without a heartbeat goes offline, is not woken at its runtime, and a
// new heartbeat revives it.
func TestStaleSessions(t *testing.T) {
	t.Parallel()
	s := start(t, quick("TRUNKLINE_THREADS_SESSION_STALE_AFTER_SECS=1", "SUPERVISOR_MODE=off")...)
	id := s.create()
	beat := `{"session_id":"sess_ex","runtime":"tmux:agents_x:y.0","management_mode":"managed","resumable":true,"status":"active"}`
	s.post("heartbeat_session", executioner, beat)
	if a := s.trigger(id); a.body["action"] != "trigger_runtime" || a.body["stale_session"] != false {
		t.Error(a.text)
	}
	s.eventually("the session", func() bool {
		a := s.trigger(id)
		return a.body["stale_session"] == true && a.body["action"] == "fallback_required"
	})
	s.post("heartbeat_session", executioner, beat)
	if a := s.trigger(id); a.body["action"] != "trigger_runtime" || a.body["stale_session"] != false {
		t.Error(a.text)
	}
}

// TestQuotas has the limits of messages at the limit and beyond: repetitions are free.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string][2]int{"RATE_POST_PER_AGENT_PER_MINUTE": {3, 6}, "RATE_POST_PER_THREAD_PER_MINUTE": {3, 3}} {
		s := start(t, name+"=3")
		id := s.create()
		post := func(token string, n int) *answer {
			return s.post("post_message", token, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"x","idempotency_key":"%d"}`, id, n))
		}
		taken := 0
		for n := range 5 {
			for _, token := range []string{reviewer, executioner} {
				a := post(token, n)
				if a.status == 200 {
					taken++
				} else if a.status != 429 || a.code() != "RATE_LIMITED" || !strings.Contains(a.text, `"retryable":true`) || !strings.Contains(a.text, `"retry_after_ms":`) || a.header.Get("Retry-After") == "" {
					t.Errorf("%s: %d %s", name, a.status, a.text)
				}
			}
			if a := post(reviewer, 0); a.status != 200 || a.header.Get("X-Idempotent-Replay") != "true" {
				t.Errorf("%s: a repetition: %d %s", name, a.status, a.text)
			}
		}
		if want := limits[1]; taken != want {
			t.Errorf("%s: %d messages, want %d", name, taken, want)
		}
	}
}

// TestSessionsOverAStop: a registration that was answered before a server stops is there when it
// starts again.
func TestSessionsOverAStop(t *testing.T) {
	t.Parallel()
	s := start(t, quick("SUPERVISOR_MODE=off")...)
	id := s.create()
	for n := range 3 {
		runtime := fmt.Sprintf("tmux:agents_x:y.%d", n)
		s.post("heartbeat_session", executioner, `{"session_id":"sess_ex","runtime":"`+runtime+`","management_mode":"managed","resumable":true,"status":"active"}`)
		s.stop()
		s.run()
		if a := s.trigger(id); a.body["runtime"] != runtime || a.body["action"] != "trigger_runtime" || a.body["session_status"] != "active" {
			t.Error(a.text)
		}
	}
}

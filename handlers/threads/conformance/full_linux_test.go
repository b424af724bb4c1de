package conformance

import (
	"strings"
	"syscall"
	"testing"
)

// TestFullDisk: while the disk has too little room, what changes anything is answered with 503 and
// changes nothing, what reads is served, and so is a known key (threads §2.5).
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	size := func(flags uintptr, mb string) {
		if err := syscall.Mount("none", dir, "tmpfs", flags, "size="+mb+"m"); err != nil {
			t.Skip("a small disk cannot be mounted here: ", err)
		}
	}
	size(0, "1200")
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := start(t, "TRUNKLINE_STORE_DIR="+dir+"/data", "SUPERVISOR_MODE=off")
	id := s.create()
	th := `{"thread_id":"` + id + `"`
	post := th + `,"schema_version":1,"kind":"chat","body":"x","idempotency_key":"k"}`
	first := s.post("post_message", reviewer, post)
	beat := `{"session_id":"sess_ex","runtime":"tmux:agents_x:y.0","management_mode":"managed","resumable":true,"status":"idle"}`
	s.post("heartbeat_session", executioner, beat)
	ready := func() int { return s.request("GET", "/ready", "", "").status }
	size(syscall.MS_REMOUNT, "400")
	s.eventually("a full disk", func() bool { return ready() == 503 })
	reads := func() (all string) {
		t.Helper()
		for _, name := range []string{"get_thread", "read_messages", "summarize_thread"} {
			a := s.post(name, auditor, th+`}`)
			if all += a.text + "\n"; a.status != 200 {
				t.Errorf("%s: %d %s", name, a.status, a.text)
			}
		}
		for _, path := range []string{"/v1/audit?limit=500", "/v1/trigger_jobs?thread_id=" + id, "/health"} {
			a := s.request("GET", path, auditor, "")
			if path != "/health" {
				all += a.text + "\n"
			}
			if a.status != 200 {
				t.Errorf("%s: %d %s", path, a.status, a.text)
			}
		}
		return all
	}
	before := reads()
	changes := [][3]string{
		{"post_message", reviewer, strings.Replace(post, `"k"`, `"other"`, 1)},
		{"ack_read", reviewer, th + `,"last_read_seq":1}`},
		{"create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"t","type":"workflow","participants":["a"]}`},
		{"trigger_participant", coordinator, th + `,"target_agent_id":"executioner_agent","reason":"r","trigger_prompt":"p"}`},
		{"heartbeat_session", executioner, beat},
		{"update_thread_status", coordinator, th + `,"status":"blocked","reason":"r"}`},
	}
	for _, c := range changes {
		if a := s.post(c[0], c[1], c[2]); a.status != 503 || a.code() != "INTERNAL" || !strings.Contains(a.text, `"retryable":true`) || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", c[0], a.status, a.text)
		}
	}
	if a := s.post("post_message", reviewer, post); a.text != first.text || a.header.Get("X-Idempotent-Replay") != "true" {
		t.Errorf("a known key: %d %s", a.status, a.text)
	}
	if a := s.post("get_thread", foreigner, th+`}`); a.status != 403 {
		t.Error(a.status, a.text)
	}
	if after := reads(); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
	size(syscall.MS_REMOUNT, "1200")
	s.eventually("room", func() bool { return ready() == 200 })
	for _, c := range changes {
		if a := s.post(c[0], c[1], c[2]); a.status != 200 || c[0] == "post_message" && a.body["seq"] != 2.0 {
			t.Errorf("%s with room: %d %s", c[0], a.status, a.text)
		}
	}
	before = reads()
	s.kill()
	s.run()
	if after := reads(); after != before {
		t.Errorf("after a crash:\n%s\n%s", before, after)
	}
	s.stop()
}

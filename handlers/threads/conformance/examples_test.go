package conformance

import (
	"net"
	"regexp"
	"strings"
	"testing"

	"bufio"
)

// like turns an answer of the contract into a pattern: what varies stands for itself.
func like(text string) *regexp.Regexp {
	text = regexp.QuoteMeta(text)
	for name, pattern := range map[string]string{"TS": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, "TH": `th_[0-9A-HJKMNP-TV-Z]{26}`, "MSG": `msg_[0-9A-HJKMNP-TV-Z]{26}`, "TRG": `trg_[0-9A-HJKMNP-TV-Z]{26}`,
		"SCH": `sch_[0-9A-HJKMNP-TV-Z]{26}`, "DLY": `dly_[0-9A-HJKMNP-TV-Z]{26}`} {
		text = strings.ReplaceAll(text, "<"+name+">", pattern)
	}
	return regexp.MustCompile("^" + text + "$")
}

func (s *server) want(name, token, body string, status int, text string, header ...string) *answer {
	s.t.Helper()
	a := s.post(name, token, body, header...)
	if a.status != status || !like(text).MatchString(a.text) {
		s.t.Errorf("%s %s: %d %s, want %d %s", name, body, a.status, a.text, status, text)
	}
	return a
}

// TestExamples has the examples of threads §9 over HTTP.
func TestExamples(t *testing.T) {
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	th := `{"thread_id":"` + id + `"`
	s.want("get_thread", reviewer, th+`}`, 200, `{"thread_id":"<TH>","workspace_id":"wk_mobile_core","title":"Mapper review","type":"workflow","status":"active","participants":["executioner_agent","reviewer_agent"],"created_at":"<TS>","updated_at":"<TS>","latest_seq":0,"last_read_seq":0,"unread":0}`)
	post := th + `,"schema_version":1,"kind":"event","body":"Null fallback missing","metadata":{"event_type":"finding_reported","severity":"high","finding_id":"F1"},"idempotency_key":"f-1"}`
	first := s.want("post_message", reviewer, post, 200, `{"message_id":"<MSG>","seq":1,"thread_status":"active","created_at":"<TS>"}`)
	if again := s.post("post_message", reviewer, post); again.text != first.text || again.header.Get("X-Idempotent-Replay") != "true" || first.header.Get("X-Idempotent-Replay") != "" {
		t.Errorf("%s %v, want %s", again.text, again.header, first.text)
	}
	if a := s.request("POST", "/v1/mcp/post_message", reviewer, strings.Replace(post, "Null fallback missing", "other", 1)); a.status != 409 || a.code() != "IDEMPOTENCY_CONFLICT" {
		t.Error(a.status, a.text)
	}
	s.want("read_messages", reviewer, th+`,"since_seq":0,"limit":1}`, 200, `{"messages":[{"message_id":"<MSG>","schema_version":1,"seq":1,"kind":"event","body":"Null fallback missing","metadata":{"event_type":"finding_reported","severity":"high","finding_id":"F1"},"sender_agent_id":"reviewer_agent","sender_session_id":"sess_rv_12","created_at":"<TS>"}],"next_seq":1,"has_more":false}`)
	s.want("read_messages", reviewer, th+`,"since_seq":99}`, 200, `{"messages":[],"next_seq":1,"has_more":false}`)
	ack := s.want("ack_read", reviewer, th+`,"last_read_seq":1}`, 200, `{"ok":true,"updated_at":"<TS>"}`)
	if again := s.post("ack_read", reviewer, th+`,"last_read_seq":1.0}`); again.text != ack.text {
		t.Errorf("%s, want %s", again.text, ack.text)
	}
	reply := s.post("post_message", executioner, th+`,"schema_version":1.0,"kind":"chat","body":"a\u0000b \"c\" é","in_reply_to":"`+first.body["message_id"].(string)+`"}`)
	if reply.status != 200 {
		t.Fatal(reply.text)
	}
	a := s.post("read_messages", auditor, th+`,"since_seq":1}`)
	m := a.body["messages"].([]any)[0].(map[string]any)
	if m["body"] != "a\x00b \"c\" é" || m["in_reply_to"] != first.body["message_id"] {
		t.Errorf("%s", a.text)
	}
	s.want("heartbeat_session", reviewer, `{"session_id":"sess_rv_12","runtime":"tmux:agents_core:reviewer.0","management_mode":"managed","resumable":true,"status":"idle"}`, 200, `{"ok":true,"recorded_at":"<TS>"}`)
	trigger := th + `,"target_agent_id":"reviewer_agent","reason":"new_unread_messages","trigger_prompt":"Read & reply"}`
	job := s.want("trigger_participant", coordinator, trigger, 200, `{"trigger_id":"<TRG>","target_agent_id":"reviewer_agent","action":"trigger_runtime","result":"queued","job_status":"queued","target_session_id":"sess_rv_12","runtime":"tmux:agents_core:reviewer.0","management_mode":"managed","session_status":"idle","stale_session":false,"triggered_at":"<TS>"}`, "X-Request-Id", "wake-1")
	if again := s.post("trigger_participant", coordinator, trigger, "X-Request-Id", "wake-1"); again.text != job.text {
		t.Errorf("%s, want %s", again.text, job.text)
	}
	if a := s.post("trigger_participant", coordinator, strings.Replace(trigger, "Read", "Write", 1), "X-Request-Id", "wake-1"); a.code() != "IDEMPOTENCY_CONFLICT" {
		t.Error(a.text)
	}
	if a := s.post("trigger_participant", coordinator, trigger, "X-Request-Id", "a b"); a.code() != "VALIDATION_ERROR" {
		t.Error(a.text)
	}
	s.want("trigger_participant", operator, th+`,"target_agent_id":"executioner_agent","reason":"new_unread_messages","trigger_prompt":"Read & reply"}`, 200, `{"trigger_id":"<TRG>","target_agent_id":"executioner_agent","action":"fallback_required","result":"fallback_required","job_status":"fallback_spawn","fallback_action":"spawn_session","runtime_command":"codex exec \"Read & reply\"","stale_session":false,"triggered_at":"<TS>"}`)
	if a := s.request("GET", "/v1/trigger_jobs?thread_id="+id, auditor, ""); a.status != 200 || len(a.body["jobs"].([]any)) != 2 || strings.Contains(a.text, "Read & reply") {
		t.Error(a.text)
	}
	status := func(token, to, reason string, code int, want string) {
		t.Helper()
		a := s.request("POST", "/v1/mcp/update_thread_status", token, th+`,"status":"`+to+`","reason":"`+reason+`"}`)
		if got := a.code(); a.status != code || got != want {
			t.Errorf("%s because of %s: %d %s", to, reason, a.status, a.text)
		}
	}
	status(reviewer, "closed", "x", 403, "FORBIDDEN")
	status(coordinator, "blocked", "x", 200, "")
	status(coordinator, "blocked", "again", 200, "")
	status(reviewer, "active", "x", 403, "FORBIDDEN")
	status(coordinator, "resolved", "x", 409, "INVALID_THREAD_TRANSITION")
	status(coordinator, "closed", "done", 403, "FORBIDDEN")
	status(coordinator, "closed", "human_override:", 403, "FORBIDDEN")
	status(coordinator, "closed", "coordinator_override:human_approved", 200, "")
	status(coordinator, "active", "x", 409, "INVALID_THREAD_TRANSITION")
	if a := s.post("post_message", reviewer, post); a.status != 200 || a.body["thread_status"] != "closed" {
		t.Errorf("a repetition on a closed thread: %s", a.text)
	}
	if a := s.post("post_message", reviewer, strings.Replace(post, "f-1", "f-2", 1)); a.status != 409 || !strings.Contains(a.text, `"current_status":"closed"`) {
		t.Error(a.text)
	}
	events := s.request("GET", "/v1/audit?limit=500&thread_id="+id, coordinator, "")
	for operation, n := range map[string]int{"mcp.create_thread": 1, "mcp.update_thread_status": 3, "mcp.trigger_participant": 2} {
		if got := strings.Count(events.text, `"operation":"`+operation+`","resource_type":"thread"`); got != n {
			t.Errorf("%d events %s, want %d: %s", got, operation, n, events.text)
		}
	}
	if a := s.request("GET", "/v1/audit?limit=500", coordinator, ""); !strings.Contains(a.text, `"result":"rejected"`) {
		t.Error(a.text)
	}
	s.stop()
}

// TestSummaries has the example of threads §9 through the whole server.
func TestSummaries(t *testing.T) {
	s := start(t)
	id := s.create()
	th := `{"thread_id":"` + id + `"`
	s.want("summarize_thread", reviewer, th+`}`, 200, `{"summary":"No messages yet; thread is active.","open_items":[],"last_status":"active"}`)
	for _, m := range []string{`"finding_reported","finding_id":"F1","severity":"high","file":"a.dart","line":42|Null fallback missing`, `"fix_pushed","commit":"abc1234","finding_id":"F1"|pushed`,
		`"finding_reported","finding_id":"F2","severity":"high"|Locale fallback fails`} {
		meta, body, _ := strings.Cut(m, "|")
		s.post("post_message", reviewer, th+`,"schema_version":1,"kind":"event","body":"`+body+`","metadata":{"event_type":`+meta+`}}`)
	}
	s.want("summarize_thread", reviewer, th+`}`, 200, `{"summary":"2 blocking findings reported; none resolved.","open_items":["high: Null fallback missing (a.dart:42) [#1, fix pushed]","high: Locale fallback fails [#3, open]"],"last_status":"active"}`)
}

// dial opens a connection of lines.
func (s *server) dial(token string) *peer {
	s.t.Helper()
	c, err := net.Dial("tcp", s.lines)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	p := &peer{t: s.t, in: bufio.NewReaderSize(c, 1<<16), ReadWriteCloser: c}
	_ = p.send(`{"id":0,"method":"auth","params":{"protocol":"threads/1","token":"%s"}}`, token)
	if line, err := p.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"id":0,"ok":true`) {
		s.t.Fatal(line, err)
	}
	return p
}

// TestLines: two posts and a read in one packet, in that order; what one surface has answered is on
// every other.
func TestLines(t *testing.T) {
	s := start(t)
	id := s.create()
	p := s.dial(reviewer)
	post := `{"id":%d,"method":"post_message","params":{"thread_id":"` + id + `","schema_version":1,"kind":"chat","body":"%s"}}`
	read := `{"id":3,"method":"read_messages","params":{"thread_id":"` + id + `"}}`
	_ = p.send(post+"\n"+post+"\n"+read, 1, "a", 2, "b")
	for i, want := range []string{`{"id":1,"ok":true,"result":{"message_id":"<MSG>","seq":1,"thread_status":"active","created_at":"<TS>"}}`,
		`{"id":2,"ok":true,"result":{"message_id":"<MSG>","seq":2,"thread_status":"active","created_at":"<TS>"}}`, ``} {
		line, err := p.in.ReadString('\n')
		if err != nil || want != "" && !like(want).MatchString(strings.TrimSuffix(line, "\n")) || want == "" && strings.Count(line, `"body":`) != 2 {
			t.Errorf("line %d: %q (%v)", i, line, err)
		}
	}
	if a := s.post("read_messages", reviewer, `{"thread_id":"`+id+`"}`); strings.Count(a.text, `"body":`) != 2 {
		t.Error(a.text)
	}
}

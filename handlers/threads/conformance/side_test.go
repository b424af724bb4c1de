package conformance

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestSideRoutes has the routes of threads §4.10, which need no token.
func TestSideRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, "PUBLIC_URL=https://x.example/", "AUTH_SERVERS=https://a.example,https://b.example", "SUPERVISOR_MODE=off")
	for _, path := range []string{"/health", "/ready"} {
		if a := s.request("GET", path, "", ""); a.status != 200 || !like(`{"ok":true,"service":"bridge-api","now":"<TS>"}`).MatchString(a.text) {
			t.Error(path, a.status, a.text)
		}
		if a := s.request("POST", path, "", `{}`); a.status != 405 {
			t.Error(path, a.status, a.text)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		a := s.request("GET", path, "", "")
		const want = `{"resource":"https://x.example/mcp","authorization_servers":["https://a.example","https://b.example"],"bearer_methods_supported":["header"],"resource_name":"threads"}`
		if a.status != 200 || a.text != want || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Error(path, a.status, a.text, a.header)
		}
	}
	if a := s.request("OPTIONS", "/.well-known/oauth-protected-resource/mcp", "", "", "Origin", "https://app.example", "Access-Control-Request-Method", "GET"); a.status != 204 ||
		a.header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version") {
		t.Error(a.status, a.text, a.header)
	}
	id := s.create()
	s.post("post_message", executioner, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"x"}`)
	s.post("get_thread", reviewer, `{}`)
	for i := range 20 {
		s.request("GET", fmt.Sprintf("/nope/%d", i), "", "")
		s.request(fmt.Sprintf("M%d", i), "/v1/get_thread", reviewer, "")
	}
	s.mcp(rpc("tools/list", ""))
	a := s.request("GET", "/metrics", "", "")
	if a.status != 200 || a.header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(a.status, a.header)
	}
	for _, line := range []string{`bridge_requests_total{operation="mcp.create_thread",method="POST",status_code="200"} 1`, `bridge_requests_total{operation="mcp.get_thread",method="POST",status_code="400"} 1`,
		`bridge_requests_total{operation="mcp.get_thread",method="other",status_code="405"} 20`, `bridge_requests_total{operation="other",method="GET",status_code="404"} 20`,
		`bridge_requests_total{operation="GET /health",method="GET",status_code="200"} 1`, `bridge_requests_total{operation="mcp_endpoint",method="POST",status_code="200"} 1`,
		`bridge_errors_total{code="NOT_FOUND"} 20`, `thread_messages_total 1`, `trigger_attempts_total{result="delivered"} 0`, `unread_dormant_participants `, `bridge_request_duration_ms_total{operation="mcp.post_message"} `} {
		if !strings.Contains(a.text, "\n"+line) {
			t.Errorf("%s\nlacks %s", a.text, line)
		}
	}
	operations := regexp.MustCompile(`operation="([^"]*)"`)
	allowed := regexp.MustCompile(`^(mcp\.(ack_read|cancel_message|create_schedule|create_thread|delete_schedule|get_thread|heartbeat_session|list_schedules|list_threads|post_message|read_messages|summarize_thread|trigger_participant|update_participants|update_schedule|update_thread_status)|GET /health|GET /ready|GET /metrics|mcp_endpoint|other)$`)
	for _, m := range operations.FindAllStringSubmatch(a.text, -1) {
		if !allowed.MatchString(m[1]) {
			t.Errorf("operation %s", m[1])
		}
	}
	s = start(t, "AUTH_ISSUER=not-a-url", "PUBLIC_URL=https://x.example")
	if a := s.request("GET", "/.well-known/oauth-protected-resource", "", ""); a.status != 404 {
		t.Error(a.status, a.text)
	}
	if a := s.post("get_thread", "", `{}`); a.header.Get("Www-Authenticate") != "Bearer" {
		t.Error(a.header)
	}
	s = start(t)
	if a := s.request("GET", "/.well-known/oauth-protected-resource", "", ""); a.status != 404 || !strings.Contains(a.text, "threads.public_url is not set") {
		t.Error(a.status, a.text)
	}
}

// TestAudit has the audit of threads §4.11 and §6: what is in it, its pages, and that each
// workspace sees its own.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	s.post("update_thread_status", coordinator, `{"thread_id":"`+id+`","status":"blocked","reason":"wait","metadata":{ "a" : 1.50 }}`, "X-Request-Id", "mine")
	s.post("update_thread_status", coordinator, `{"thread_id":"`+id+`","status":"blocked","reason":"wait"}`)
	s.post("update_thread_status", operator, `{"thread_id":"`+id+`","status":"closed","reason":"human_override:done"}`)
	s.post("post_message", executioner, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"x"}`) // 409: neither
	s.post("create_thread", reviewer, `{"workspace_id":"wk_mobile_core","title":"x","type":"incident","participants":["a"]}`)
	s.post("get_thread", "bad", `{"workspace_id":"wk_mobile_core"}`)
	s.mcp(rpc("tools/list", ""), "Authorization", "")
	p := s.dial(reviewer)
	_ = p.send(`{"id":1,"method":"create_thread","params":{"workspace_id":"wk_mobile_core","title":"x","type":"incident","participants":["a"]},"request_id":"of a line"}`)
	p.want(`{"id":1,"ok":false,"error":{"code":"FORBIDDEN"`)
	var all *answer
	s.eventually("the durability of refusals, which nobody waits for", func() bool {
		all = s.request("GET", "/v1/audit", auditor, "")
		return strings.Count(all.text, "rejected") == 2
	})
	begin := `{"event_id":\d+,"workspace_id":"wk_mobile_core","actor_agent_id":"%s","actor_role":"%s","operation":"%s","resource_type":"%s","resource_id":"[^"]+",("thread_id":"` + id + `",)?"request_id":"%s","result":"%s"%s,"created_at":"[^"]+"}`
	var events []string
	for _, e := range [][]any{
		{"coordinator_agent", "coordinator", "mcp.create_thread", "thread", "req_[^\"]+", "success", ""},
		{"coordinator_agent", "coordinator", "mcp.update_thread_status", "thread", "mine", "success", `,"payload":{"from_status":"active","to_status":"blocked","reason":"wait","metadata":{"a":1.50}}`},
		{"coordinator_agent", "coordinator", "mcp.update_thread_status", "thread", "req_[^\"]+", "success", `,"payload":{"from_status":"blocked","to_status":"blocked","reason":"wait","noop":true}`},
		{"operator_agent", "operator", "mcp.update_thread_status", "thread", "req_[^\"]+", "success", `,"payload":{"from_status":"blocked","to_status":"closed","reason":"human_override:done","override":true}`},
		{"reviewer_agent", "participant", "mcp.create_thread", "request", "req_[^\"]+", "rejected", `,"payload":{[^}]*"FORBIDDEN"[^}]*}`},
		{"reviewer_agent", "participant", "mcp.create_thread", "request", "req_[^\"]+", "rejected", `,"payload":{[^}]*"FORBIDDEN"[^}]*}`},
	} {
		events = append(events, fmt.Sprintf(begin, e...))
	}
	if want := regexp.MustCompile(`^{"events":\[` + strings.Join(events, ",") + `\],"next_after":\d+,"has_more":false}$`); !want.MatchString(all.text) {
		t.Errorf("%s\nwant %s", all.text, want)
	}
	seen, after := 0, "0"
	for more := true; more; {
		a := s.request("GET", "/v1/audit?limit=4&after="+after, auditor, "")
		seen += strings.Count(a.text, `"event_id":`)
		after, more = fmt.Sprint(a.body["next_after"]), a.body["has_more"].(bool)
	}
	if seen != 6 {
		t.Errorf("%d events in pages, want 6", seen)
	}
	if a := s.request("GET", "/v1/audit?thread_id="+id, auditor, ""); strings.Count(a.text, `"event_id":`) != 4 {
		t.Error(a.text)
	}
	if a := s.request("GET", "/v1/audit", foreigner, ""); strings.Contains(a.text, "event_id") {
		t.Error(a.text)
	}
	for query, status := range map[string]int{"limit=500": 200, "limit=501": 400, "limit=0": 400, "after=-1": 400, "after=x": 400, "limit=1&limit=2": 400, "after=%zz": 400} {
		if a := s.request("GET", "/v1/audit?"+query, auditor, ""); a.status != status {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.text, status)
		}
	}
}

// TestSuppressedAudit: of the refusals of one caller some are recorded in each second, and the
// others are counted, to the last one. Those of another caller are recorded.
func TestSuppressedAudit(t *testing.T) {
	t.Parallel()
	s := start(t)
	const refusals = 5000
	create := `{"id":1,"method":"create_thread","params":{"workspace_id":"wk_mobile_core","title":"x","type":"incident","participants":["a"]}}`
	p := s.dial(reviewer)
	go func() { _ = p.send("%s", strings.TrimSuffix(strings.Repeat(create+"\n", refusals), "\n")) }()
	for range refusals {
		p.want(`{"id":1,"ok":false,"error":{"code":"FORBIDDEN"`)
	}
	other := s.dial(executioner)
	_ = other.send("%s", create)
	other.want(`{"id":1,"ok":false,"error":{"code":"FORBIDDEN"`)
	rows := 0
	s.eventually("a count of all refusals", func() bool {
		rows = 0
		counted, others, after := 0, 0, 0.0
		for more := true; more; {
			a := s.request("GET", fmt.Sprintf("/v1/audit?limit=500&after=%.0f", after), auditor, "")
			list, _ := a.body["events"].([]any)
			for _, e := range list {
				row := e.(map[string]any)
				if row["actor_agent_id"] == "executioner_agent" {
					others++
					continue
				}
				rows++
				payload, _ := row["payload"].(map[string]any)
				suppressed, _ := payload["suppressed"].(float64)
				counted += 1 + int(suppressed)
			}
			after, _ = a.body["next_after"].(float64)
			more, _ = a.body["has_more"].(bool)
		}
		return counted == refusals && others == 1
	})
	if rows > refusals/2 {
		t.Errorf("%d refusals have %d rows", refusals, rows)
	}
}

// TestLongAudit: a page of the audit has 4 MiB (threads §6).
func TestLongAudit(t *testing.T) {
	t.Parallel()
	s := start(t)
	update := `{"thread_id":"` + s.create() + `","status":"active","reason":"r","metadata":{"a":"` + strings.Repeat("x", 262000) + `"}}`
	const changes = 20
	for range changes {
		s.post("update_thread_status", coordinator, update)
	}
	seen, pages, after := 0, 0, "0"
	for more := true; more; pages++ {
		a := s.request("GET", "/v1/audit?limit=500&after="+after, auditor, "")
		if a.status != 200 || len(a.text) > 4<<20+100 {
			t.Fatalf("%d, %d bytes", a.status, len(a.text))
		}
		seen += strings.Count(a.text, `"event_id":`)
		after, more = fmt.Sprintf("%.0f", a.body["next_after"]), a.body["has_more"].(bool)
	}
	if seen != 1+changes || pages != 2 {
		t.Errorf("%d events on %d pages", seen, pages)
	}
}

// TestJobs has the list of jobs of threads §4.11, and the forms of trigger_participant.
func TestJobs(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	trigger := `{"thread_id":"` + id + `","target_agent_id":"executioner_agent","reason":"%s","trigger_prompt":"a\nb"}`
	for _, reason := range []string{"first", "second"} {
		s.post("trigger_participant", coordinator, fmt.Sprintf(trigger, reason))
	}
	a := s.request("GET", "/v1/trigger_jobs?thread_id="+id, auditor, "")
	job := `{"trigger_id":"<TRG>","thread_id":"<TH>","workspace_id":"wk_mobile_core","target_agent_id":"executioner_agent","reason":"%s","job_status":"fallback_spawn","attempts":0,"max_retries":2,"next_attempt_at":"<TS>","created_at":"<TS>","updated_at":"<TS>"}`
	if want := like(fmt.Sprintf(`{"jobs":[`+job+`,`+job+`]}`, "second", "first")); !want.MatchString(a.text) {
		t.Errorf("%s, want %s", a.text, want)
	}
	foreign := s.post("create_thread", foreigner, `{"workspace_id":"wk_other","title":"x","type":"workflow","participants":["a"]}`).body["thread_id"].(string)
	for query, status := range map[string]int{"thread_id=" + id + "&limit=200": 200, "thread_id=" + id + "&limit=201": 400, "thread_id=" + id + "&limit=0": 400, "": 400, "thread_id=": 400, "thread_id=x": 404, "thread_id=" + foreign: 403} {
		if a := s.request("GET", "/v1/trigger_jobs?"+query, auditor, ""); a.status != status {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.text, status)
		}
	}
	// One id of a request is one job, over HTTP and lines; another workspace may use it, too.
	one := s.request("POST", "/v1/mcp/trigger_participant", coordinator, fmt.Sprintf(trigger, "third"), "X-Request-Id", "wake-1")
	p := s.dial(coordinator)
	_ = p.send(`{"id":1,"method":"trigger_participant","params":%s,"request_id":"wake-1"}`, fmt.Sprintf(trigger, "third"))
	p.want(`{"id":1,"ok":true,"result":{"trigger_id":"` + one.body["trigger_id"].(string))
	_ = p.send(`{"id":2,"method":"trigger_participant","params":%s,"request_id":"wake-1"}`, fmt.Sprintf(trigger, "fourth"))
	p.want(`{"id":2,"ok":false,"error":{"code":"IDEMPOTENCY_CONFLICT"`)
	if a := s.post("trigger_participant", foreigner, `{"thread_id":"`+foreign+`","target_agent_id":"a","reason":"r","trigger_prompt":"x"}`, "X-Request-Id", "wake-1"); a.status != 200 {
		t.Error(a.text)
	}
	if a := s.post("trigger_participant", coordinator, strings.Replace(fmt.Sprintf(trigger, "key"), "}", `,"idempotency_key":"k"}`, 1), "X-Request-Id", "wake-1"); a.status != 200 || a.body["trigger_id"] == one.body["trigger_id"] {
		t.Errorf("the key does not win: %s", a.text)
	}
}

// TestSummaryOfTheContract has the whole example of threads §9 for summaries.
func TestSummaryOfTheContract(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	th := `{"thread_id":"` + id + `"`
	say := func(body, metadata string) {
		t.Helper()
		if a := s.post("post_message", reviewer, th+`,"schema_version":1,"kind":"event","body":"`+body+`","metadata":{"event_type":`+metadata+`}}`); a.status != 200 {
			t.Fatal(a.text)
		}
	}
	say("Null fallback missing", `"finding_reported","finding_id":"F1","severity":"high","file":"a.dart","line":42`)
	say("pushed", `"fix_pushed","commit":"abc1234","finding_id":"F1"`)
	say("Locale fallback fails", `"finding_reported","finding_id":"F2","severity":"high"`)
	s.want("summarize_thread", reviewer, th+`}`, 200, `{"summary":"2 blocking findings reported; none resolved.","open_items":["high: Null fallback missing (a.dart:42) [#1, fix pushed]","high: Locale fallback fails [#3, open]"],"last_status":"active"}`)
	say("good", `"finding_verified","finding_id":"F1"`)
	s.want("summarize_thread", reviewer, th+`}`, 200, `{"summary":"2 blocking findings reported; 1 resolved after commit abc1234, 1 open.","open_items":["high: Locale fallback fails [#3, open]"],"last_status":"active"}`)
	say("pushed again", `"fix_pushed","commit":"def5678"`)
	say("all good", `"finding_verified","finding_id":"F2"`)
	s.post("update_thread_status", reviewer, th+`,"status":"resolved","reason":"done"}`)
	s.want("summarize_thread", reviewer, th+`}`, 200, `{"summary":"2 blocking findings reported; both resolved after commits abc1234 and def5678.","open_items":[],"last_status":"resolved"}`)
	s.want("summarize_thread", reviewer, th+`,"max_messages":2}`, 200, `{"summary":"Last 2 of 6 messages: No findings reported in 2 messages. Last #6 from reviewer_agent: all good","open_items":[],"last_status":"resolved"}`)
}

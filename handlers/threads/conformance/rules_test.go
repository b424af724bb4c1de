package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/threads/method"
)

// inputs are a good document of every method; $TH is a thread, $S the session of the caller.
var inputs = map[string]string{
	"ack_read":             `{"thread_id":"$TH","last_read_seq":0`,
	"create_thread":        `{"workspace_id":"wk_mobile_core","title":"x","type":"incident","participants":["a"]`,
	"get_thread":           `{"thread_id":"$TH"`,
	"heartbeat_session":    `{"session_id":"$S","runtime":"r","resumable":true,"status":"idle"`,
	"post_message":         `{"thread_id":"$TH","schema_version":1,"kind":"chat","body":"x"`,
	"read_messages":        `{"thread_id":"$TH"`,
	"summarize_thread":     `{"thread_id":"$TH"`,
	"list_threads":         `{"order":"created"`,
	"update_participants":  `{"thread_id":"$TH","add":["helper_agent"],"reason":"r"`,
	"trigger_participant":  `{"thread_id":"$TH","target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"x"`,
	"update_thread_status": `{"thread_id":"$TH","status":"active","reason":"r"`,
	"create_schedule":      `{"thread_id":"$TH","every_ms":31622400000,"message":{"body":"x"}`,
	"list_schedules":       `{"thread_id":"$TH"`,
	"update_schedule":      `{"schedule_id":"$ID","paused":true`,
	"delete_schedule":      `{"schedule_id":"$ID"`,
	"cancel_message":       `{"deferred_id":"$ID"`,
}

// timer makes $ID a new schedule or deferred message of the reviewer.
func (s *server) timer(thread, doc string) string {
	s.t.Helper()
	name, made := "create_schedule", `{"thread_id":"`+thread+`","every_ms":31622400000,"message":{"body":"x"}}`
	if strings.Contains(doc, "deferred_id") {
		name, made = "post_message", fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"x","deliver_at":%d}`, thread, time.Now().Add(time.Hour).UnixMilli())
	}
	if strings.Contains(doc, "$ID") {
		doc = strings.ReplaceAll(doc, "$ID", timers.FindString(s.post(name, reviewer, made).text))
	}
	return doc
}

// TestRoles has every cell of the table of roles and methods of threads §3.1 on every surface.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	member := tokenOf(claims{"agent_id": "reviewer_agent", "role": "auditor", "session_id": "sess_aud"})
	const scheduling = "cancel_message create_schedule delete_schedule list_schedules update_schedule"
	callers := []struct{ token, session, may string }{
		{reviewer, "sess_rv_12", "ack_read get_thread heartbeat_session list_threads post_message read_messages summarize_thread update_thread_status " + scheduling},
		{stranger, "sess_st", "get_thread heartbeat_session list_threads"},
		{coordinator, "sess_co", "ack_read create_thread get_thread heartbeat_session list_threads post_message read_messages summarize_thread trigger_participant update_participants update_thread_status " + scheduling},
		{operator, "sess_op", "ack_read create_thread get_thread heartbeat_session list_threads post_message read_messages summarize_thread trigger_participant update_participants update_thread_status " + scheduling},
		{auditor, "sess_au", "get_thread heartbeat_session list_schedules list_threads read_messages summarize_thread"},
		{member, "sess_aud", "ack_read get_thread heartbeat_session list_schedules list_threads read_messages summarize_thread"},
	}
	for on, call := range surfaces {
		for _, c := range callers {
			for i := range method.Rows {
				name := method.Rows[i].Name
				doc := s.timer(id, strings.NewReplacer("$TH", id, "$S", c.session).Replace(inputs[name])) + "}"
				want := "FORBIDDEN"
				if strings.Contains(c.may, name) {
					want = ""
				}
				if _, code := call(s, name, c.token, doc); code != want {
					t.Errorf("%s over %s by %s: %q, want %q", name, on, c.session, code, want)
				}
			}
		}
	}
	for _, path := range []string{"/v1/audit", "/v1/trigger_jobs?thread_id=" + id} {
		for token, status := range map[string]int{reviewer: 403, coordinator: 200, operator: 200, auditor: 200, "": 401} {
			if a := s.request("GET", path, token, ""); a.status != status {
				t.Errorf("%s: %d %s, want %d", path, a.status, a.text, status)
			}
		}
	}
}

// TestHints: what a payload of any method has about the caller is as in the token, else it is
// refused; the workspace comes first (threads §3.1).
func TestHints(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	own := map[string]string{"agent_id": "coordinator_agent", "session_id": "sess_co", "role": "coordinator"}
	for i := range method.Rows {
		name := method.Rows[i].Name
		doc := s.timer(id, strings.NewReplacer("$TH", id, "$S", "sess_co").Replace(inputs[name]))
		hints := map[string]string{}
		for hint, value := range own {
			if !strings.Contains(doc, `"`+hint+`"`) {
				hints[hint] = value
			}
		}
		switch name {
		case "create_thread":
			hints["created_by"] = own["agent_id"]
		case "post_message":
			hints["sender_agent_id"], hints["sender_session_id"] = own["agent_id"], own["session_id"]
		}
		if !strings.Contains(doc, `"workspace_id"`) {
			if a := s.post(name, coordinator, doc+`,"agent_id":"x","workspace_id":"wk_other"}`); a.code() != "OUT_OF_SCOPE_WORKSPACE" {
				t.Errorf("%s: %s", name, a.text)
			}
			doc += `,"workspace_id":"wk_mobile_core"`
		}
		for hint, value := range hints {
			for on, call := range surfaces {
				if _, code := call(s, name, coordinator, fmt.Sprintf(`%s,"%s":"x"}`, doc, hint)); code != "CLAIM_MISMATCH" {
					t.Errorf("%s over %s with another %s: %q", name, on, hint, code)
				}
			}
			for _, bad := range []string{`""`, `7`} {
				if a := s.post(name, coordinator, fmt.Sprintf(`%s,"%s":%s}`, doc, hint, bad)); a.status != 400 && a.status != 403 {
					t.Errorf("%s with %s %s: %s", name, hint, bad, a.text)
				}
			}
			doc += fmt.Sprintf(`,"%s":"%s"`, hint, value)
		}
		if a := s.post(name, coordinator, doc+`,"schema_version":2}`); name != "post_message" && a.status != 400 {
			t.Errorf("%s of another version: %s", name, a.text)
		}
		if a := s.post(name, coordinator, doc+"}"); a.status != 200 {
			t.Errorf("%s with all hints: %s", name, a.text)
		}
	}
}

// TestFields has the types of threads §3.2 and the limits of §6: at the limit, and one more, on
// every surface.
func TestFields(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	x := func(n int) string { return strings.Repeat("x", n) }
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	people := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"a%d"`, i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	post := `{"thread_id":"` + id + `","schema_version":1,"kind":"chat","body":"x",`
	create := func(title, participants string) string {
		return `{"workspace_id":"wk_mobile_core","type":"incident","title":"` + title + `","participants":` + participants + `}`
	}
	trigger := func(reason, prompt string) string {
		return `{"thread_id":"` + id + `","target_agent_id":"reviewer_agent","reason":"` + reason + `","trigger_prompt":"` + prompt + `"}`
	}
	read := func(members string) string { return `{"thread_id":"` + id + `",` + members + `}` }
	beat := func(runtime string) string {
		return `{"session_id":"sess_co","resumable":true,"status":"idle","runtime":"` + runtime + `"}`
	}
	for _, c := range []struct{ method, doc, code string }{
		{"heartbeat_session", beat(x(256)), ""},
		{"heartbeat_session", beat(" \u00a0\ufeff" + x(256) + "\\u2003"), ""},
		{"heartbeat_session", beat(x(257)), "VALIDATION_ERROR"},
		{"heartbeat_session", beat("a\\tb"), "VALIDATION_ERROR"},
		{"heartbeat_session", beat("a\\u007fb"), "VALIDATION_ERROR"},
		{"heartbeat_session", beat("a\\u0085b"), "VALIDATION_ERROR"},
		{"post_message", post + `"idempotency_key":"` + x(200) + `"}`, ""},
		{"post_message", post + `"idempotency_key":"` + x(201) + `"}`, "VALIDATION_ERROR"},
		{"create_thread", create(x(1024), `["a"]`), ""},
		{"create_thread", create("a\\tb\\u0085c", `["a"]`), ""},
		{"create_thread", create(x(1025), `["a"]`), "VALIDATION_ERROR"},
		{"create_thread", create("a\\nb", `["a"]`), "VALIDATION_ERROR"},
		{"create_thread", create("x", people(256)), ""},
		{"create_thread", create("x", people(257)), "VALIDATION_ERROR"},
		{"create_thread", create("x", `["a","\u00a0a"]`), "VALIDATION_ERROR"},
		{"create_thread", create("x", `["a",7]`), "VALIDATION_ERROR"},
		{"trigger_participant", trigger(x(256), x(8192)), ""},
		{"trigger_participant", trigger(x(257), "x"), "VALIDATION_ERROR"},
		{"trigger_participant", trigger("r", x(8193)), "VALIDATION_ERROR"},
		{"post_message", post + `"metadata":{"a":"` + x(262144-8) + `"}}`, ""},
		{"post_message", post + `"metadata":{ "a": "` + x(262144-8) + `" } }`, ""},
		{"post_message", post + `"metadata":{"a":"` + x(262144-7) + `"}}`, "VALIDATION_ERROR"},
		{"post_message", post + `"metadata":{"a":` + nested(31) + `}}`, ""},
		{"post_message", post + `"metadata":{"a":` + nested(32) + `}}`, "VALIDATION_ERROR"},
		{"read_messages", read(`"x":` + nested(63)), ""},
		{"read_messages", read(`"x":` + nested(64)), "VALIDATION_ERROR"},
		{"read_messages", read(`"limit":5e1,"since_seq":0.0e5`), ""},
		{"read_messages", read(`"limit":200.0,"since_seq":-0`), ""},
		{"read_messages", read(`"limit":2000e-1,"since_seq":9007199254740991`), ""},
		{"read_messages", read(`"limit":true`), "VALIDATION_ERROR"},
		{"read_messages", read(`"limit":2e-1`), "VALIDATION_ERROR"},
		{"read_messages", read(`"since_seq":9007199254740991.5`), "VALIDATION_ERROR"},
		{"read_messages", read(`"since_seq":1e400`), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":1e400`), ""},
		{"read_messages", read(`"x":1e401`), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":1` + strings.Repeat("0", 63)), ""},
		{"read_messages", read(`"x":1` + strings.Repeat("0", 64)), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":null,"Limit":0,"LIMIT":"x"`), ""},
		{"read_messages", read(`"agent_id":null,"since_seq":null,"limit":null,"schema_version":null`), ""},
		{"read_messages", read(`"schema_version":1.0`), ""},
		{"read_messages", read(`"x":{"a":[{"b":1,"\u0062":2}]}`), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":{"__proto__":1}`), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":{"\u005f_proto__":1}`), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":"\udc00\ud800"`), "VALIDATION_ERROR"},
		{"read_messages", read(`"x":"\ud83d\ude00"`), ""},
		{"summarize_thread", read(`"max_messages":1000`), ""},
	} {
		for on, call := range surfaces {
			if _, code := call(s, c.method, coordinator, c.doc); code != c.code {
				t.Errorf("%s over %s %.200s: %q, want %q", c.method, on, c.doc, code, c.code)
			}
		}
	}
}

// TestIssues has the details of refused fields (threads §3.4).
func TestIssues(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, c := range []struct{ method, doc, want string }{
		{"read_messages", `{"limit":201,"since_seq":-1}`, `[{"path":["thread_id"],"code":"required"},{"path":["since_seq"],"code":"too_small"},{"path":["limit"],"code":"too_big"}]`},
		{"read_messages", `{"thread_id":7}`, `[{"path":["thread_id"],"code":"invalid_type"}]`},
		{"read_messages", `{"thread_id":"a\u0001"}`, `[{"path":["thread_id"],"code":"invalid_string"}]`},
		{"read_messages", `{"thread_id":"a","thread_id":"b"}`, `[{"path":[],"code":"duplicate_key"}]`},
		{"post_message", `{"thread_id":"a","schema_version":2,"kind":"x","body":" "}`, `[{"path":["schema_version"],"code":"invalid_literal"},{"path":["kind"],"code":"invalid_enum_value"},{"path":["body"],"code":"too_small"}]`},
		{"create_thread", `{"workspace_id":"a","title":"x","type":"incident","participants":["a"," a"]}`, `[{"path":["participants",1],"code":"not_unique"}]`},
	} {
		a := s.post(c.method, coordinator, c.doc)
		e, _ := a.body["error"].(map[string]any)
		details, _ := e["details"].(map[string]any)
		issues, _ := details["issues"].([]any)
		var got []string
		for _, i := range issues {
			issue := i.(map[string]any)
			path := strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%q", issue["path"]), " ", ","), "%!q(float64=1)", "1")
			if text, _ := issue["message"].(string); text == "" || len(issue) != 3 {
				t.Errorf("%v", issue)
			}
			got = append(got, fmt.Sprintf(`{"path":%s,"code":"%s"}`, path, issue["code"]))
		}
		if text := "[" + strings.Join(got, ",") + "]"; a.status != 400 || text != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.doc, text, c.want)
		}
	}
}

// TestRepetitions has the rows of threads §8 about keys: what is the same, and how long.
func TestRepetitions(t *testing.T) {
	t.Parallel()
	s := start(t, "IDEMPOTENCY_WINDOW=2")
	id := s.create()
	post := func(key, members string) *answer {
		return s.post("post_message", reviewer, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","idempotency_key":"%s",%s}`, id, key, members))
	}
	first := post("a", `"body":"hi","metadata":{"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"}`)
	for members, status := range map[string]int{
		`"body":"hi","metadata":{"a":"\u00e9\u000a","b":[true,null],"f":15e-1,"n":1e2,"z":0.0}`: 200,
		`"metadata":{"n":100,"f":1.5,"z":0,"b":[true,null],"a":"é\n"},"body":"\u0068i"`:         200,
		`"body":"hi","metadata":{"n":100,"f":1.51,"z":-0,"b":[true,null],"a":"é\n"}`:            409,
		`"body":"hi","metadata":{"n":100,"f":1.50,"z":-0,"b":[null,true],"a":"é\n"}`:            409,
		`"body":"hi","metadata":{}`: 409,
		`"body":"hi"`:               409,
		`"body":"other"`:            409,
	} {
		a := post("a", members)
		if a.status != status || status == 200 && (a.text != first.text || a.header.Get("X-Idempotent-Replay") != "true") || status == 409 && a.code() != "IDEMPOTENCY_CONFLICT" {
			t.Errorf("%s: %d %s", members, a.status, a.text)
		}
	}
	create := `{"workspace_id":"wk_mobile_core","title":"x","type":"incident","participants":["a","b"],"idempotency_key":"c"}`
	thread := s.post("create_thread", coordinator, create)
	if a := s.post("create_thread", coordinator, create); a.text != thread.text || a.header.Get("X-Idempotent-Replay") != "true" {
		t.Error(a.text, a.header)
	}
	if a := s.post("create_thread", operator, create); a.status != 200 || a.text == thread.text {
		t.Errorf("the key of another agent: %s", a.text)
	}
	if a := s.post("create_thread", coordinator, strings.Replace(create, `"a","b"`, `"b","a"`, 1)); a.code() != "IDEMPOTENCY_CONFLICT" {
		t.Error(a.text)
	}
	s.eventually("the end of a key", func() bool {
		a := post("a", `"body":"hi","metadata":{"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"}`)
		return a.status == 200 && a.body["seq"] == float64(2)
	})
	page := s.post("read_messages", reviewer, `{"thread_id":"`+id+`","limit":1}`)
	if !strings.Contains(page.text, `"metadata":{"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"}`) || strings.Contains(page.text, "idempotency_key") {
		t.Error(page.text)
	}
}

// TestPages has the pages of threads §4.4: at most limit messages, and 4 MiB.
func TestPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	body := strings.Repeat("x", 1<<20-1000)
	for range 6 {
		if a := s.post("post_message", reviewer, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"`+body+`"}`); a.status != 200 {
			t.Fatal(a.text)
		}
	}
	seen, pages := 0, 0
	for more := true; more; pages++ {
		a := s.post("read_messages", executioner, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d}`, id, seen))
		list, _ := a.body["messages"].([]any)
		if len(a.text) > 4<<20+100 || len(list) == 0 {
			t.Fatalf("%d bytes, %d messages", len(a.text), len(list))
		}
		for _, m := range list {
			if seen++; m.(map[string]any)["seq"] != float64(seen) {
				t.Errorf("number %v, want %d", m.(map[string]any)["seq"], seen)
			}
		}
		if more = a.body["has_more"].(bool); a.body["next_seq"] != float64(seen) {
			t.Error(a.body["next_seq"])
		}
	}
	if seen != 6 || pages != 2 {
		t.Errorf("%d messages on %d pages", seen, pages)
	}
}

// TestSessions has the rows of threads §4.8: a session belongs to one agent, and the last report
// counts.
func TestSessions(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	beat := `{"session_id":"sess_rv_12","runtime":"tmux:agents:w","management_mode":"managed","resumable":false,"status":"%s"}`
	first := s.post("heartbeat_session", reviewer, fmt.Sprintf(beat, "idle"))
	thief := tokenOf(claims{"agent_id": "executioner_agent"})
	if a := s.post("heartbeat_session", thief, fmt.Sprintf(beat, "idle")); a.status != 409 || a.code() != "CONFLICT" {
		t.Error(a.status, a.text)
	}
	again := s.post("heartbeat_session", reviewer, fmt.Sprintf(beat, "offline"))
	at := func(a *answer) time.Time {
		v, err := time.Parse("2006-01-02T15:04:05.000Z", a.body["recorded_at"].(string))
		if err != nil {
			t.Error(err)
		}
		return v
	}
	if at(again).Before(at(first)) {
		t.Errorf("%s before %s", again.text, first.text)
	}
	trigger := `{"thread_id":"` + id + `","target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"x"}`
	for path, result := range map[string]string{"/v1/": "fallback_required", "/v1/mcp/": "fallback_required"} {
		a := s.request("POST", path+"trigger_participant", coordinator, trigger)
		if a.body["action"] != "fallback_required" || a.body["result"] != result || a.body["job_status"] != "fallback_spawn" || a.body["session_status"] != "offline" {
			t.Error(path, a.text)
		}
	}
}

// TestTransitions has every cell of the table of threads §5.1, by a member and by a coordinator.
func TestTransitions(t *testing.T) {
	t.Parallel()
	s := start(t)
	const conflict, authority = "CONFLICT", "INSUFFICIENT_AUTHORITY"
	ways := map[string][]string{"active": nil, "blocked": {"blocked"}, "resolved": {"resolved"}, "closed": {"closed"}}
	member := map[string]map[string]string{
		"active":   {"closed": authority},
		"blocked":  {"active": authority, "resolved": conflict, "closed": authority},
		"resolved": {"active": conflict, "blocked": conflict, "closed": authority},
		"closed":   {"active": conflict, "blocked": conflict, "resolved": conflict, "closed": authority},
	}
	lead := map[string]map[string]string{
		"blocked":  {"resolved": conflict, "closed": authority},
		"resolved": {"active": conflict, "blocked": conflict},
		"closed":   {"active": conflict, "blocked": conflict, "resolved": conflict},
	}
	for from, way := range ways {
		for to := range ways {
			for token, table := range map[string]map[string]map[string]string{reviewer: member, coordinator: lead, operator: lead} {
				id := s.create()
				set := func(token, to string) *answer {
					return s.post("update_thread_status", token, fmt.Sprintf(`{"thread_id":"%s","status":"%s","reason":"r"}`, id, to))
				}
				for _, step := range way {
					if a := set(coordinator, step); a.status != 200 {
						t.Fatal(a.text)
					}
				}
				want := table[from][to]
				a := set(token, to)
				if a.code() != want || want == "" && a.body["status"] != to {
					t.Errorf("%s to %s: %s, want %q", from, to, a.text, want)
				}
				if want == conflict && !strings.Contains(a.text, fmt.Sprintf(`"details":{"from_status":"%s","to_status":"%s"}`, from, to)) {
					t.Error(a.text)
				}
			}
		}
	}
}

// TestClosedThread: a closed thread is read, acknowledged and summarized, and takes nothing new
// (threads §5.1).
func TestClosedThread(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	say := func(key string) string {
		return `{"thread_id":"` + id + `","schema_version":1,"kind":"chat","body":"x","idempotency_key":"` + key + `"}`
	}
	first := s.post("post_message", reviewer, say("a"))
	s.post("update_thread_status", coordinator, `{"thread_id":"`+id+`","status":"closed","reason":"done"}`)
	for on, call := range surfaces {
		for name, more := range map[string]string{"get_thread": ``, "read_messages": ``, "summarize_thread": ``, "ack_read": `,"last_read_seq":1`} {
			if _, code := call(s, name, reviewer, `{"thread_id":"`+id+`"`+more+`}`); code != "" {
				t.Errorf("%s over %s: %s", name, on, code)
			}
		}
		if text, code := call(s, "post_message", reviewer, say("a")); code != "" || !strings.Contains(text, first.body["message_id"].(string)) || !strings.Contains(text, `"thread_status":"closed"`) {
			t.Errorf("a repetition over %s: %s %s", on, text, code)
		}
		if _, code := call(s, "post_message", reviewer, say("b")); code != "CONFLICT" {
			t.Errorf("a message over %s: %s", on, code)
		}
		if _, code := call(s, "trigger_participant", coordinator, `{"thread_id":"`+id+`","target_agent_id":"reviewer_agent","reason":"human_override:now","trigger_prompt":"x"}`); code != "CONFLICT" {
			t.Errorf("a trigger over %s: %s", on, code)
		}
	}
}

// TestOneStore: what one surface has answered is on every other at once (threads §1).
func TestOneStore(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	seq := 0
	for on, call := range surfaces {
		if _, code := call(s, "post_message", reviewer, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"over `+on+`"}`); code != "" {
			t.Fatal(on, code)
		}
		for other, call := range surfaces {
			page, _ := call(s, "read_messages", executioner, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d}`, id, seq))
			if !strings.Contains(page, `"body":"over `+on+`"`) || !strings.Contains(page, fmt.Sprintf(`"next_seq":%d,"has_more":false`, seq+1)) {
				t.Errorf("%s after %s: %s", other, on, page)
			}
		}
		seq++
	}
}

// TestLogs: a line of the log has the request, what it was and how it ended, and nothing of what
// was sent (threads §6).
func TestLogs(t *testing.T) {
	t.Parallel()
	s := start(t, "TRUNKLINE_LOG_LEVEL=debug", "SUPERVISOR_MODE=off")
	id := s.create()
	const secret = "dont-log-me"
	s.post("post_message", reviewer, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"`+secret+`","metadata":{"a":"`+secret+`"}}`, "X-Request-Id", "a-post")
	s.post("post_message", reviewer, `{"thread_id":"`+secret+`","schema_version":"`+secret+`"}`, "X-Request-Id", "a-bad-post")
	s.post("trigger_participant", coordinator, `{"thread_id":"`+id+`","target_agent_id":"reviewer_agent","reason":"r","trigger_prompt":"`+secret+`"}`)
	s.post("get_thread", secret, `{}`)
	for _, call := range surfaces {
		call(s, "post_message", reviewer, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"`+secret+`"}`)
		call(s, "post_message", reviewer, `{"thread_id":"`+id+`","body":"`+secret+`"}`)
	}
	s.mcp(rpc("tools/list", ""), "X-Request-Id", "a-list")
	for _, line := range []string{`"request_id":"a-post","operation":"mcp.post_message","status":200,"duration_secs":0.`,
		`"request_id":"a-bad-post","operation":"mcp.post_message","status":400,"duration_secs":0.`,
		`"request_id":"a-list","operation":"mcp_endpoint","status":200,"duration_secs":0.`} {
		s.eventually("the line "+line, func() bool { return strings.Contains(s.log.String(), line) })
	}
	if text := s.log.String(); strings.Contains(text, secret) || strings.Contains(text, reviewer[:60]) {
		t.Error(text)
	}
}

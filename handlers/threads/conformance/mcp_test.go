package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"trunkline/handlers/threads/method"
)

// Texts of requests of MCP.
const (
	newEra  = "2026-07-28"
	version = `"io.modelcontextprotocol/protocolVersion":"` + newEra + `"`
	able    = `"io.modelcontextprotocol/clientCapabilities":{}`
)

// mcp sends a message to the endpoint of MCP. Fields replace what a client of the older revisions
// sends; one without a value is left out.
func (s *server) mcp(message string, fields ...string) *answer {
	s.t.Helper()
	httpMethod, host := http.MethodPost, ""
	head := http.Header{"Authorization": {"Bearer " + coordinator}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(fields); i += 2 {
		switch name, value := fields[i], fields[i+1]; {
		case name == "":
			httpMethod = value
		case name == "Host":
			host = value
		case value == "":
			head.Del(name)
		default:
			head.Set(name, value)
		}
	}
	req, err := http.NewRequest(httpMethod, s.http+"/mcp", strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header, req.Host = head, host
	return s.do(req)
}

// latest are the fields of a request of the newest revision.
func latest(rpc, tool string) []string {
	return []string{"Mcp-Protocol-Version", newEra, "Mcp-Method", rpc, "Mcp-Name", tool}
}

func rpc(name, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + name + `","params":{` + params + `}}`
}

func toolCall(name, args, more string) string {
	return rpc("tools/call", `"name":"`+name+`","arguments":`+args+more)
}

// TestMCP has the rows of the table of threads §2.2.
func TestMCP(t *testing.T) {
	t.Parallel()
	s := start(t, "PUBLIC_URL=https://x.example", "MCP_ALLOWED_ORIGINS=https://page.example",
		"TRUNKLINE_THREADS_ALLOWED_HOSTS=proxy.example")
	args := `{"thread_id":"` + s.create() + `"}`
	list, call := rpc("tools/list", ""), toolCall("get_thread", args, "")
	meta := func(members ...string) string {
		return toolCall("get_thread", args, `,"_meta":{`+strings.Join(members, ",")+`}`)
	}
	full, tool := meta(version, able), latest("tools/call", "get_thread")
	with := func(fields ...string) []string { return append(slices.Clone(tool), fields...) }
	hello := func(v string) string {
		return rpc("initialize", `"protocolVersion":"`+v+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}`)
	}
	const ok = `"structuredContent":{"thread_id":"th_`
	f := func(why, message string, fields []string, status int, parts ...string) *answer {
		t.Helper()
		a := s.mcp(message, fields...)
		for _, p := range parts {
			if !strings.Contains(a.text, p) {
				t.Errorf("%s: %s lacks %s", why, a.text, p)
			}
		}
		if a.status != status {
			t.Errorf("%s: %d %s, want %d", why, a.status, a.text, status)
		}
		return a
	}
	for _, token := range []string{"", "Bearer bad", "Basic x", "Bearer " + tokenOf(claims{"role": "worker"})} {
		a := f("token "+token, list, []string{"Authorization", token}, 401)
		challenge := `Bearer resource_metadata="https://x.example/.well-known/oauth-protected-resource/mcp"`
		if strings.HasPrefix(token, "Bearer") {
			challenge = strings.Replace(challenge, " ", ` error="invalid_token", `, 1)
		}
		if a.code() != "UNAUTHORIZED" || a.body["request_id"] != a.header.Get("X-Request-Id") || a.header.Get("Www-Authenticate") != challenge {
			t.Error(a.text, a.header)
		}
	}
	f("lower case", list, []string{"Authorization", "bearer " + reviewer}, 200)
	for _, m := range []string{"GET", "DELETE"} {
		if a := f(m, "", []string{"", m}, 405); a.header.Get("Allow") != "POST" {
			t.Error(m, a.header)
		}
	}
	f("text", list, []string{"Content-Type", "text/plain"}, 415)
	f("no type", list, []string{"Content-Type", ""}, 415)
	for _, accept := range []string{"", "*/*", "application/json", "application/*;q=0.1", "text/html, */*;q=0.5"} {
		f("Accept "+accept, list, []string{"Accept", accept}, 200, `"tools":[`)
	}
	for _, accept := range []string{"text/event-stream", "application/json;q=0, */*"} {
		f("Accept "+accept, list, []string{"Accept", accept}, 406, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`)
	}
	f("gzip", "\x1f\x8b\x08", []string{"Content-Encoding", "gzip"}, 415)
	for origin, status := range map[string]int{"https://evil.example": 403, "null": 403,
		"http://localhost.evil.example": 403, "https://page.example": 200, "http://localhost:1234": 200,
		"http://127.0.0.1": 200, "http://[::1]:1": 200,
		"https://x.example": 200, "http://x.example": 403, "http://LOCALHOST": 200, "http://localhost.:1": 200} {
		f(origin, list, []string{"Origin", origin}, status)
		f(origin, call, []string{"Origin", origin}, status)
	}
	for _, message := range []string{list, call} {
		for host, status := range map[string]int{"x.example": 200, "X.EXAMPLE.:443": 200, "page.example": 200,
			"proxy.example:8443": 200, "LOCALHOST": 200, "localhost.": 200, "[::1]:3000": 200, "evil.example": 403,
			"x.example.evil": 403} {
			f("host "+host, message, []string{"Host", host}, status)
		}
		f("host", message, []string{"Host", "evil.example"}, 403, "threads.allowed_hosts")
		f("origin", message, []string{"Origin", "https://evil.example"}, 403, "threads.mcp_origins")
	}
	for _, v := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		era := []string{"Mcp-Protocol-Version", v}
		f("hello "+v, hello(v), nil, 200, `"protocolVersion":"`+v+`"`, `"capabilities":{"prompts":{},"resources":{},"tools":{}}`, `"name":"threads"`)
		f("list "+v, list, era, 200, `"tools":[`)
		f("call "+v, call, era, 200, ok)
		for _, name := range []string{"nope", "resources/subscribe", "resources/unsubscribe",
			"logging/setLevel", "completion/complete"} {
			f(name+" "+v, rpc(name, ""), era, 200, `"code":-32601`)
		}
		for _, id := range []string{"1795956150000000123", "9223372036854775807", "-9007199254740993", `"\u00e9"`, "1e2"} {
			for _, message := range []string{list, call, rpc("nope", "")} {
				f("id "+id, strings.Replace(message, `"id":1`, `"id":`+id, 1), era, 200, `{"jsonrpc":"2.0","id":`+id+`,`)
			}
		}
		for _, id := range []string{"1.5", "null", "1e30"} {
			f("id "+id, strings.Replace(call, `"id":1`, `"id":`+id, 1), era, 400, `"code":-32600`)
		}
		f("no method "+v, `{"jsonrpc":"2.0","id":1}`, era, 400, `"code":-32600`)
		f("a name twice "+v, strings.Replace(call, `"id":1`, `"id":1,"method":"ping"`, 1), era, 400, `"code":-32600`)
		f("notification "+v, `{"jsonrpc":"2.0","method":"notifications/nope"}`, era, 202)
		f("no tool "+v, toolCall("constructor", `{}`, ""), era, 200, `"code":-32602`)
		if a := f("notification "+v, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, era, 202); a.text != "" {
			t.Error(a.text)
		}
		if v >= "2025-06-18" {
			f("batch "+v, "["+list+"]", era, 400)
		} else {
			f("batch "+v, "["+list+","+strings.Replace(call, `"id":1`, `"id":2`, 1)+"]", era, 200, `"tools":[`, ok)
		}
	}
	f("ids in a batch", `[`+strings.Replace(call, `"id":1`, `"id":1795956150000000123`, 1)+`,`+strings.Replace(list,
		`"id":1`, `"id":"1"`, 1)+`]`, nil, 200, `[{"jsonrpc":"2.0","id":1795956150000000123,"result"`,
		`{"jsonrpc":"2.0","id":"1","result"`)
	f("id, newest", strings.Replace(full, `"id":1`, `"id":9223372036854775807`, 1), tool, 200, `"id":9223372036854775807,`,
		ok)
	for _, path := range []string{"/mcp/"} {
		if a := s.request("POST", path, coordinator, list); a.status != 200 || !strings.Contains(a.text, `"tools":[`) {
			t.Error(path, a.status, a.text)
		}
	}
	f("hello of an unknown revision", hello("1999-01-01"), nil, 200, `"protocolVersion":"2025-11-25"`)
	f("list without a revision", list, nil, 200, `"tools":[`)
	f("call without a revision", call, nil, 200, ok)
	f("newest", full, tool, 200, ok, `"resultType":"complete"`)
	f("no version", meta(able), tool, 400, `"code":-32602`)
	f("no capabilities", meta(version), tool, 400, `"code":-32602`)
	f("no _meta", call, tool, 400, `"code":-32602`)
	f("no Mcp-Method", full, with("Mcp-Method", ""), 400, `"code":-32020`)
	f("no Mcp-Name", full, with("Mcp-Name", ""), 400, `"code":-32020`)
	f("other Mcp-Method", full, with("Mcp-Method", "tools/list"), 400, `"code":-32020`)
	f("other Mcp-Name", full, with("Mcp-Name", "ack_read"), 400, `"code":-32020`)
	f("newer", strings.Replace(full, newEra, "2027-01-01", 1), with("Mcp-Protocol-Version", "2027-01-01"), 400, `"code":-32022`, `"supported":["`+newEra, `"requested":"2027-01-01"`)
	f("no method", rpc("nope", `"_meta":{`+version+`,`+able+`}`), latest("nope", ""), 404, `"code":-32601`)
	f("batch", "["+full+"]", tool, 400)
	for _, text := range []string{"", "{", "null", list + list, `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`} {
		f("malformed "+text, text, nil, 400)
	}
	size := func(n int) string { return list + strings.Repeat(" ", n-len(list)) }
	f("at the limit", size(1<<20+16<<10), nil, 200)
	f("limit + 1", size(1<<20+16<<10+1), nil, 413)
	if a := s.request("GET", "/metrics", "", ""); !strings.Contains(a.text, `bridge_errors_total{code="UNAUTHORIZED"} 4`) || !strings.Contains(a.text, `{operation="mcp_endpoint",method="POST",status_code="401"} 4`) {
		t.Error(a.text)
	}
}

// TestTools has the list of tools: all of them for every role, with the schemas and hints of
// threads §3.2.
func TestTools(t *testing.T) {
	t.Parallel()
	s := start(t)
	type tool struct {
		Name, Title string
		InputSchema json.RawMessage
		// OutputSchema is that of the structured content.
		OutputSchema json.RawMessage
		Annotations  map[string]bool
	}
	var first string
	for _, token := range []string{coordinator, reviewer, auditor} {
		a := s.mcp(rpc("tools/list", `"_meta":{`+version+`,`+able+`}`), append(latest("tools/list", ""), "Authorization", "Bearer "+token)...)
		var list struct {
			Result struct {
				TTL   int    `json:"ttlMs"`
				Scope string `json:"cacheScope"`
				Tools []tool
			}
		}
		if err := json.Unmarshal([]byte(a.text), &list); err != nil || first != "" && a.text != first {
			t.Fatalf("%s (%v), want %s", a.text, err, first)
		}
		first = a.text
		r := &list.Result
		if r.TTL != 3_600_000 || r.Scope != "public" || len(r.Tools) != len(method.Rows) || !slices.IsSortedFunc(r.Tools, func(a, b tool) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s", a.text)
		}
		for i, got := range r.Tools {
			row := &method.Rows[i]
			want := map[string]bool{"readOnlyHint": row.ReadOnly, "idempotentHint": row.Idempotent, "destructiveHint": row.Destructive, "openWorldHint": row.OpenWorld}
			if got.Name != row.Name || got.Title == "" || !alike(string(row.InputSchema()), string(got.InputSchema)) ||
				!alike(string(row.OutputSchema()), string(got.OutputSchema)) || !maps.Equal(got.Annotations, want) {
				t.Errorf("%+v", got)
			}
		}
	}
	type schema struct {
		Properties map[string]struct{ Description string }
	}
	for i := range method.Rows {
		for _, text := range [][]byte{method.Rows[i].InputSchema(), method.Rows[i].OutputSchema()} {
			var v schema
			if err := json.Unmarshal(text, &v); err != nil || len(v.Properties) == 0 {
				t.Fatal(err, string(text))
			}
			for name, p := range v.Properties {
				if p.Description == "" {
					t.Errorf("%s of %s has no description", name, method.Rows[i].Name)
				}
			}
		}
	}
	for _, part := range []string{`"const"`, `"uniqueItems"`} {
		if strings.Contains(first, part) {
			t.Errorf("the list of tools has %s", part)
		}
	}
	if a := s.mcp(rpc("initialize",
		`"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}`)); !strings.Contains(a.text,
		`"instructions":"A thread is`) {
		t.Error(a.text)
	}
	if a := s.mcp(toolCall("create_thread", `{"workspace_id":null,"title":"x","type":"workflow","participants":["a"]}`,
		"")); !strings.Contains(a.text, `"structuredContent":{"thread_id":"th_`) {
		t.Error(a.text)
	}
	if a := s.post("create_thread", coordinator, `{"title":"x","type":"workflow","participants":["a"]}`); a.status != 200 {
		t.Error(a.text)
	}
	a := s.mcp(rpc("server/discover", `"_meta":{`+version+`,`+able+`}`), latest("server/discover", "")...)
	for _, part := range []string{`"ttlMs":3600000`, `"cacheScope":"public"`, `"capabilities":{"prompts":{},"resources":{"subscribe":true},"tools":{}}`, `"name":"threads"`, newEra} {
		if !strings.Contains(a.text, part) {
			t.Errorf("%s lacks %s", a.text, part)
		}
	}
}

// TestToolCalls has the example of threads §9 for MCP, and the forms of results and errors.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	s := start(t, "RATE_MCP_CALLS_PER_AGENT_PER_MINUTE=5")
	id := s.create()
	s.post("post_message", executioner, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"x"}`)
	call := func(token, name, args string) *answer {
		return s.mcp(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"`+name+`"`+args+`,"_meta":{`+version+`,`+able+`}}}`, append(latest("tools/call", name), "Authorization", "Bearer "+token)...)
	}
	a := call(reviewer, "ack_read", fmt.Sprintf(`,"arguments":{"thread_id":"%s","last_read_seq":1}`, id))
	want := like(`{"jsonrpc":"2.0","id":5,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"threads","version":"1"}},"content":[{"type":"text","text":"{\"ok\":true,\"updated_at\":\"<TS>\"}"}],"structuredContent":{"ok":true,"updated_at":"<TS>"},"resultType":"complete"}}`)
	if a.status != 200 || !want.MatchString(a.text) {
		t.Errorf("%d %s", a.status, a.text)
	}
	failed := func(token, name, args, code string) {
		t.Helper()
		a := call(token, name, args)
		var v struct {
			Result struct {
				IsError           bool
				StructuredContent json.RawMessage
				Content           []struct{ Type, Text string }
			}
		}
		if err := json.Unmarshal([]byte(a.text), &v); err != nil || a.status != 200 || !v.Result.IsError || v.Result.StructuredContent != nil || len(v.Result.Content) != 1 {
			t.Fatalf("%d %s (%v)", a.status, a.text, err)
		}
		var envelope answer
		if err := json.Unmarshal([]byte(v.Result.Content[0].Text), &envelope.body); err != nil || envelope.code() != code || envelope.body["occurred_at"] == nil || envelope.body["request_id"] != a.header.Get("X-Request-Id") {
			t.Errorf("%s (%v), want %s", a.text, err, code)
		}
	}
	failed(reviewer, "ack_read", ``, "VALIDATION_ERROR")
	failed(reviewer, "ack_read", `,"arguments":{"thread_id":"th_none","last_read_seq":1}`, "NOT_FOUND")
	failed(reviewer, "create_thread", `,"arguments":{"workspace_id":"wk_mobile_core","title":"x","type":"workflow","participants":["a"]}`, "FORBIDDEN")
	if a := call(reviewer, "get_thread", `,"arguments":{"thread_id":"a","thread_id":"b"}`); a.status != 400 ||
		!strings.Contains(a.text, `"code":-32600`) {
		t.Error(a.status, a.text)
	}
	failed(reviewer, "get_thread", `,"arguments":null`, "VALIDATION_ERROR")
	failed(reviewer, "get_thread", `,"arguments":{"thread_id":"`+id+`"}`, "RATE_LIMITED")
	if a := call(executioner, "get_thread", `,"arguments":{"thread_id":"`+id+`"}`); !strings.Contains(a.text, `"structuredContent"`) {
		t.Error(a.text)
	}
}

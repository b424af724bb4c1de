package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// TestTable sends what the table of threads §2.2 names.
func TestTable(t *testing.T) {
	s := start(
		t,
		Config{Surface: method.Surface{ResourceMetadata: "https://x/.well-known/oauth-protected-resource/mcp"},
			PublicURL:      "https://Threads.example:8443/base",
			AllowedOrigins: []string{"https://page.example"}, AllowedHosts: []string{"box", "other.example:80"}},
	)
	const ok = `{"thread_id":"th_1"}`
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	f := func(why, httpMethod string, lines head, body string, status int, parts ...string) reply {
		t.Helper()
		return s.want(t, why, httpMethod, lines, body, status, parts...)
	}
	rpc := func(name, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + name + `","params":{` + params + `}}`
	}

	r := f("no token", "POST", "-Authorization", list, 401)
	wantEnvelope(t, "no token", r.body, "UNAUTHORIZED")
	const challenge = `Bearer resource_metadata="https://x/.well-known/oauth-protected-resource/mcp"`
	if got := r.Header.Get("WWW-Authenticate"); got != challenge {
		t.Errorf("WWW-Authenticate is %s, want %s", got, challenge)
	}
	for why, auth := range map[string]string{
		"bad token": "Bearer bad", "two tokens": "Bearer good good", "other scheme": "Basic good", "empty": "Bearer", "long": "Bearer " + strings.Repeat("x", 8193),
	} {
		r := f(why, "POST", head("Authorization: "+auth), list, 401)
		wantEnvelope(t, why, r.body, "UNAUTHORIZED")
		if came := why != "other scheme"; strings.Contains(r.Header.Get("WWW-Authenticate"), `error="invalid_token"`) != came {
			t.Errorf("%s: %v", why, r.Header)
		}
	}
	f("no keys", "POST", "Authorization: Bearer nokeys", list, 503, `"code":"INTERNAL"`, `"retryable":true`, `"reason":"unknown_key"`)
	wantEnvelope(t, "elsewhere", f("elsewhere", "POST", "Authorization: Bearer elsewhere", list, 403).body, "OUT_OF_SCOPE_WORKSPACE")
	f("lower case scheme", "POST", "Authorization: bearer good", list, 200)

	for _, m := range []string{"GET", "DELETE", "PUT"} {
		if r := f(m, m, "", "", 405); r.Header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow is %q", m, r.Header.Get("Allow"))
		}
	}
	f("text", "POST", "Content-Type: text/plain", list, 415)
	f("no media type", "POST", "-Content-Type", list, 415)
	f("gzip", "POST", "Content-Encoding: gzip", "\x1f\x8b\x08", 415, `"code":-32600`)
	f("identity", "POST", "Content-Encoding: identity", list, 200)
	f("no Accept", "POST", "-Accept", list, 200)
	for accept, status := range map[string]int{"*/*": 200, "application/json": 200, "APPLICATION/JSON; charset=utf-8": 200,
		"application/*": 200, "text/html, */*;q=0.1": 200,
		"*/*;q=0, application/json;q=0.001": 200, "application/*;q=0, */*": 406, "application/json;q=0.0, */*": 406,
		"text/event-stream": 406, "text/html": 406, "*/*;q=0": 406} {
		f("Accept "+accept, "POST", head("Accept: "+accept), list, status)
	}
	f("Accept stream only", "POST", "Accept: text/event-stream", list, 406, `"code":-32600`, `"id":null`)

	for origin, status := range map[string]int{
		"https://evil.example": 403, "null": 403, "http://localhost.evil.example": 403, "http://127.0.0.1.evil.example": 403, "file://localhost": 403,
		"http://localhost:5173": 200, "http://127.0.0.1": 200, "https://[::1]:8443": 200, "http://LOCALHOST:1": 200,
		"http://localhost.":            200,
		"https://threads.example:8443": 200, "https://threads.example": 403, "http://threads.example:8443": 403,
		"https://PAGE.example": 200, "http://box": 403,
	} {
		f("origin "+origin, "POST", head("Origin: "+origin), list, status)
	}
	wantEnvelope(t, "origin", f("origin", "POST", "Origin: https://evil.example", list, 403).body, "FORBIDDEN")
	for host, status := range map[string]int{"evil.example": 403, "evil.localhost": 403, "threads.example.evil": 403,
		"LOCALHOST": 200, "localhost.": 200, "Localhost.:3000": 200, "127.0.0.2:1": 200, "[::1]:3000": 200,
		"threads.example": 200, "THREADS.example.:8443": 200, "page.example": 200, "box:3000": 200, "other.example": 200} {
		f("host "+host, "POST", head("Host: "+host), list, status)
		f("host "+host+", tool", "POST", head("Host: "+host), callText("get_thread", ok), status)
	}
	f("foreign host", "POST", "Host: evil.example", list, 403, "threads.allowed_hosts", `"code":"FORBIDDEN"`)

	for _, v := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		f("initialize "+v, "POST", "", rpc("initialize", `"protocolVersion":"`+v+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}`), 200,
			`"protocolVersion":"`+v+`"`, `"capabilities":{"prompts":{},"resources":{},"tools":{}}`, `"name":"threads"`)
		f("list "+v, "POST", head("MCP-Protocol-Version: "+v), list, 200, `"tools":[{`)
		f("call "+v, "POST", head("MCP-Protocol-Version: "+v), callText("get_thread", ok), 200, `"structuredContent":{"ok":true`)
	}
	f("initialize, unknown", "POST", "", rpc("initialize", `"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"x","version":"1"}`), 200, `"protocolVersion":"2025-11-25"`)
	f("list without a version", "POST", "", list, 200)
	f("call without a version", "POST", "", callText("get_thread", ok), 200)
	f("old and unknown version", "POST", "MCP-Protocol-Version: 2020-01-01", list, 400)

	call := func(meta string) string {
		return rpc("tools/call", `"name":"get_thread","arguments":`+ok+`,"_meta":{`+meta+`}`)
	}
	const version, capabilities = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	tool := era("tools/call", "get_thread")
	f("latest", "POST", tool, call(version+","+capabilities), 200, `"resultType":"complete"`)
	f("no version in _meta", "POST", tool, call(capabilities), 400, `"code":-32602`)
	f("no capabilities in _meta", "POST", tool, call(version), 400, `"code":-32602`)
	f("no _meta", "POST", tool, callText("get_thread", ok), 400, `"code":-32602`)
	f("no Mcp-Method", "POST", tool+"\n-Mcp-Method", call(version+","+capabilities), 400, `"code":-32020`)
	f("no Mcp-Name", "POST", tool+"\n-Mcp-Name", call(version+","+capabilities), 400, `"code":-32020`)
	f("other Mcp-Method", "POST", tool+"\nMcp-Method: tools/list", call(version+","+capabilities), 400, `"code":-32020`)
	f("other Mcp-Name", "POST", tool+"\nMcp-Name: ack_read", call(version+","+capabilities), 400, `"code":-32020`)
	f("newer version", "POST", "MCP-Protocol-Version: 2027-01-01\nMcp-Method: tools/call\nMcp-Name: get_thread",
		call(strings.ReplaceAll(version, "2026-07-28", "2027-01-01")+","+capabilities), 400, `"code":-32022`, `"supported":["2026-07-28",`, `"requested":"2027-01-01"`)

	f("unknown method", "POST", era("nope", ""), rpc("nope", meta), 404, `"code":-32601`, `"id":1`)
	f("unknown method, older", "POST", "MCP-Protocol-Version: 2025-06-18", rpc("nope", ""), 200, `"code":-32601`, `"id":1`)
	f("unknown method, no version", "POST", "", `{"jsonrpc":"2.0","id":"a","method":"nope"}`, 200, `"code":-32601`,
		`"id":"a"`)
	for _, name := range []string{"resources/subscribe", "logging/setLevel", "completion/complete", "subscriptions/listen"} {
		f(name, "POST", era(name, ""), rpc(name, meta), 404, `"code":-32601`)
		for _, v := range []head{"", "MCP-Protocol-Version: 2024-11-05", "MCP-Protocol-Version: 2025-11-25"} {
			f(name+", older", "POST", v, rpc(name, ""), 200, `"code":-32601`)
		}
	}
	for _, id := range []string{"-1", "1.0", "1e2", "9007199254740993", "1795956150000000123", "9223372036854775807",
		"12345678901234567890", strings.Repeat("7", 64), `""`, `"é"`, `"\u0041\"\\"`, `"\ud800"`,
		`"` + strings.Repeat("x", 300) + `"`} {
		of := func(body string) string { return strings.Replace(body, `"id":1,`, `"id":`+id+`,`, 1) }
		for _, v := range []string{"", "2024-11-05", "2025-11-25"} {
			h := head("")
			if v != "" {
				h = head("MCP-Protocol-Version: " + v)
			}
			f("unknown method, id "+id, "POST", h, of(rpc("subscriptions/listen", "")), 200, `"code":-32601`, `"id":`+id+`,`)
			f("list, id "+id, "POST", h, of(rpc("tools/list", "")), 200, `"tools":[`, `"id":`+id+`,`)
			f("unknown tool, id "+id, "POST", h, of(rpc("tools/call", `"name":"nope"`)), 200, `"code":-32602`, `"id":`+id+`,`)
			f("call, id "+id, "POST", h, of(rpc("tools/call", `"name":"get_thread","arguments":`+ok)), 200,
				`"structuredContent"`, `"id":`+id+`,`)
		}
		f("list, newest, id "+id, "POST", era("tools/list", ""), of(rpc("tools/list", meta)), 200, `"tools":[`,
			`"id":`+id+`,`)
		f("mismatch, id "+id, "POST", era("tools/list", "")+"\n-Mcp-Method", of(rpc("tools/list", meta)), 400,
			`"code":-32020`, `"id":`+id+`,`)
		f("batch, id "+id, "POST", "", "["+of(list)+`,{"jsonrpc":"2.0","id":3,"method":"ping"}]`, 200, `"tools":[`,
			`[{"jsonrpc":"2.0","id":`+id+`,`, `{"jsonrpc":"2.0","id":3,"result":{}}]`)
	}
	s.taken()
	for _, id := range []string{"1.5", "1e30", "null", "true", "[1]", "{}", strings.Repeat("7", 65)} {
		f("id "+id, "POST", "", strings.Replace(callText("ack_read", `{}`), `"id":5`, `"id":`+id, 1), 400, `"code":-32600`,
			`"id":null,`)
	}
	for _, text := range []string{`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ack_read"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"ack_read"}}`,
		`{"jsonrpc":"2.0","id":1,"x":"\ud800","method":"ping","m\u0065thod":"tools/call","params":{"name":"ack_read"}}`,
		`{"jsonrpc":"2.0","id":1,"y":1,"y":2,"method":"tools/call","params":{"name":"ack_read"}}`,
		rpc("tools/call", `"name":"get_thread","name":"ack_read"`),
		rpc("tools/call", `"name":"get_thread","n\u0061me":"ack_read","_meta":{"x":1e999}`),
		rpc("tools/call", `"name":"ack_read","arguments":{"thread_id":"a","thread_id":"b"}`),
		rpc("tools/call", `"name":"ack_read","arguments":{},"arguments":{"thread_id":"b"}`)} {
		f("message "+text, "POST", "", text, 400, `"code":-32600`)
		f("message in a batch "+text, "POST", "", "["+text+`,{"jsonrpc":"2.0","id":9,"method":"ping"}]`, 200, `"code":-32600`,
			`{"jsonrpc":"2.0","id":9,"result":{}}]`)
	}
	f("id twice", "POST", "", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}`, 400, `"code":-32600`, `"id":1,`)
	if calls, _ := s.taken(); len(calls) != 0 {
		t.Errorf("the dispatcher got %q", calls)
	}
	for _, params := range []string{`7`, `"x"`, `[1]`, `{"name":7}`, `{"name":null}`, `{"name":"get_thread","_meta":7}`,
		`{"name":"get_thread","_meta":[]}`, `{"name":"get_thread","inputResponses":7}`} {
		for _, v := range []head{"", "MCP-Protocol-Version: 2025-11-25", era("tools/call", "get_thread"),
			"MCP-Protocol-Version: 2027-01-01"} {
			if r := s.do(t, "POST", v,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`); strings.Contains(r.body, "Go ") ||
				strings.Contains(r.body, "json:") || strings.Contains(r.body, "mcp.") ||
				!strings.Contains(r.body, `"id":1,"error":{"code":-32`) {
				t.Errorf("%s: %d %s", params, r.StatusCode, r.body)
			}
		}
	}
	for _, params := range []string{`{"protocolVersion":7}`, `{"protocolVersion":"2025-06-18","clientInfo":"x"}`,
		`{"capabilities":[]}`, `null`} {
		if r := s.do(t, "POST", "",
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+params+`}`); strings.Contains(r.body, "Go ") ||
			strings.Contains(r.body, "json:") || strings.Contains(r.body, "mcp.") || !json.Valid([]byte(r.body)) {
			t.Errorf("%s: %d %s", params, r.StatusCode, r.body)
		}
	}
	f("byte order mark", "POST", "", "\xef\xbb\xbf"+list, 200, `"tools":[`)
	f("byte order mark, batch", "POST", "", "\xef\xbb\xbf["+list+"]", 200, `[{"jsonrpc"`)
	f("null params", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`, 200, `"tools":[`)
	f("null arguments", "POST", "", callText("get_thread", `null`), 200, `thread_id is required`)
	f("unknown tool", "POST", "", callText("constructor", `{}`), 200, `"code":-32602`)
	for _, name := range []string{"notifications/initialized", "notifications/roots/list_changed", "notifications/nope",
		"nope"} {
		for _, v := range []head{"", "MCP-Protocol-Version: 2025-11-25", era(name, "")} {
			if r := f("notification "+name, "POST", v, `{"jsonrpc":"2.0","method":"`+name+`"}`, 202); r.body != "" ||
				r.Header.Get("Content-Type") != "" {
				t.Errorf("a notification is answered with %q %v", r.body, r.Header)
			}
		}
	}
	f("notifications alone", "POST", "",
		`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"x"}]`, 202)
	f("a notification that is called", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, 200,
		`"code":-32601`)
	f("an empty batch", "POST", "", `[]`, 400, `"code":-32600`)
	f("a batch of nothing", "POST", "", `[1,null]`, 200, `"code":-32600`)
	for _, v := range []string{"2025-06-18", "2025-11-25", latest} {
		f("batch "+v, "POST", head("MCP-Protocol-Version: "+v), "["+list+"]", 400)
	}
	f("batch", "POST", "MCP-Protocol-Version: 2025-03-26", "["+list+","+callText("get_thread", ok)+"]", 200, `"id":5`, `"tools":[`)
	for _, text := range []string{"", "{", "null", "1", `"x"`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"`, list + "x", list + list, `{"jsonrpc":"1.0","id":1,"method":"ping"}`} {
		f("malformed "+text, "POST", "", text, 400)
	}
	f("too large", "POST", "", callText("get_thread", `{"thread_id":"`+strings.Repeat("x", maxBody)+`"}`), 413)
}

// TestLists checks server/discover and tools/list (threads §2.2).
func TestLists(t *testing.T) {
	s := start(t, Config{})
	for _, auth := range []head{"", "\nAuthorization: Bearer other"} {
		r := s.want(t, "tools/list", "POST", era("tools/list", "")+auth, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, 200,
			`"ttlMs":3600000`, `"cacheScope":"public"`)
		var list struct {
			Result struct {
				Tools []struct {
					Name, Description         string
					InputSchema, OutputSchema json.RawMessage
					Annotations               struct{ ReadOnlyHint, IdempotentHint, DestructiveHint, OpenWorldHint *bool }
				}
			}
		}
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || len(list.Result.Tools) != len(method.Rows) {
			t.Fatalf("%v: %s", err, r.body)
		}
		reads := []string{"get_thread", "list_schedules", "list_threads", "read_messages", "summarize_thread"}
		idempotent := append([]string{"ack_read", "heartbeat_session", "update_participants", "update_schedule", "update_thread_status"}, reads...)
		destructive := []string{"cancel_message", "delete_schedule", "update_participants", "update_thread_status"}
		for i, tool := range list.Result.Tools {
			row := &method.Rows[i]
			a := tool.Annotations
			if tool.Name != row.Name || tool.Description == "" || string(tool.InputSchema) != string(row.InputSchema()) || string(tool.OutputSchema) != string(row.OutputSchema()) {
				t.Errorf("tool %d is %+v", i, tool)
			}
			if a.ReadOnlyHint == nil || a.IdempotentHint == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil ||
				*a.ReadOnlyHint != slices.Contains(reads, tool.Name) || *a.IdempotentHint != slices.Contains(idempotent, tool.Name) ||
				*a.DestructiveHint != slices.Contains(destructive, tool.Name) || *a.OpenWorldHint != (tool.Name == "trigger_participant") {
				t.Errorf("the annotations of %s are wrong: %s", tool.Name, r.body)
			}
		}
	}
	s.want(t, "server/discover", "POST", era("server/discover", ""), `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`, 200,
		`"ttlMs":3600000`, `"cacheScope":"public"`, `"capabilities":{"prompts":{},"resources":{},"tools":{}}`, `"name":"threads"`, `"2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"`)
}

// TestToolCalls checks results and errors of tools (threads §2.2).
func TestToolCalls(t *testing.T) {
	s := start(t, Config{})
	got := s.want(t, "call", "POST", "X-Request-Id: mine", callText("get_thread", `{ "thread_id":"th_1", "x": 1e2 }`), 200).result(t).Result
	if got.IsError || got.Content[0].Text != strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(got.StructuredContent)) &&
		!sameJSON(got.Content[0].Text, string(got.StructuredContent)) {
		t.Errorf("text %s, structured content %s", got.Content[0].Text, got.StructuredContent)
	}
	if calls, refused := s.taken(); len(calls) != 1 || calls[0] != `lead get_thread falsefalse { "thread_id":"th_1", "x": 1e2 }` || len(refused) != 0 {
		t.Errorf("the dispatcher got %q %q", calls, refused)
	}

	bad := func(why, body, code, wantRefused string) {
		t.Helper()
		r := s.want(t, why, "POST", "", body, 200)
		res := r.result(t).Result
		if !res.IsError || res.StructuredContent != nil {
			t.Errorf("%s: %s", why, r.body)
		}
		wantEnvelope(t, why, res.Content[0].Text, code)
		if _, refused := s.taken(); strings.Join(refused, ",") != wantRefused {
			t.Errorf("%s: refusals %q, want %q", why, refused, wantRefused)
		}
	}
	for _, args := range []string{`{}`, `[]`, `"x"`, `1`, `{"thread_id":7}`, `{"thread_id":"a","__proto__":1}`,
		`{"thread_id":"\ud800"}`, `{"Thread_ID":"x"}`, `{"thread_id":"a","x":1e999}`, `{"thread_id":"a","x":` +
			strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`} {
		bad(args, callText("get_thread", args), "VALIDATION_ERROR", "")
	}
	bad("no arguments", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"get_thread"}}`, "VALIDATION_ERROR", "")
	bad("hint", callText("get_thread", `{"thread_id":"th_1","agent_id":"x"}`), "CLAIM_MISMATCH", "mcp.get_thread CLAIM_MISMATCH lead")
	bad("workspace", callText("get_thread", `{"thread_id":"th_1","workspace_id":"x"}`), "OUT_OF_SCOPE_WORKSPACE", "mcp.get_thread OUT_OF_SCOPE_WORKSPACE lead")
	got = s.want(t, "role", "POST", "Authorization: Bearer other",
		callText("create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["a"]}`), 200).result(t).Result
	wantEnvelope(t, "role", got.Content[0].Text, "FORBIDDEN")

	s.taken()
	s.script.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		return append(dst, `{"ok":true}`...), method.Outcome{Index: 7}
	}
	s.want(t, "waits", "POST", "", callText("ack_read", `{}`), 200, `"structuredContent":{"ok":true}`)
	s.script.await = func(uint64) error { return errors.New("full") }
	bad("not stored", callText("ack_read", `{}`), "INTERNAL", "")
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && x.(map[string]any)["title"] == y.(map[string]any)["title"]
}

// TestRefusalsOfTheEndpoint checks what the audit gets of requests that reach no tool.
func TestRefusalsOfTheEndpoint(t *testing.T) {
	s := start(t, Config{AllowedOrigins: []string{"https://app.example"}})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	f := func(lines head, status int, want string) {
		t.Helper()
		s.want(t, string(lines), "POST", lines, list, status)
		if _, refused := s.taken(); strings.Join(refused, ",") != want {
			t.Errorf("%s: refusals %q, want %q", lines, refused, want)
		}
	}
	f("-Authorization", 401, "mcp_endpoint UNAUTHORIZED -")
	f("Authorization: Bearer elsewhere", 403, "mcp_endpoint OUT_OF_SCOPE_WORKSPACE -")
	f("Origin: https://evil.example", 403, "mcp_endpoint FORBIDDEN -")
	f("Host: evil.example", 403, "mcp_endpoint FORBIDDEN -")
	f("Origin: https://app.example", 200, "")
}

// TestFailedAuthentications has the limit for an address, and one more. A token that cannot be
// verified now is no failure of the peer.
func TestFailedAuthentications(t *testing.T) {
	s := start(t, Config{Surface: method.Surface{Peers: token.NewPeers(2)}})
	f := func(name string, status int, refused ...string) reply {
		t.Helper()
		got := s.want(t, name, "POST", head("Authorization: Bearer "+name), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, status)
		if _, r := s.taken(); !slices.Equal(r, refused) {
			t.Errorf("%s: refusals %q, want %q", name, r, refused)
		}
		return got
	}
	for range 3 {
		if got := f("nokeys", 503); got.Header.Get("Retry-After") != "1" || got.Header.Get("Www-Authenticate") != "" {
			t.Error(got.Header)
		}
	}
	for range 2 {
		f("bad", 401, "mcp_endpoint UNAUTHORIZED -")
	}
	if got := f("bad", 429); got.Header.Get("Retry-After") != "10" || got.Header.Get("Www-Authenticate") != "" {
		t.Error(got.Header)
	}
	f("good", 200)
}

// TestPages: a page of an allowed origin may ask and see the answers, without a token for the
// question; one of another origin may not.
func TestPages(t *testing.T) {
	s := start(t, Config{AllowedOrigins: []string{"https://app.example"}})
	ask := head("Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: authorization\n-Authorization")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for origin, allowed := range map[string]bool{"https://app.example": true, "http://localhost:5173": true, "https://evil.example": false, "null": false} {
		status, question := 403, 403
		if allowed {
			status, question = 200, 204
		}
		for _, c := range []struct {
			method string
			lines  head
			status int
		}{{"OPTIONS", ask + "\n", question}, {"POST", "", status}} {
			res := s.want(t, origin, c.method, c.lines+head("Origin: "+origin), list, c.status)
			if got := res.Header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || !allowed && got != "" {
				t.Errorf("%s: %s is allowed %q", c.method, origin, got)
			}
			if got := res.Header.Get("Access-Control-Allow-Headers"); c.method == "OPTIONS" && allowed != strings.Contains(got, "Authorization") {
				t.Errorf("%s may send %q", origin, got)
			}
		}
	}
}

// TestCallPanics checks that a panic is an answer.
func TestCallPanics(t *testing.T) {
	s := start(t, Config{})
	s.script.answer = func([]byte, *method.Caller, *method.Row, []byte) ([]byte, method.Outcome) { panic("no") }
	res := s.want(t, "panic", "POST", "", callText("ack_read", `{}`), 200).result(t).Result
	wantEnvelope(t, "panic", res.Content[0].Text, "INTERNAL")
}

// TestDraining checks that a stopping server runs no method.
func TestDraining(t *testing.T) {
	s := start(t, Config{Draining: func() bool { return true }})
	res := s.want(t, "draining", "POST", "", callText("ack_read", `{}`), 200, `retryable\":true`).result(t).Result
	wantEnvelope(t, "draining", res.Content[0].Text, "INTERNAL")
	if calls, _ := s.taken(); len(calls) != 0 {
		t.Errorf("the dispatcher got %q", calls)
	}
}

// TestMetadata checks the description of the resource (threads §4.10).
func TestMetadata(t *testing.T) {
	const want = `{"resource":"https://x.example/mcp","authorization_servers":["https://issuer.example"],"bearer_methods_supported":["header"],"resource_name":"threads"}`
	h := Metadata("https://x.example/", []string{"https://issuer.example"})
	w := serve(h, request("GET", "/", "", ""))
	if w.body != want || w.StatusCode != http.StatusOK || w.Header.Get("Access-Control-Allow-Origin") != "*" || w.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", w.StatusCode, w.Header, w.body)
	}
	if w := serve(h, request("POST", "/", "", "")); w.StatusCode != http.StatusMethodNotAllowed || w.Header.Get("Allow") == "" {
		t.Errorf("POST: %d %v", w.StatusCode, w.Header)
	}
	if w := serve(h, request("OPTIONS", "/", "", "")); w.StatusCode != http.StatusNoContent || w.Header.Get("Access-Control-Allow-Methods") != "GET, HEAD" {
		t.Errorf("OPTIONS: %d %v", w.StatusCode, w.Header)
	}
	if w := serve(Metadata("", []string{"x"}), request("GET", "/", "", "")); w.StatusCode != http.StatusNotFound || !strings.Contains(w.body, "threads.public_url") {
		t.Errorf("without a URL: %d %s", w.StatusCode, w.body)
	}
	if Metadata("https://x", nil) != nil || MetadataURL("", []string{"x"}) != "" {
		t.Error("a resource without issuers is described, or one without a URL is named")
	}
	if got := MetadataURL("https://x.example/", []string{"x"}); got != "https://x.example/.well-known/oauth-protected-resource/mcp" {
		t.Error(got)
	}
}

package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/rest"
)

// tokens fills texts: $LEAD0 is the token of a coordinator of the first workspace, $AGENT2 that of
// a participant of the third one, $FORGED1 one for the second that nothing has signed.
func tokens(names []string) *strings.Replacer {
	var list []string
	for i, name := range names {
		n, lead := strconv.Itoa(i), bearerOf("lead", name, "coordinator")
		list = append(list, "$LEAD"+n, lead, "$AGENT"+n, bearerOf("agent", name, "participant"), "$AUDITOR"+n, bearerOf("auditor", name, "auditor"),
			"$FORGED"+n, lead[:strings.LastIndexByte(lead, '.')+1]+"AAAA", "$WS"+n, name)
	}
	return strings.NewReplacer(list...)
}

// three are the workspaces of tests, one in each of three partitions.
var three = workspaces(3)

// talk has a conversation over one connection and returns all that the client sees. Each text is
// sent, and an answer is read after it; with "@2 " in front of it, that many.
func talk(t testing.TB, addr string, conversation []string) string {
	t.Helper()
	p := connect(t, addr)
	defer p.Close()
	var seen strings.Builder
	closes := false
	for _, text := range conversation {
		answers := 1
		if rest, ok := strings.CutPrefix(text, "@"); ok {
			number, after, _ := strings.Cut(rest, " ")
			answers, _ = strconv.Atoi(number)
			text = after
		}
		p.write(text)
		httpMethod, _, _ := strings.Cut(text, " ")
		for range answers {
			var a string
			a, closes = p.answer(httpMethod)
			seen.WriteString(a + "\n")
		}
	}
	if !closes {
		_ = p.Conn.(interface{ CloseWrite() error }).CloseWrite()
	}
	for more := true; more; { // answers that were not counted
		if _, err := p.in.Peek(1); err != nil {
			break
		}
		var a string
		a, closes = p.answer("POST")
		more = !closes
		seen.WriteString("more " + a + "\n")
	}
	seen.WriteString("rest " + p.rest())
	return seen.String()
}

// post is a request with a body.
func post(path, bearer, fields, body string) string {
	return "POST " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer " + bearer + "\nContent-Type: application/json\n" + fields +
		"Content-Length: " + strconv.Itoa(len(body)) + "\n\n" + body
}

// chunked is a request whose body comes in two chunks.
func chunked(path, bearer, fields, body string) string {
	half := len(body) / 2
	return "POST " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer " + bearer + "\nContent-Type: application/json\n" + fields + "Transfer-Encoding: chunked\n\n" +
		strconv.FormatInt(int64(half), 16) + ";x=y\n" + body[:half] + "\n" + strconv.FormatInt(int64(len(body)-half), 16) + "\n" + body[half:] + "\n0\nT: v\n\n"
}

const beat = `{"session_id":"sess_lead","runtime":"r","resumable":true,"status":"idle"}`

// lists are requests for lists, of servers that have none yet.
func lists() (list [][]string) {
	for _, path := range []string{"/v1/audit", "/v1/audit?limit=1", "/v1/audit?limit=x", "/v1/audit?a=%zz", "/v1/trigger_jobs", "/v1/trigger_jobs?x=1;y", "/v1/heartbeat_session"} {
		for _, who := range []string{"$LEAD0", "$AGENT1", "$AUDITOR2", "$FORGED2"} {
			list = append(list, []string{"GET " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer " + who + "\n\n", "HEAD " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer " + who + "\n\n"})
		}
	}
	return list
}

// heads are requests about what is before the body.
func heads() (list [][]string) {
	add := func(c ...string) { list = append(list, c) }
	get := func(path string) string { return "GET " + path + " HTTP/1.1\nHost: x\n\n" }
	for _, path := range []string{"/health", "/ready", "/nope", "/", "/mcp", "/v1/audit", "/v1/nope", "/v1/", "/v1", "/.well-known/oauth-protected-resource",
		"/.well-known/oauth-protected-resource/mcp", "/health?x=%zz&/y", "//health", "/health/", "/%68ealth", "http://elsewhere/health", "/v1/é"} {
		add(get(path), get(path), "HEAD"+get(path)[3:], post(path, "$LEAD2", "", "{}"))
	}
	for _, m := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post", "CONNECT", "HEAD"} {
		add(m+" /v1/get_thread HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD1\n\n", m+" /v1/mcp/get_thread HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD2\n\n", get("/health"))
	}
	add("OPTIONS * HTTP/1.1\nHost: x\n\n", "CONNECT x:1 HTTP/1.1\nHost: x:1\n\n", get("/health"))
	for _, path := range []string{"/v1/heartbeat_session", "/v1/mcp/heartbeat_session", "//v1/heartbeat_session", "/v1/heartbeat%5fsession", "/v1/heartbeat_session/",
		"/v1/heartbeat_session?x=%zz&/y", "http://x/v1/heartbeat_session", "http://x%ff/v1/heartbeat_session", "http://[fe80::1%25a%20b]/v1/heartbeat_session", "http:///v1/heartbeat_session", "http://other//v1/heartbeat_session?z", "/V1/heartbeat_session", "/v1/mcp/nope"} {
		for _, fields := range []string{"", "X-Request-Id: mine\n", "X-Request-Id: a b\n", "X-Request-Id: a\nX-Request-Id: b\n", "X-Error-Dialect: legacy\n", "X-Error-Dialect: spec\n",
			"Connection: keep-alive, X-Y\nX-Y: z\nKeep-Alive: timeout=5\nTe: trailers\n", "Upgrade: websocket\nConnection: Upgrade\n", "X-Forwarded-For: 1.2.3.4\nForwarded: for=x\nVia: 1.0 y\n"} {
			add(post(path, "$LEAD2", fields, beat), post(path, "$LEAD0", fields, "{}"))
		}
	}
	add(post("/v1/heartbeat_session", "$LEAD1", "Connection: close\n", beat))
	add(post("/v1/heartbeat_session", "$FORGED1", "Connection: close\n", beat))
	for _, auth := range []string{"", "Authorization: Bearer\n", "Authorization: Basic x\n", "Authorization: bearer $LEAD1\n", "Authorization: BEARER   $LEAD1\n",
		"Authorization: Bearer $LEAD1, x\n", "Authorization: Bearer $LEAD1\nAuthorization: Bearer $LEAD1\n", "Authorization: Bearer $FORGED1\n", "Authorization: Bearer a.b.c\n",
		"Authorization: Bearer a\n", "Authorization: Bearer ..\n", "Authorization: Bearer " + strings.Repeat("a", 8193) + "\n"} {
		for _, path := range []string{"/v1/get_thread", "/v1/mcp/get_thread", "/mcp", "/v1/nope"} {
			r := "POST " + path + " HTTP/1.1\nHost: x\nContent-Type: application/json\n" + auth + "Content-Length: 2\n\n{}"
			add(r, r, post("/v1/heartbeat_session", "$LEAD2", "", beat))
		}
	}
	for _, kind := range []string{"", "Content-Type: text/plain\n", "Content-Type: application/json; charset=latin1\n", "Content-Type: application/json\nContent-Encoding: gzip\n",
		"Content-Type: application/json; charset=\"utf-8\"\n"} {
		add("POST /v1/get_thread HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD1\n"+kind+"Content-Length: 2\n\n{}", get("/health"))
	}
	for _, n := range []int{32 << 10, 32<<10 + 1, 35 << 10, 40 << 10, 200 << 10} {
		add("GET /health HTTP/1.1\nHost: x\nX: " + strings.Repeat("a", n-len("Host: x\r\nX: ")-2) + "\n\n")
	}
	return list
}

// bodies are requests about what is in the body, and how it comes.
func bodies() (list [][]string) {
	add := func(c ...string) { list = append(list, c) }
	const limit = 1 << 20
	big, full := strings.Repeat("x", 2<<20), `{"x":"`+strings.Repeat("x", limit-8)+`"}`
	after := post("/v1/heartbeat_session", "$LEAD2", "", beat)
	for _, path := range []string{"/v1/heartbeat_session", "/v1/mcp/heartbeat_session"} {
		for _, body := range []string{"", "{", "[]", "\xef\xbb\xbf" + beat, beat + "x", beat} {
			add(post(path, "$LEAD0", "", body), post(path, "$LEAD1", "", body), post(path, "$LEAD2", "", body))
		}
		add(chunked(path, "$LEAD2", "", beat), chunked(path, "$LEAD1", "", beat), chunked(path, "$LEAD1", "", "{}"), post(path, "$LEAD2", "", beat))
		add(post(path, "$LEAD2", "", full), chunked(path, "$LEAD1", "", full), after)
		add(post(path, "$LEAD2", "", full+" "))
		add(chunked(path, "$LEAD2", "", full+" "))
		add(post(path, "$LEAD1", "", big))
		add(post(path, "$FORGED1", "", big))
		add(chunked(path, "$FORGED1", "", big))
		add("POST " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD2\nContent-Type: application/json\nContent-Length: 2097152\n\n")
		// The body comes behind the answer.
		head := "POST " + path + " HTTP/1.1\nHost: x\nContent-Length: 4\n\n"
		add(head, "@0 abcd", after, head, "abcd"+after)
		add("POST /nope HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD2\nTransfer-Encoding: chunked\n\n", "@0 4\nabcd\n0\n\n", after)
		// A client that waits until it is asked for the body.
		expect := "POST " + path + " HTTP/1.1\nHost: x\nContent-Type: application/json\nExpect: 100-continue\nContent-Length: " + strconv.Itoa(len(beat)) + "\nAuthorization: Bearer "
		add(expect + "$FORGED2\n\n")
		add(strings.Replace(expect, "application/json", "text/plain", 1) + "$LEAD2\n\n")
		add(expect+"$LEAD2\n\n", beat, expect+"$LEAD1\n\n", beat, after)
		add("@2 " + expect + "$LEAD2\n\n" + beat)
		add(strings.Replace(expect, "Content-Length: "+strconv.Itoa(len(beat)), "Transfer-Encoding: chunked", 1)+"$LEAD1\n\n", fmt.Sprintf("%x\n%s\n0\n\n", len(beat), beat), after)
		add(strings.Replace(expect, "100-continue", "", 1) + "$LEAD2\n\n" + beat)
		// HTTP/1.0
		old := strings.Replace(post(path, "$LEAD1", "", beat), "HTTP/1.1", "HTTP/1.0", 1)
		add(old)
		add(strings.Replace(old, "Host: x\n", "", 1))
		add(strings.Replace(old, "Host: x\n", "Host: x\nConnection: keep-alive\n", 1), after)
		add(strings.Replace(old, "Host: x\n", "Host: x\nExpect: 100-continue\n", 1))
		add(strings.Replace(old, "$LEAD1", "$FORGED1", 1))
		// A body that does not come to its end.
		add("POST " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD2\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nzz\n" + after)
		add("POST /nope HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\nzz\n" + after)
		// Several requests at once, for several owners.
		add("@5 " + post(path, "$LEAD0", "X-Request-Id: 1\n", beat) + "GET /nope HTTP/1.1\nHost: x\nX-Request-Id: 2\n\n" + post(path, "$LEAD2", "X-Request-Id: 3\n", beat) +
			post(path, "$FORGED1", "X-Request-Id: 4\n", beat) + chunked(path, "$LEAD1", "X-Request-Id: 5\n", beat))
	}
	// Bodies whose end two servers may see at different places.
	for _, fields := range []string{"Content-Length: 4\nTransfer-Encoding: chunked\n", "Transfer-Encoding: chunked\nContent-Length: 50\n", "Content-Length: 4\nContent-Length: 4\n",
		"Content-Length: +4\n", "Content-Length: 4, 4\n", "Content-Length: 0x4\n", "Content-Length:\n", "Transfer-Encoding: chunked, chunked\n", "Transfer-Encoding: identity\nContent-Length: 4\n",
		"Transfer-Encoding: xchunked\nContent-Length: 4\n", "Transfer-Encoding : chunked\n", "Transfer_Encoding: chunked\nContent-Length: 4\n", "X: a\n Content-Length: 4\n",
		"X: a\rContent-Length: 4\n", "TRANSFER-ENCODING: Chunked\nConnection: transfer-encoding\n", "Connection: content-length, authorization\nContent-Length: 4\n", "Content-Length: 4\nTrailer: Authorization\n"} {
		head := "POST /v1/get_thread HTTP/1.1\nHost: x\nAuthorization: Bearer $LEAD2\nContent-Type: application/json\n" + fields + "\n"
		add(head + "2\n{}\n0\n\n" + after)
		add(head + "{}\n" + after)
		add(strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + "2\n{}\n0\n\n" + after)
	}
	for _, text := range []string{"garbage\n\n", "POST /v1/get_thread HTTP/1.1\n\n", "POST /v1/get_thread HTTP/1.1\nHost: x\nContent-Length: -1\n\n",
		"POST /v1/get_thread HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2\n\n", "POST /%zz HTTP/1.1\nHost: x\n\n", "POST /v1/get_thread HTTP/2.0\nHost: x\n\n",
		"POST /v1/get_thread HTTP/1.1\nHost: x\nTransfer-Encoding: gzip\n\n", "POST /v1/get_thread HTTP/1.1\nHost: x\nExpect: miracles\nContent-Length: 2\n\n{}", "PRI * HTTP/2.0\n\nSM\n\n",
		"POST /v1/get_thread HTTP/1.1\nHost: x\nBad Name: 1\n\n", "GET /health HTTP/1.1\nHost: a b\n\n", "GET  /health HTTP/1.1\nHost: x\n\n"} {
		add(text)
	}
	return list
}

// tools are requests of MCP clients.
func tools() (list [][]string) {
	add := func(c ...string) { list = append(list, c) }
	const accept = "Accept: application/json, text/event-stream\n"
	rpc := func(name, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + name + `","params":{` + params + `}}`
	}
	call := rpc("tools/call", `"name":"heartbeat_session","arguments":`+beat)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, who := range []string{"$LEAD0", "$LEAD2", "$FORGED1"} {
		for _, version := range []string{"", "MCP-Protocol-Version: 2025-11-25\n", "MCP-Protocol-Version: 2025-03-26\n", "MCP-Protocol-Version: 1999-01-01\n"} {
			for _, body := range []string{rpc("initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}`), rpc("tools/list", ""), call,
				rpc("tools/call", `"name":"nope","arguments":{}`), rpc("nope", ""), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "[" + call + "]", "{", ""} {
				add(post("/mcp", who, accept+version, body), post("/mcp", who, accept+version, body))
			}
		}
		newer := accept + "MCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: heartbeat_session\n"
		add(post("/mcp", who, newer, rpc("tools/call", `"name":"heartbeat_session","arguments":`+beat+","+meta)), post("/mcp", who, newer, call))
		add(post("/mcp", who, accept+"MCP-Protocol-Version: 2026-07-28\nMcp-Method: server/discover\n", rpc("server/discover", meta)))
		add(post("/mcp", who, "", call))
		add(chunked("/mcp", who, accept, call), chunked("/mcp", who, accept, rpc("tools/list", "")))
		add(post("/mcp", who, accept+"Origin: https://evil.example\n", call))
		add(post("/mcp", who, accept+"Origin: http://localhost:5173\n", call))
		for _, host := range []string{"evil.example", "localhost", "127.0.0.1:3000", "[::1]:1", "localhost.evil.example", ""} {
			add(strings.Replace(post("/mcp", who, accept, call), "Host: x", "Host: "+host, 1), strings.Replace(post("/mcp", who, accept, rpc("tools/list", "")), "Host: x", "Host: "+host, 1))
		}
		local := func(text string) string { return strings.Replace(text, "Host: x", "Host: localhost", 1) }
		for _, m := range []string{"GET", "DELETE", "PUT"} {
			add(m + " /mcp HTTP/1.1\nHost: localhost\nAuthorization: Bearer " + who + "\n" + accept + "\n")
		}
		add(local(post("/mcp", who, accept, call)), local(post("/mcp", who, accept, rpc("tools/list", ""))), local(chunked("/mcp", who, accept, call)))
		add(local(post("/mcp", who, accept, rpc("tools/call", `"name":"heartbeat_session","arguments":{"x":"`+strings.Repeat("x", 1<<20+17<<10)+`"}`))))
		add(local(post("/mcp", who, accept, rpc("tools/call", `"name":"heartbeat_session","arguments":{"x":"`+strings.Repeat("x", 1<<20)+`"}`))))
	}
	add("OPTIONS /mcp HTTP/1.1\nHost: localhost\nOrigin: http://localhost:1\nAccess-Control-Request-Method: POST\n\n", "GET /health HTTP/1.1\nHost: x\n\n")
	return list
}

// TestTwins has the same conversations with one server, and through routers to one and to three
// partitions, of other nodes and of this one. Clients see the same.
func TestTwins(t *testing.T) {
	fill := tokens(three)
	for name, as := range map[string]setup{"one": {partitions: 1}, "three": {partitions: 3}, "inside": {partitions: 3, inside: true}} {
		one, c := direct(t, rest.Limits{}), setUp(t, as)
		for i, list := range [][][]string{lists(), heads(), bodies(), tools()} {
			t.Run(fmt.Sprint(name, "/", i), func(t *testing.T) {
				for _, conversation := range list {
					for i := range conversation {
						conversation[i] = fill.Replace(conversation[i])
					}
					want := plain(talk(t, one.web, conversation))
					if got := plain(talk(t, c.at.web, conversation)); got != want {
						t.Errorf("%.300q\nserver %.3000s\nrouter %.3000s", conversation, want, got)
					}
				}
			})
		}
	}
}

// TestTwinTranscripts replays the requests of the transcripts of all methods over HTTP and lines.
func TestTwinTranscripts(t *testing.T) {
	one, c := direct(t, rest.Limits{}), newCluster(t, 3, rest.Limits{}, nil)
	for i := range method.Rows {
		name := method.Rows[i].Name
		text, err := os.ReadFile(filepath.Join("..", "conformance", "testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range []string{"/v1/", "/v1/mcp/", "lines"} {
			want, got := replay(t, one, name, string(text), on), replay(t, c.at, name, string(text), on)
			if want != got {
				t.Errorf("%s on %s\nserver %s\nrouter %s", name, on, want, got)
			}
		}
	}
}

// roles are those of the callers of transcripts.
var roles = map[string]string{"coordinator": "coordinator", "operator": "operator", "auditor": "auditor", "foreigner": "coordinator"}

// replay sends the requests of a transcript to one side, and returns the answers.
func replay(t testing.TB, at sides, name, text, on string) string {
	t.Helper()
	bearer := func(who string) string {
		role, workspace := roles[who], "wk_mobile_core"
		if role == "" {
			role = "participant"
		}
		if who == "foreigner" {
			workspace = beside(workspace) // in another partition the thread is not known
		}
		return bearerOf(who+"_agent", workspace, role)
	}
	created := talk(t, at.web, []string{post("/v1/create_thread", bearer("coordinator"), "",
		`{"workspace_id":"wk_mobile_core","title":"Mapper review","type":"workflow","participants":["executioner_agent","reviewer_agent"]}`)})
	id := madeIDs.FindString(created)
	if id == "" {
		t.Fatal(created)
	}
	fill, n := strings.NewReplacer("$TH", id, "$KEY", on), 0
	var seen strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if n++; n%2 == 0 {
			continue // an answer
		}
		who, body, _ := strings.Cut(fill.Replace(line), " ")
		called := name
		if !strings.HasPrefix(body, "{") {
			called, body, _ = strings.Cut(body, " ")
		}
		if on == "lines" {
			seen.WriteString(ask(t, at.lines, authLine(bearer(who))+`{"id":1,"method":"`+called+`","params":`+body+"}\n"))
		} else {
			seen.WriteString(talk(t, at.web, []string{post(on+called, bearer(who), "", body)}))
		}
	}
	return plain(seen.String())
}

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// raw sends a request as it is, but for the ends of the lines of its head. open reports whether the
// connection takes another request behind it.
func (s *server) raw(head, body string) (a *answer, open bool) {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	go func() { _, _ = io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+body) }()
	in := bufio.NewReader(c)
	read := func() (*answer, error) {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		a := &answer{status: res.StatusCode, header: res.Header, text: string(text)}
		_ = json.Unmarshal(text, &a.body)
		return a, err
	}
	if a, err = read(); err != nil {
		s.t.Fatalf("%.200s: %v", head, err)
	}
	_, _ = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") // behind the body
	_ = c.(*net.TCPConn).CloseWrite()
	next, err := read()
	return a, err == nil && next.status == 200 && next.body["service"] == "bridge-api"
}

// TestHTTP has the rows of threads §2.1 and §8 about HTTP itself: what is answered, and whether the
// connection goes on.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, "PUBLIC_URL=https://x.example")
	doc := `{"thread_id":"` + s.create() + `"}`
	fill := func(n int) string { return doc[:len(doc)-1] + `,"x":"` + strings.Repeat("x", n-len(doc)-7) + `"}` }
	const host, media = "Host: 127.0.0.1\n", "Content-Type: application/json\n"
	auth := "Authorization: Bearer " + reviewer + "\n"
	post := "POST /v1/get_thread HTTP/1.1\n" + host
	chunked := "Transfer-Encoding: chunked\n\n"
	long := func(body string) string { return fmt.Sprintf("Content-Length: %d\n\n", len(body)) }
	of := func(path string) string {
		return "POST " + path + " HTTP/1.1\n" + host + auth + media + long(doc)
	}
	typed := func(media string) string { return post + auth + media + long(doc) }
	by := func(auth string) string { return post + auth + media + long(doc) }
	for why, c := range map[string]struct {
		head, body string
		status     int
		code       string
		open       bool
	}{
		"as it should be":          {of("/v1/get_thread"), doc, 200, "", true},
		"with a query":             {of("/v1/get_thread?a=b"), doc, 200, "", true},
		"in chunks":                {post + auth + media + chunked, "1\r\n{\r\n" + fmt.Sprintf("%x;ext=1\r\n%s\r\n0\r\nA: b\r\n\r\n", len(doc)-1, doc[1:]), 200, "", true},
		"byte order mark":          {post + auth + media + long("123"+doc), "\xef\xbb\xbf" + doc, 200, "", true},
		"space behind":             {post + auth + media + long(doc+" \r\n\t"), doc + " \r\n\t", 200, "", true},
		"text behind":              {post + auth + media + long(doc+"x"), doc + "x", 400, "VALIDATION_ERROR", true},
		"empty body":               {post + auth + media + long(""), "", 400, "VALIDATION_ERROR", true},
		"no token":                 {by(""), doc, 401, "UNAUTHORIZED", true},
		"Basic":                    {by("Authorization: Basic x\n"), doc, 401, "UNAUTHORIZED", true},
		"Bearer alone":             {by("Authorization: Bearer\n"), doc, 401, "UNAUTHORIZED", true},
		"two tokens":               {by("Authorization: Bearer a b\n"), doc, 401, "UNAUTHORIZED", true},
		"two fields":               {by(auth + auth), doc, 401, "UNAUTHORIZED", true},
		"token of 8193 bytes":      {by("Authorization: Bearer " + strings.Repeat("x", 8193) + "\n"), doc, 401, "UNAUTHORIZED", true},
		"lower case":               {by("authorization: bearer " + reviewer + "\n"), doc, 200, "", true},
		"wrong method":             {"GET /v1/get_thread HTTP/1.1\n" + host + auth + "\n", "", 405, "VALIDATION_ERROR", true},
		"wrong method, no token":   {"GET /v1/get_thread HTTP/1.1\n" + host + "\n", "", 401, "UNAUTHORIZED", true},
		"no method":                {of("/v1/mcp/nope"), doc, 404, "NOT_FOUND", true},
		"constructor":              {of("/v1/mcp/constructor"), doc, 404, "NOT_FOUND", true},
		"__proto__":                {of("/v1/mcp/__proto__"), doc, 404, "NOT_FOUND", true},
		"slash behind":             {of("/v1/mcp/get_thread/"), doc, 404, "NOT_FOUND", true},
		"slash between":            {of("/v1//get_thread"), doc, 404, "NOT_FOUND", true},
		"upper case":               {of("/v1/Get_thread"), doc, 404, "NOT_FOUND", true},
		"percent":                  {of("/v1/get%5fthread"), doc, 404, "NOT_FOUND", true},
		"path without token":       {"POST /v1/nope HTTP/1.1\n" + host + "\n", "", 401, "UNAUTHORIZED", true},
		"path of no one":           {"GET /nope HTTP/1.1\n" + host + "\n", "", 404, "NOT_FOUND", true},
		"no media type":            {typed(""), doc, 415, "VALIDATION_ERROR", true},
		"text":                     {typed("Content-Type: text/plain\n"), doc, 415, "VALIDATION_ERROR", true},
		"form":                     {typed("Content-Type: application/x-www-form-urlencoded\n"), doc, 415, "VALIDATION_ERROR", true},
		"latin1":                   {typed("Content-Type: application/json; charset=latin1\n"), doc, 415, "VALIDATION_ERROR", true},
		"UTF-8 and a parameter":    {typed("Content-Type: Application/JSON; charset=UTF-8; x=y\n"), doc, 200, "", true},
		"media before JSON":        {post + auth + long("x"), "x", 415, "VALIDATION_ERROR", true},
		"at the limit":             {post + auth + media + long(fill(1<<20)), fill(1 << 20), 200, "", true},
		"limit + 1":                {post + auth + media + long(fill(1<<20+1)), fill(1<<20 + 1), 413, "VALIDATION_ERROR", false},
		"limit + 1 in chunks":      {post + auth + media + chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 1<<20+1, fill(1<<20+1)), 413, "VALIDATION_ERROR", false},
		"2 MiB":                    {post + auth + media + long(fill(2<<20)), fill(2 << 20), 413, "VALIDATION_ERROR", false},
		"2 MiB without a token":    {post + media + long(fill(2<<20)), fill(2 << 20), 401, "UNAUTHORIZED", false},
		"header at the limit + 1":  {post + auth + media + "X: " + strings.Repeat("x", 32<<10) + "\n" + long(doc), doc, 431, "", false},
		"no host":                  {"POST /v1/get_thread HTTP/1.1\n" + auth + media + long(doc), doc, 400, "", false},
		"two lengths":              {post + auth + media + "Content-Length: 1\nContent-Length: 2\n\n", "{}", 400, "", false},
		"malformed header":         {post + "A : b\n\n", "", 400, "", false},
		"malformed request":        {"no HTTP\n\n", "", 400, "", false},
		"malformed chunk":          {post + auth + media + chunked, "x\r\n", 400, "VALIDATION_ERROR", false},
		"malformed chunk, refused": {post + media + chunked, "x\r\n", 401, "UNAUTHORIZED", false},
	} {
		a, open := s.raw(c.head, c.body)
		if a.status != c.status || a.code() != c.code || open != c.open {
			t.Errorf("%s: %d %.300s, open %v; want %d %s, open %v", why, a.status, a.text, open, c.status, c.code, c.open)
		}
		if c.code == "" && c.status != 200 {
			continue
		}
		for name, want := range map[string]string{"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"} {
			if a.header.Get(name) != want {
				t.Errorf("%s: %v", why, a.header)
			}
		}
		if !strings.HasPrefix(a.header.Get("X-Request-Id"), "req_") {
			t.Errorf("%s: %v", why, a.header)
		}
		want := ""
		if c.status == 401 {
			want = `Bearer resource_metadata="https://x.example/.well-known/oauth-protected-resource/mcp"`
			if strings.Contains(strings.ToLower(c.head), "authorization: bearer") {
				want = strings.Replace(want, " ", ` error="invalid_token", `, 1)
			}
		}
		if challenge := a.header.Get("Www-Authenticate"); challenge != want {
			t.Errorf("%s: challenge %s, want %s", why, challenge, want)
		}
		if allow := a.header.Get("Allow"); (allow == "POST") != (c.status == 405) {
			t.Errorf("%s: Allow %s", why, allow)
		}
	}
}

// TestGates sends what fails at two gates that follow each other: the first one answers (threads
// §2.1).
func TestGates(t *testing.T) {
	t.Parallel()
	s := start(t)
	foreign := s.post("create_thread", foreigner, `{"workspace_id":"wk_other","title":"x","type":"workflow","participants":["a"]}`).body["thread_id"].(string)
	id := s.create()
	for _, c := range []struct {
		why, httpMethod, path, token, body string
		status                             int
		code                               string
		header                             []string
	}{
		{"token, route", "POST", "/v1/nope", "bad", `{}`, 401, "UNAUTHORIZED", nil},
		{"route, media type", "POST", "/v1/nope", reviewer, `{}`, 404, "NOT_FOUND", []string{"Content-Type", "text/plain"}},
		{"HTTP method, media type", "PUT", "/v1/get_thread", reviewer, `{}`, 405, "VALIDATION_ERROR", []string{"Content-Type", "text/plain"}},
		{"media type, JSON", "POST", "/v1/get_thread", reviewer, `{`, 415, "VALIDATION_ERROR", []string{"Content-Type", "text/plain"}},
		{"JSON, field", "POST", "/v1/get_thread", reviewer, `{"thread_id":""`, 400, "VALIDATION_ERROR", nil},
		{"field, role", "POST", "/v1/create_thread", reviewer, `{"workspace_id":"wk_mobile_core"}`, 400, "VALIDATION_ERROR", nil},
		{"role, workspace", "POST", "/v1/create_thread", reviewer, `{"workspace_id":"x","title":"x","type":"workflow","participants":["a"]}`, 403, "FORBIDDEN", nil},
		{"workspace, hint", "POST", "/v1/get_thread", reviewer, `{"thread_id":"x","workspace_id":"x","agent_id":"x"}`, 403, "OUT_OF_SCOPE_WORKSPACE", nil},
		{"hint, thread", "POST", "/v1/get_thread", reviewer, `{"thread_id":"x","agent_id":"x"}`, 403, "CLAIM_MISMATCH", nil},
		{"thread, workspace of it", "POST", "/v1/read_messages", stranger, `{"thread_id":"x"}`, 404, "NOT_FOUND", nil},
		{"workspace of it, member", "POST", "/v1/read_messages", stranger, `{"thread_id":"` + foreign + `"}`, 403, "OUT_OF_SCOPE_WORKSPACE", nil},
		{"member, rule", "POST", "/v1/ack_read", stranger, `{"thread_id":"` + id + `","last_read_seq":9}`, 403, "FORBIDDEN", nil},
		{"rule", "POST", "/v1/ack_read", reviewer, `{"thread_id":"` + id + `","last_read_seq":9}`, 400, "VALIDATION_ERROR", nil},
	} {
		if a := s.request(c.httpMethod, c.path, c.token, c.body, c.header...); a.status != c.status || a.code() != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.why, a.status, a.text, c.status, c.code)
		} else if strings.Contains(a.text, "wk_other") {
			t.Errorf("%s: another workspace is named: %s", c.why, a.text)
		}
	}
}

// TestRequestIDs has which id an answer has, and which dialect (threads §2.1).
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/v1/get_thread", "/mcp"} {
		for id, taken := range map[string]bool{"a": true, strings.Repeat("~", 200): true, strings.Repeat("x", 201): false, "a b": false, "\u00e9": false} {
			a := s.request("POST", path, reviewer, `{}`, "X-Request-Id", id)
			if got := a.header.Get("X-Request-Id"); (got == id) != taken || !taken && !strings.HasPrefix(got, "req_") {
				t.Errorf("%s: the id %q became %q", path, id, got)
			}
		}
	}
	if a := s.post("get_thread", reviewer, `{}`, "X-Request-Id", "mine"); strings.Count(a.text, `"request_id":"mine"`) != 2 {
		t.Error(a.text)
	}
	for dialect, want := range map[string][2]string{"spec": {"VALIDATION_ERROR", "VALIDATION_ERROR"}, "legacy": {"INVALID_ARGUMENT", "INVALID_ARGUMENT"}, "Spec": {"VALIDATION_ERROR", "INVALID_ARGUMENT"}} {
		for i, path := range []string{"/v1/get_thread", "/v1/mcp/get_thread"} {
			if a := s.request("POST", path, reviewer, `{}`, "X-Error-Dialect", dialect); a.code() != want[i] {
				t.Errorf("%s %s: %s", dialect, path, a.text)
			}
		}
	}
}

// TestRefusedBody: the body of a request that is refused is not read as a request.
func TestRefusedBody(t *testing.T) {
	t.Parallel()
	s := start(t)
	inner := "GET /nope HTTP/1.1\r\nHost: a\r\n\r\n"
	head := fmt.Sprintf("POST /v1/get_thread HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: %d\n\n", len(inner))
	if a, open := s.raw(head, inner); a.status != 401 || !open {
		t.Errorf("%d %s, open %v", a.status, a.text, open)
	}
}

// TestLateBody: a head has 10 s, a body 30 s (threads §2.1).
func TestLateBody(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 30 s")
	}
	t.Parallel()
	s := start(t)
	for _, have := range []string{"", fmt.Sprintf("Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", reviewer)} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(90 * time.Second))
		_, _ = io.WriteString(c, "POST /v1/get_thread HTTP/1.1\r\nHost: a\r\n"+have)
		text, err := io.ReadAll(c)
		_ = c.Close()
		late := strings.HasPrefix(string(text), "HTTP/1.1 408 ") && strings.Contains(string(text), `"code":"VALIDATION_ERROR"`)
		if err != nil || late != (have != "") {
			t.Errorf("%s (%v)", text, err)
		}
	}
}

// TestDrain: a server that gets SIGTERM takes no more connections, finishes what it has begun, and
// ends well (threads §2.1).
func TestDrain(t *testing.T) {
	t.Parallel()
	s := start(t)
	doc := `{"thread_id":"` + s.create() + `"}`
	dial := func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(s.http, "http://")) }
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(c, "POST /v1/get_thread HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", reviewer, len(doc))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // the request has begun
		t.Fatal(line, err)
	}
	_, _ = in.ReadString('\n') // the line behind it
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.eventually("the drain", func() bool {
		another, err := dial()
		if err == nil {
			_ = another.Close()
		}
		return err != nil
	})
	_, _ = io.WriteString(c, doc)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 200 {
		t.Errorf("%v %v", res, err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, s.log)
	}
}

// TestClosedEarly: a write that was sent is done once, whether or not the client waits (threads
// §2.2).
func TestClosedEarly(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	const each = 10
	for path, form := range map[string]string{"/v1/post_message": "%s", "/mcp": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"post_message","arguments":%s}}`} {
		for i := range each {
			body := fmt.Sprintf(form, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"x","idempotency_key":"%s %d"}`, id, path, i))
			c, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", path, reviewer, len(body), body)
			_ = c.Close()
		}
	}
	s.eventually("every message", func() bool {
		return s.post("read_messages", reviewer, `{"thread_id":"`+id+`","since_seq":1000}`).body["next_seq"] == float64(2*each)
	})
}

package conformance

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// connect opens a connection of lines that has not shown a token.
func (s *server) connect() *peer {
	s.t.Helper()
	c, err := net.Dial("tcp", s.lines)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return &peer{t: s.t, in: bufio.NewReaderSize(c, 1<<16), ReadWriteCloser: c}
}

// want reads a line that begins so.
func (p *peer) want(begin string, parts ...string) {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, begin) {
		p.t.Fatalf("%.300q (%v), want %s", line, err, begin)
	}
	for _, part := range parts {
		if !strings.Contains(line, part) {
			p.t.Errorf("%s lacks %s", line, part)
		}
	}
}

// ends wants the end of the connection.
func (p *peer) ends(why string) {
	p.t.Helper()
	if line, err := p.in.ReadString('\n'); err != io.EOF {
		p.t.Errorf("%s: %q (%v), want the end", why, line, err)
	}
}

func authOf(id int, token string) string {
	return fmt.Sprintf(`{"id":%d,"method":"auth","params":{"protocol":"threads/1","token":"%s"}}`, id, token)
}

// TestEveryLine has the rows of threads §2.4 and §8 about lines of a connection that goes on.
func TestEveryLine(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	p := s.connect()
	_ = p.send("%s", authOf(0, reviewer))
	p.want(`{"id":0,"ok":true,"result":{"agent_id":"reviewer_agent","workspace_id":"wk_mobile_core","role":"participant","session_id":"sess_rv_12","expires_at":"2100-01-01T00:00:00.000Z"}}` + "\n")
	const invalid, nameless = `,"ok":false,"error":{"code":"VALIDATION_ERROR"`, `{"id":null,"ok":false,"error":{"code":"VALIDATION_ERROR"`
	pad := func(n int) string { return `{"id":1,"method":"ping","x":"` + strings.Repeat("x", n-31) + `"}` }
	nested := func(n int) string {
		return `{"id":1,"method":"get_thread","params":{"thread_id":"x","x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}}`
	}
	for _, c := range []struct{ line, want string }{
		{`{"id":1,"method":"ping"}`, `{"id":1,"ok":true,"result":{}}` + "\n"},
		{`{"id":1,"method":"ping"}` + "\r", `{"id":1,"ok":true,"result":{}}` + "\n"},
		{"\n\r\n" + `{"id":1,"method":"ping"}`, `{"id":1,"ok":true`},
		{`{"method":"ping","id":9007199254740991}`, `{"id":9007199254740991,"ok":true`},
		{`{"id":"` + strings.Repeat("x", 64) + `","method":"ping"}`, `{"id":"` + strings.Repeat("x", 64) + `","ok":true`},
		{`{"id":"\u0041\"","method":"p\u0069ng"}`, `{"id":"\u0041\"","ok":true`},
		{`{"id":"` + strings.Repeat("x", 65) + `","method":"ping"}`, nameless},
		{`{"id":9007199254740992,"method":"ping"}`, nameless},
		{`{"id":-1,"method":"ping"}`, nameless},
		{`{"id":1.5,"method":"ping"}`, nameless},
		{`{"id":"","method":"ping"}`, nameless},
		{`{"id":null,"method":"ping"}`, nameless},
		{`{"method":"ping"}`, nameless},
		{`{"id":1,"id":2,"method":"ping"}`, nameless},
		{`not json`, nameless},
		{`[]`, nameless},
		{"\xef\xbb\xbf" + `{"id":1,"method":"ping"}`, `{"id":1,"ok":true`},
		{"\xef\xbb\xbf\xef\xbb\xbf" + `{"id":1,"method":"ping"}`, nameless},
		{`{"id":1,"method":"ping"}{}`, nameless},
		{`{"id":1,"Method":"ping"}`, `{"id":1` + invalid},
		{`{"id":1,"method":7}`, `{"id":1` + invalid},
		{`{"id":1,"method":"nope"}`, `{"id":1,"ok":false,"error":{"code":"NOT_FOUND"`},
		{`{"id":1,"method":"get_thread"}`, `{"id":1` + invalid},
		{`{"id":1,"method":"get_thread","params":null}`, `{"id":1` + invalid},
		{`{"id":1,"method":"ping","params":null,"request_id":null}`, `{"id":1,"ok":true,"result":{}}`},
		{`{"id":1,"method":"get_thread","params":{"thread_id":"\ud800"}}`, `{"id":1` + invalid},
		{`{"id":1,"method":"get_thread","params":{"thread_id":"x","__proto__":1}}`, `{"id":1` + invalid},
		{`{"id":1,"method":"get_thread","params":{"thread_id":"x","y":{"a":1,"\u0061":1}}}`, `{"id":1` + invalid},
		{`{"id":1,"method":"get_thread","params":{"thread_id":"x","y":1e401}}`, `{"id":1` + invalid},
		{nested(64), `{"id":1,"ok":false,"error":{"code":"NOT_FOUND"`},
		{nested(65), `{"id":1` + invalid},
		{pad(1 << 20), `{"id":1,"ok":true`},
		{`{"id":1,"method":"get_thread","params":{"thread_id":"x"},"request_id":"mine"}`, `{"id":1,"ok":false,"error":{"code":"NOT_FOUND","message":"thread_id names no thread","request_id":"mine","retryable":false,"spec_code":"NOT_FOUND","legacy_code":"NOT_FOUND"}}` + "\n"},
		{`{"id":1,"method":"get_thread","params":{"thread_id":"x"},"request_id":"a b"}`, `{"id":1,"ok":false,"error":{"code":"NOT_FOUND","message":"thread_id names no thread","request_id":"req_`},
		{authOf(1, "x"), `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`},
		{strings.Replace(authOf(1, reviewer), "threads/1", `threads\/1`, 1), `{"id":1,"ok":true,"result":{"agent_id":`},
	} {
		_ = p.send("%s", c.line)
		p.want(c.want)
	}
	request, _ := hex.DecodeString("7b226964223a312c226d6574686f64223a2270696e67227d0a") // threads §9
	_, _ = p.Write(request)
	p.want("{\"id\":1,\"ok\":true,\"result\":{}}\n")
	text := fmt.Sprintf(`{"id":7,"method":"get_thread","params":{"thread_id":"%s"}}`+"\n", id)
	for i := range text { // each byte in a packet of its own
		_, _ = io.WriteString(p, text[i:i+1])
	}
	p.want(`{"id":7,"ok":true,"result":{"thread_id":"` + id)
	_ = p.send(`{"id":1,"method":"trigger_participant","params":{"thread_id":"x","target_agent_id":"x","reason":"x","trigger_prompt":"x"},"request_id":"a b"}`)
	p.want(`{"id":1` + invalid)
}

// TestEndsOfLines has what ends a connection, and how (threads §2.4, §8).
func TestEndsOfLines(t *testing.T) {
	t.Parallel()
	s := start(t)
	for line, want := range map[string]string{
		`{"id":1,"method":"ping"}`: `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`,
		`GET / HTTP/1.1`:           `{"id":null,"ok":false,"error":{"code":"UNAUTHORIZED"`,
		authOf(1, "x"):             `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`,
		authOf(1, tokenOf(claims{"exp": 1771329601})):                               `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`,
		strings.Replace(authOf(1, reviewer), "threads/1", "threads/2", 1):           `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`,
		strings.Replace(authOf(1, reviewer), `"token"`, `"Token"`, 1):               `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`,
		strings.Replace(authOf(1, reviewer), `"auth"`, `"auth","x":"\ud800"`, 1):    `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`,
		strings.Replace(authOf(1, reviewer), reviewer, strings.Repeat("x", 1e5), 1): `{"id":null,"ok":false,"error":{"code":"VALIDATION_ERROR"`,
	} {
		p := s.connect()
		_ = p.send("%s\n%s", line, authOf(2, reviewer))
		p.want(want)
		p.ends(line)
	}

	p := s.dial(reviewer)
	_ = p.send("%s", `{"id":1,"method":"ping","x":"`+strings.Repeat("x", 1<<20+1-31)+`"}`)
	p.want(`{"id":null,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	p.ends("a line over the limit")

	p = s.dial(reviewer)
	_ = p.send("%s", strings.Repeat("x\n", 15)+`{"id":1,"method":"ping"}`+strings.Repeat("\nx", 20))
	for i := range 15 + 1 + 16 {
		if i == 15 {
			p.want(`{"id":1,"ok":true`)
			continue
		}
		p.want(`{"id":null,"ok":false`)
	}
	p.ends("16 lines that are none")

	p = s.dial(reviewer)
	_ = p.send("%s\n%s", authOf(1, executioner), `{"id":2,"method":"ping"}`)
	p.want(`{"id":1,"ok":false,"error":{"code":"CLAIM_MISMATCH"`)
	p.ends("another agent")

	p = s.dial(reviewer)
	_, _ = io.WriteString(p, `{"id":1,"method":"ping"}`+"\n"+`{"id":2,"method":"summarize_thread","params":{"thread_id":"`+s.create()+`"}}`+"\n"+`{"id":3,"method":"ping"}`)
	_ = p.ReadWriteCloser.(*net.TCPConn).CloseWrite()
	p.want(`{"id":1,"ok":true`)
	p.want(`{"id":2,"ok":true`)
	p.ends("a client that sends no more")

	// Who was refused is in the audit: with the token that was verified, else nowhere.
	watch := tokenOf(claims{"workspace_id": "unknown", "role": "auditor"})
	s.eventually("the audit", func() bool {
		known, unknown := s.request("GET", "/v1/audit?limit=500", auditor, ""), s.request("GET", "/v1/audit?limit=500", watch, "")
		return strings.Count(known.text, `"actor_agent_id":"executioner_agent","actor_role":"participant","operation":"auth"`) == 1 &&
			strings.Count(unknown.text, `"workspace_id":"unknown","operation":"auth"`) == 5
	})
}

// TestTokensOfLines: a token that ends, or is revoked, is replaced on the same connection.
func TestTokensOfLines(t *testing.T) {
	t.Parallel()
	revoked := filepath.Join(t.TempDir(), "revoked")
	if err := os.WriteFile(revoked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "AUTH_REVOCATION_FILE="+revoked)
	exp := time.Now().Add(2 * time.Second).Unix()
	p := s.dial(tokenOf(claims{"exp": exp}))
	for time.Now().Unix() < exp {
		time.Sleep(50 * time.Millisecond)
	}
	_ = p.send(`{"id":1,"method":"ping"}`)
	p.want(`{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`, `"details":{"reason":"expired"}`)
	_ = p.send("%s\n%s", authOf(2, tokenOf(claims{"jti": "next"})), `{"id":3,"method":"ping"}`)
	p.want(`{"id":2,"ok":true`)
	p.want(`{"id":3,"ok":true`)
	if err := os.WriteFile(revoked, []byte(`{"jti":"next"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually("the revocation", func() bool {
		a := s.post("get_thread", tokenOf(claims{"jti": "next"}), `{"thread_id":"x"}`)
		return a.status == 401 && strings.Contains(a.text, `"reason":"revoked"`)
	})
	_ = p.send(`{"id":4,"method":"ping"}`)
	p.want(`{"id":4,"ok":false,"error":{"code":"UNAUTHORIZED"`, `"details":{"reason":"revoked"}`)
	_ = p.send("%s\n%s", authOf(5, reviewer), `{"id":6,"method":"ping"}`)
	p.want(`{"id":5,"ok":true`)
	p.want(`{"id":6,"ok":true`)
}

// TestUnreadAnswers: a client that sends without reading is not answered with an error, and gets
// every answer once it reads.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := s.dial(reviewer)
	const n = 200_000
	go func() {
		out := bufio.NewWriter(p)
		for i := range n {
			fmt.Fprintf(out, `{"id":%d,"method":"ping"}`+"\n", i)
		}
		_ = out.Flush()
	}()
	for i := range n {
		p.want(fmt.Sprintf(`{"id":%d,"ok":true`, i))
	}
}

// TestSilentPeers: a connection that shows no token ends after 10 s, one whose token is void 10 s
// after the first refusal, and one that reads nothing after 30 s.
func TestSilentPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	s := start(t)
	id := s.create()
	for range 5 {
		s.post("post_message", executioner, `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"`+strings.Repeat("x", 1<<20-1000)+`"}`)
	}
	exp := time.Now().Add(2 * time.Second).Unix()
	silent, ended, deaf := s.connect(), s.dial(tokenOf(claims{"exp": exp})), s.dial(reviewer)
	for range 20 {
		_ = deaf.send(`{"id":1,"method":"read_messages","params":{"thread_id":"%s"}}`, id)
	}
	for time.Now().Unix() < exp {
		time.Sleep(50 * time.Millisecond)
	}
	_ = ended.send(`{"id":1,"method":"ping"}`)
	ended.want(`{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`)
	for _, p := range []*peer{silent, ended} {
		if text, err := io.ReadAll(p.in); err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"request_id":"req_`) {
			t.Errorf("%q %v", text, err)
		}
	}
	s.eventually("the end of a deaf peer", func() bool { _, err := deaf.Write([]byte("\n")); return err != nil })
}

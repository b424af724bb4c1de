package lines

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// verifier accepts tokens that are the JSON of claims, unless they were revoked.
type verifier struct {
	generation atomic.Uint64
	revoked    sync.Map
}

func (v *verifier) Generation() uint64 { return v.generation.Load() }

func (v *verifier) VerifyKnown(text string) (*token.Claims, error) { return v.Verify(text) }

func (v *verifier) Verify(text string) (*token.Claims, error) {
	var c token.Claims
	if _, gone := v.revoked.Load(text); gone {
		return nil, &token.Refusal{Reason: "revoked"}
	}
	switch {
	case text == "elsewhere":
		return nil, token.ErrOutOfScope
	case text == "nokeys":
		return nil, &token.Refusal{Reason: "unknown_key", Unavailable: true, Retry: time.Second}
	case json.Unmarshal([]byte(text), &c) != nil:
		return nil, &token.Refusal{Reason: "malformed"}
	}
	return &c, nil
}

func tokenOf(agent string, expires time.Time) string {
	text, _ := json.Marshal(token.Claims{Agent: agent, Workspace: "w", Session: "s", ID: "j", Role: token.Coordinator, Expires: float64(expires.UnixMilli()) / 1000})
	return string(text)
}

// dispatcher is a method.Dispatcher that answers with its input. get_thread waits for release where
// it may.
type dispatcher struct {
	mu      sync.Mutex
	seen    []string
	refused []string
	release chan struct{}
	index   atomic.Uint64 // of answers
}

func (d *dispatcher) Call(dst []byte, c *method.Caller, row *method.Row, doc []byte) ([]byte, method.Outcome) {
	if row.Name == method.Get {
		if c.NoWait {
			return dst, method.Outcome{Waits: true}
		}
		<-d.release
	}
	d.mu.Lock()
	d.seen = append(d.seen, row.Name+string(doc))
	d.mu.Unlock()
	if row.Name == method.Create {
		return dst, method.Outcome{Fault: &method.Fault{Condition: method.Forbidden, Message: "no"}}
	}
	if row.Name == method.Trigger {
		panic("a defect")
	}
	return append(dst, doc...), method.Outcome{Index: d.index.Load()}
}

func (d *dispatcher) Await(uint64) error { return nil }

func (d *dispatcher) Refused(c *method.Caller, operation string, f *method.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := operation + " " + f.Condition.Codes().Spec
	if c.Claims != nil {
		text += " " + c.Claims.Agent
	}
	if len(c.RequestID) == 0 {
		text += " without a name"
	}
	d.refused = append(d.refused, text)
}

// audited returns what was refused since the last call.
func (d *dispatcher) audited() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := strings.Join(d.refused, ",")
	d.refused = nil
	return text
}

// journal is a connection.Journal whose durability the test decides.
type journal struct{ durable atomic.Uint64 }

func (j *journal) Durable() uint64 { return j.durable.Load() }
func (j *journal) FlushNext() bool { return true }
func (j *journal) Flush() bool     { return false }

type rig struct {
	t        testing.TB
	verifier verifier
	disp     dispatcher
	journal  journal
	gate     connection.Gate
	srv      *Server
	host     *stream.Host
	addr     string
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t}
	r.disp.release = make(chan struct{})
	r.gate.Journal = func() connection.Journal { return &r.journal }
	n := 0
	r.srv = New(Config{Dispatcher: &r.disp, Verifier: &r.verifier, Peers: token.NewPeers(5), Gate: &r.gate, Lookup: method.Lookup, Logger: slog.New(slog.DiscardHandler),
		NewRequestID: func(dst []byte) []byte { n++; return append(dst, "req_made"...) }})
	r.host = stream.NewHost(stream.Config{Limits: r.srv.Limits(), Open: r.srv.Open, Refuse: r.srv.AppendRefusal, MaxConnections: 100})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = ln.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = r.host.ServeListener(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.host.Shutdown(ctx)
		<-done
	})
	return r
}

// reach makes the journal durable up to an index.
func (r *rig) reach(n uint64) {
	r.journal.durable.Store(n)
	r.gate.Mark.Reach(n)
}

type peer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (r *rig) dial() *peer {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return &peer{t: r.t, Conn: c, in: bufio.NewReader(c)}
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Fatal(err)
	}
}

// want reads a line and checks that it begins so and has the other texts.
func (p *peer) want(begin string, has ...string) {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, begin) {
		p.t.Fatalf("%q (%v), want %q", line, err, begin)
	}
	for _, text := range has {
		if !strings.Contains(line, text) {
			p.t.Errorf("%q lacks %q", line, text)
		}
	}
}

func (p *peer) ends() {
	p.t.Helper()
	if line, err := p.in.ReadString('\n'); !errors.Is(err, io.EOF) {
		p.t.Fatalf("%q (%v), want the end", line, err)
	}
}

func authLine(id int, text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"id":%d,"method":"auth","params":{"protocol":"threads/1","token":%s}}`+"\n", id, quoted)
}

func (r *rig) authed() *peer {
	r.t.Helper()
	p := r.dial()
	p.send(authLine(0, tokenOf("a", time.Now().Add(time.Hour))))
	p.want(`{"id":0,"ok":true,"result":{"agent_id":"a","workspace_id":"w","role":"coordinator","session_id":"s","expires_at":"2`)
	return p
}

// TestLines has the rows of threads §2.4 and §8 about single lines.
func TestLines(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	f := func(line, begin string, has ...string) {
		t.Helper()
		p.send(line + "\n")
		p.want(begin, has...)
	}
	f(`{"id":1,"method":"ping"}`, `{"id":1,"ok":true,"result":{}}`+"\n")
	f(`{"id":"x\u0041","method":"ping"}`+"\r", `{"id":"x\u0041","ok":true,"result":{}}`)
	f(`{"id":9007199254740991,"method":"ping"}`, `{"id":9007199254740991,"ok":true`)
	f(`{"id":1e2,"method":"ping"}`, `{"id":1e2,"ok":true`)
	f("\n\r\n"+`{"id":2,"method":"ping"}`, `{"id":2,"ok":true`)
	f(`{"id":3,"method":"post_message","params":{"thread_id":"x"}}`, `{"id":3,"ok":true,"result":{"thread_id":"x"}}`+"\n")
	f(`{"params":{"a":1},"method":"post_message","id":4}`, `{"id":4,"ok":true,"result":{"a":1}}`+"\n")
	f(`{"id":5,"method":"read_messages"}`, `{"id":5,"ok":true,"result":{}}`+"\n")
	f(`{"id":6,"method":"create_thread"}`, `{"id":6,"ok":false,"error":{"code":"FORBIDDEN","message":"no","request_id":"req_made"`)
	f(`{"id":7,"method":"create_thread","request_id":"mine"}`, `{"id":7,"ok":false`, `"request_id":"mine"`)
	f(`{"id":8,"method":"nope"}`, `{"id":8,"ok":false,"error":{"code":"NOT_FOUND"`)
	f(`{"id":8,"method":"auth","params":{}}`, `{"id":8,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	for _, line := range []string{`not json`, `[]`, `{"method":"ping"}`, `{"id":1.5,"method":"ping"}`, `{"id":"","method":"ping"}`, `{"id":-1,"method":"ping"}`,
		`{"id":9007199254740992,"method":"ping"}`, `{"id":"` + strings.Repeat("x", 65) + `","method":"ping"}`, `{"id":null,"method":"ping"}`, `{"id":1,"id":2,"method":"ping"}`} {
		f(line, `{"id":null,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	}
	f(`{"id":"`+strings.Repeat("x", 64)+`","method":"ping"}`, `{"id":"x`)
	f(`{"id":1,"method":7}`, `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	f(`{"id":1}`, `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	f(`{"id":1,"method":"p\u0069ng"}`, `{"id":1,"ok":true,"result":{}}`)
	f(`{"id":1,"method":"ping","params":{"x":"\ud800"}}`, `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	f(`{"id":1,"method":"ping","params":{"x":1,"x":2}}`, `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`, `"details":{"issues":[{"path":[],"code":"duplicate_key"`)
	f(`{"id":1,"method":"ping","__proto__":1}`, `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	if got := r.disp.audited(); got != "mcp.create_thread FORBIDDEN a,mcp.create_thread FORBIDDEN a" {
		t.Errorf("refusals %s", got)
	}
}

// TestUndecodableLines closes at the 16th in a row.
func TestUndecodableLines(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	p.send(strings.Repeat("x\n", maxUndecoded-1) + `{"id":1,"method":"ping"}` + "\n" + strings.Repeat("x\n", maxUndecoded+3))
	for range maxUndecoded - 1 {
		p.want(`{"id":null`)
	}
	p.want(`{"id":1,"ok":true`)
	for range maxUndecoded {
		p.want(`{"id":null`)
	}
	p.ends()
}

// TestFirstLine has what a connection may begin with.
func TestFirstLine(t *testing.T) {
	r := newRig(t)
	f := func(line, begin string, has ...string) {
		t.Helper()
		p := r.dial()
		p.send(line)
		p.want(begin, has...)
		p.ends()
	}
	f(`{"id":1,"method":"ping"}`+"\n", `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`)
	f("x\n", `{"id":null,"ok":false,"error":{"code":"UNAUTHORIZED"`)
	f(authLine(1, "x"), `{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`, `"reason":"malformed"`)
	f(authLine(1, "nokeys"), `{"id":1,"ok":false,"error":{"code":"INTERNAL"`, `"retryable":true`)
	f(authLine(1, "elsewhere"), `{"id":1,"ok":false,"error":{"code":"OUT_OF_SCOPE_WORKSPACE"`)
	f(`{"id":1,"method":"auth","params":{"protocol":"threads/2","token":"x"}}`+"\n", `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	f(`{"id":1,"method":"auth"}`+"\n", `{"id":1,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	f(strings.Replace(authLine(1, "elsewhere"), "threads/1", `threads\/1`, 1), `{"id":1,"ok":false,"error":{"code":"OUT_OF_SCOPE_WORKSPACE"`)
	if got := r.disp.audited(); got != "auth UNAUTHORIZED,auth UNAUTHORIZED,auth UNAUTHORIZED,auth OUT_OF_SCOPE_WORKSPACE,auth OUT_OF_SCOPE_WORKSPACE" {
		t.Errorf("refusals %s", got)
	}
	f(strings.Repeat("x", MaxGuestLine+1)+"\n", `{"id":null,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
}

// TestFailedTokens has the limit of failed authentications and one more.
func TestFailedTokens(t *testing.T) {
	r := newRig(t)
	for i := range 7 {
		p := r.dial()
		p.send(authLine(1, "x"))
		code := "UNAUTHORIZED"
		if i >= 5 {
			code = "RATE_LIMITED"
		}
		p.want(`{"id":1,"ok":false,"error":{"code":"` + code + `"`)
		p.ends()
	}
	r.authed()
}

// TestLineLength has the limit and one byte more.
func TestLineLength(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	line := func(n int) string {
		head, tail := `{"id":1,"method":"ping","x":"`, `"}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail + "\n"
	}
	p.send(line(maxLine))
	p.want(`{"id":1,"ok":true`)
	p.send(line(maxLine + 1))
	p.want(`{"id":null,"ok":false,"error":{"code":"VALIDATION_ERROR"`)
	p.ends()
}

// TestTokens has re-authentication, expiry and revocation.
func TestTokens(t *testing.T) {
	r := newRig(t)
	p := r.dial()
	soon := time.Now().Add(1200 * time.Millisecond)
	p.send(authLine(1, tokenOf("a", soon)))
	p.want(`{"id":1,"ok":true`)
	p.send(`{"id":2,"method":"ping"}` + "\n")
	p.want(`{"id":2,"ok":true`)
	for time.Now().Before(soon) {
		time.Sleep(time.Until(soon))
	}
	p.send(`{"id":3,"method":"ping"}` + "\n" + `{"id":4,"method":"ping"}` + "\n")
	p.want(`{"id":3,"ok":false,"error":{"code":"UNAUTHORIZED"`)
	p.want(`{"id":4,"ok":false,"error":{"code":"UNAUTHORIZED"`)
	p.send(authLine(5, "x"))
	p.want(`{"id":5,"ok":false,"error":{"code":"UNAUTHORIZED"`)
	next := tokenOf("a", time.Now().Add(time.Hour))
	p.send(authLine(6, next) + `{"id":7,"method":"ping"}` + "\n")
	p.want(`{"id":6,"ok":true`)
	p.want(`{"id":7,"ok":true`)
	r.verifier.revoked.Store(next, true)
	r.verifier.generation.Add(1)
	p.send(`{"id":8,"method":"ping"}` + "\n")
	p.want(`{"id":8,"ok":false,"error":{"code":"UNAUTHORIZED"`, `"details":{"reason":"revoked"}`)
	p.send(authLine(9, tokenOf("b", time.Now().Add(time.Hour))))
	p.want(`{"id":9,"ok":false,"error":{"code":"CLAIM_MISMATCH"`)
	p.ends()
	if got := r.disp.audited(); got != "auth UNAUTHORIZED,auth UNAUTHORIZED,auth UNAUTHORIZED,auth UNAUTHORIZED,auth CLAIM_MISMATCH b" {
		t.Errorf("refusals %s", got)
	}
}

// TestOrder: a call that leaves the loop keeps its place, and a defect is one answer.
func TestOrder(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	p.send(`{"id":1,"method":"ping"}` + "\n" + `{"id":2,"method":"get_thread","params":{"thread_id":"t"}}` + "\n" + `{"id":3,"method":"ping"}` + "\n" +
		`{"id":4,"method":"get_thread"}` + "\n")
	p.want(`{"id":1,"ok":true`)
	r.disp.release <- struct{}{}
	p.want(`{"id":2,"ok":true,"result":{"thread_id":"t"}}`)
	p.want(`{"id":3,"ok":true`)
	close(r.disp.release)
	p.want(`{"id":4,"ok":true,"result":{}}`)
}

// TestReplyWaitsForTheJournal: no reply overtakes one that is not durable.
func TestReplyWaitsForTheJournal(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	r.disp.index.Store(7)
	p.send(`{"id":1,"method":"post_message"}` + "\n" + `{"id":2,"method":"ping"}` + "\n")
	got := make(chan string)
	go func() {
		for range 2 {
			line, _ := p.in.ReadString('\n')
			got <- line
		}
	}()
	r.reach(6)
	select {
	case line := <-got:
		t.Fatalf("%q before it is durable", line)
	case <-time.After(50 * time.Millisecond):
	}
	r.reach(7)
	if a, b := <-got, <-got; !strings.HasPrefix(a, `{"id":1`) || !strings.HasPrefix(b, `{"id":2`) {
		t.Errorf("%q %q", a, b)
	}
}

// TestUnanswered: a connection with too many unanswered requests is not read, and loses none.
func TestUnanswered(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	r.disp.index.Store(1)
	const n = 3*maxUnanswered + 5
	go func() {
		for i := range n {
			_, _ = fmt.Fprintf(p, `{"id":%d,"method":"post_message"}`+"\n", i)
		}
	}()
	for r.srv.counts.Requests.Load() < maxUnanswered {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if got := r.srv.counts.Requests.Load(); got > maxUnanswered+1 { // and the auth line
		t.Errorf("%d requests were taken, at most %d", got, maxUnanswered+1)
	}
	r.reach(1)
	for i := range n {
		p.want(fmt.Sprintf(`{"id":%d,"ok":true`, i))
	}
}

// TestHalfClose: pending requests are answered, a line without its end is dropped.
func TestHalfClose(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	p.send(`{"id":1,"method":"get_thread"}` + "\n" + `{"id":2,"method":"ping"}` + "\n" + `{"id":3,"method":"ping"}`)
	_ = p.Conn.(*net.TCPConn).CloseWrite()
	close(r.disp.release)
	p.want(`{"id":1,"ok":true`)
	p.want(`{"id":2,"ok":true`)
	p.ends()
}

// TestSplitAnywhere: the answers are the same however the lines are cut.
func TestSplitAnywhere(t *testing.T) {
	r := newRig(t)
	text := `{"id":1,"method":"ping"}` + "\n" + `{"id":"é","method":"post_message","params":{"a":"\u00e9"}}` + "\r\n" + "x\n"
	p := r.authed()
	for i := 1; i < len(text); i++ {
		p.send(text[:i])
		if i%8 == 0 {
			time.Sleep(time.Millisecond) // so that it is another read
		}
		p.send(text[i:])
		p.want(`{"id":1,"ok":true`)
		p.want(`{"id":"é","ok":true,"result":{"a":"\u00e9"}}`)
		p.want(`{"id":null,"ok":false`)
		p.send(`{"id":1,"method":"ping"}` + "\n")
		p.want(`{"id":1,"ok":true`)
	}
}

// TestDrain: what was sent is answered, later requests are refused, the connection ends.
func TestDrain(t *testing.T) {
	r := newRig(t)
	p := r.authed()
	p.send(`{"id":1,"method":"get_thread"}` + "\n")
	for len(r.srv.away) == 0 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ended <- r.host.Shutdown(ctx)
	}()
	close(r.disp.release)
	p.want(`{"id":1,"ok":true`)
	p.ends()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAuthWithin: a connection without a token has an end.
func TestAuthWithin(t *testing.T) {
	r := newRig(t)
	s := r.srv.Open(connection.NewPort(1, "x"))
	now := connection.Mono()
	if until := s.Load().Until; until < now || until > now+int64(AuthWithin) {
		t.Errorf("ends at %d, now is %d", until, now)
	}
	s.Closed()
}

// FuzzPick: what is picked of a line is what is parsed.
func FuzzPick(f *testing.F) {
	for _, s := range []string{
		`{"id":7,"method":"post_message","params":{"thread_id":"t","schema_version":1,"kind":"chat","body":"hello","metadata":{"a":[1]}}}`,
		`{"id": "a", "method": "read_messages", "params": {"thread_id": "t", "since_seq": 1, "limit": 50}}`,
		`{"id":0,"method":"ack_read","params":{"thread_id":"t","last_read_seq":1},"request_id":"x"}`, `{"id":"","method":"get_thread","params":{}}`,
	} {
		f.Add([]byte(s))
	}
	var strict jsonx.Strict
	f.Fuzz(func(t *testing.T, line []byte) {
		var got, want request
		row := got.pick(line, method.Lookup, &strict, new(method.Picked))
		if row == nil {
			return
		}
		fault, decoded := want.parse(line, &strict)
		if fault != nil || !decoded || want.members[atRequestID].Kind != jsonx.Absent {
			t.Fatalf("%q is picked: %v", line, fault)
		}
		if string(got.id) != string(want.id) || got.quoted != want.quoted || row.Name != string(want.members[atMethod].Raw) ||
			string(got.params()) != string(want.params()) {
			t.Fatalf("%q: %q %t %s %s", line, got.id, got.quoted, row.Name, got.params())
		}
	})
}

// FuzzSession feeds arbitrary lines in arbitrary pieces: every line has one answer, in order, each
// one line of JSON.
func FuzzSession(f *testing.F) {
	for _, s := range []string{"{\"id\":1,\"method\":\"ping\"}\n", "x\n", "\n\r\n", "{\"id\":\"a\",\"method\":\"post_message\",\"params\":{\"b\":[1,2]}}\n",
		"{\"id\":1,\"id\":1}\n{\"method\":\"ping\"}\n"} {
		f.Add(s, 3)
	}
	r := newRig(f)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		if strings.Contains(text, "get_thread") || strings.Contains(text, "trigger") || strings.Contains(text, "auth") {
			t.Skip()
		}
		p := connection.NewPort(1, "fuzz")
		s := r.srv.Open(p).(*session)
		defer s.Closed()
		c, _ := r.verifier.Verify(tokenOf("a", time.Now().Add(time.Hour)))
		s.claims, s.known, s.until = c, c, 0
		rest, out := []byte(text), []byte(nil)
		v := connection.More
		for len(rest) > 0 && v != connection.Close {
			var used int
			n := len(rest)
			if piece > 0 {
				n = min(n, piece)
			}
			for {
				used, out, v = s.Feed(rest[:n], out, connection.Now())
				if used > 0 || v == connection.Close || n == len(rest) {
					break
				}
				n++
			}
			if rest = rest[used:]; used == 0 {
				break
			}
		}
		lines := 0
		for line := range strings.Lines(strings.TrimSuffix(text, "\r")) {
			if strings.HasSuffix(line, "\n") && strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") != "" {
				lines++
			}
		}
		answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if len(out) == 0 {
			answers = nil
		}
		for _, a := range answers {
			var v struct {
				OK     *bool
				Result json.RawMessage
				Error  *struct{ Code, Message string }
			}
			if err := json.Unmarshal([]byte(a), &v); err != nil || v.OK == nil || *v.OK == (v.Error != nil) {
				t.Fatalf("%q: %v", a, err)
			}
		}
		if v != connection.Close && len(answers) != lines {
			t.Fatalf("%d answers to %d lines of %q: %q", len(answers), lines, text, out)
		}
	})
}

// TestEachRefusedConnectionHasARequestID: answers that belong to no request of the client have
// identifiers that belong to one connection.
func TestEachRefusedConnectionHasARequestID(t *testing.T) {
	n := 0
	srv := New(Config{NewRequestID: func(dst []byte) []byte { n++; return fmt.Appendf(dst, "req_%d", n) },
		Logger: slog.New(slog.DiscardHandler)})
	l := srv.Limits()
	for name, answer := range map[string]func([]byte) []byte{"a late line": l.LateFrame, "no room": l.NoRoom} {
		if first, second := string(answer(nil)), string(answer(nil)); first == second {
			t.Errorf("%s: twice %s", name, first)
		}
	}
}

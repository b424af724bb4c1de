package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// events is a stream of server-sent events.
type events struct {
	t   *testing.T
	res *http.Response
	in  *bufio.Reader
}

// follow opens a stream. last is the Last-Event-ID, empty for none.
func (s *server) follow(t *testing.T, token, query, last string) *events {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/v1/stream?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return &events{t: t, res: res, in: bufio.NewReader(res.Body)}
}

// next returns the next event without comments.
func (e *events) next() (id, kind, data string) {
	e.t.Helper()
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			e.t.Fatalf("the stream ends: %v", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if data != "" {
				return id, kind, data
			}
		}
	}
}

// message wants the next event to be a message.
func (e *events) message(id, thread string, seq int) {
	e.t.Helper()
	got, kind, data := e.next()
	var m struct {
		ThreadID string `json:"thread_id"`
		Message  struct{ Seq int }
	}
	if err := json.Unmarshal([]byte(data), &m); err != nil || got != id || kind != "message" || m.ThreadID != thread || m.Message.Seq != seq {
		e.t.Fatalf("event %s %s %s (%v), want message %d of %s", got, kind, data, err, seq, thread)
	}
}

// fails wants the next event to end the stream.
func (e *events) fails(code string) {
	e.t.Helper()
	if _, kind, data := e.next(); kind != "error" || !strings.Contains(data, `"code":"`+code+`"`) {
		e.t.Fatalf("event %s %s, want the error %s", kind, data, code)
	}
}

// send posts a message.
func (s *server) send(thread, token, body string) {
	s.t.Helper()
	text, _ := json.Marshal(map[string]any{"thread_id": thread, "schema_version": 1, "kind": "chat", "body": body})
	if a := s.post("post_message", token, string(text)); a.status != 200 {
		s.t.Fatalf("%d %s", a.status, a.text)
	}
}

// TestWaitingCalls: read_messages with wait_ms is answered by the next message, or with an empty
// page when its time is up, on HTTP, lines and MCP.
func TestWaitingCalls(t *testing.T) {
	t.Parallel()
	s := start(t)
	read := func(id string, since, wait int) string {
		return fmt.Sprintf(`{"thread_id":"%s","since_seq":%d,"wait_ms":%d}`, id, since, wait)
	}
	calls := map[string]func(id string, since, wait int) string{
		"http": func(id string, since, wait int) string {
			return s.post("read_messages", reviewer, read(id, since, wait)).text
		},
		"lines": func(id string, since, wait int) string {
			return s.dial(reviewer).line("read_messages", read(id, since, wait))
		},
		"mcp": func(id string, since, wait int) string {
			return s.mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_messages","arguments":` + read(id, since, wait) + `}}`).text
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			id := s.create()
			if text := call(id, 0, 20); !strings.Contains(text, `"messages":[]`) {
				t.Errorf("when the time is up: %s", text)
			}
			answer := make(chan string, 1)
			go func() { answer <- call(id, 0, 60_000) }()
			time.Sleep(50 * time.Millisecond)
			s.send(id, executioner, "hello")
			if text := <-answer; !strings.Contains(text, "hello") {
				t.Errorf("after a message: %s", text)
			}
			if text := call(id, 0, 60_000); !strings.Contains(text, "hello") {
				t.Errorf("with a message: %s", text)
			}
		})
	}
	for _, wait := range []int{-1, 60_001} {
		if a := s.post("read_messages", reviewer, read(s.create(), 0, wait)); a.status != 400 {
			t.Errorf("wait_ms %d: %d %s", wait, a.status, a.text)
		}
	}
}

// line calls a method and returns the whole reply.
func (p *peer) line(method, params string) string {
	_ = p.send(`{"id":1,"method":"%s","params":%s}`, method, params)
	text, err := p.in.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return text
}

// TestWaitsAreBounded: threads.max_waits calls wait, one more is refused, and those are answered
// when the server stops.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, "TRUNKLINE_THREADS_MAX_WAITS=2")
	id := s.create()
	p := [3]*peer{s.dial(reviewer), s.dial(reviewer), s.dial(reviewer)}
	for i := range p[:2] {
		_ = p[i].send(`{"id":1,"method":"read_messages","params":{"thread_id":"%s","wait_ms":60000}}`, id)
	}
	s.eventually("two calls wait", func() bool {
		_ = p[2].send(`{"id":7,"method":"read_messages","params":{"thread_id":"%s","wait_ms":1}}`, id)
		text, _ := p[2].in.ReadString('\n')
		return strings.Contains(text, `"code":"RATE_LIMITED"`) && strings.Contains(text, "retry_after_ms")
	})
	s.stop()
	for i := range p[:2] {
		p[i].want(`{"id":1,"ok":true,"result":{"messages":[],"next_seq":0,"has_more":false}}`)
	}
}

// TestEvents: a stream of a thread has every message once, from since_seq or Last-Event-ID on, also
// those that are not in memory any more; one of all threads has the caller's from now on.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	id, other := s.create(), s.create()
	for range 3 {
		s.send(id, executioner, "x")
	}
	e := s.follow(t, reviewer, "thread_id="+id+"&since_seq=1", "")
	if h := e.res.Header; e.res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", e.res.StatusCode, h)
	}
	e.message("2", id, 2)
	e.message("3", id, 3)
	all := s.follow(t, reviewer, "thread_id=*", "")
	time.Sleep(20 * time.Millisecond)
	s.send(id, executioner, "y")
	e.message("4", id, 4)
	all.message(id+":4", id, 4)
	s.send(other, executioner, "z")
	all.message(other+":1", other, 1)
	s.follow(t, reviewer, "thread_id="+id+"&since_seq=1", "3").message("4", id, 4)
	again := s.follow(t, reviewer, "thread_id=*", id+":3")
	seen := map[string]bool{}
	for range 2 {
		_, _, data := again.next()
		for _, part := range []string{id, other} {
			seen[part] = seen[part] || strings.Contains(data, part)
		}
	}
	if !seen[id] || !seen[other] {
		t.Errorf("a stream of all threads goes on with %v", seen)
	}
	for _, c := range []struct {
		token, query, last string
		status             int
	}{
		{reviewer, "", "", 400}, {reviewer, "thread_id=" + id + "&since_seq=-1", "", 400}, {reviewer, "thread_id=" + id + "&thread_id=x", "", 400},
		{reviewer, "thread_id=" + id, "x", 400}, {reviewer, "thread_id=*", "x", 400}, {reviewer, "thread_id=*", "th_none:1", 404},
		{reviewer, "thread_id=th_none", "", 404}, {stranger, "thread_id=" + id, "", 403}, {foreigner, "thread_id=" + id, "", 403}, {"x", "thread_id=" + id, "", 401},
	} {
		if got := s.follow(t, c.token, c.query, c.last).res.StatusCode; got != c.status {
			t.Errorf("%s after %q: %d, want %d", c.query, c.last, got, c.status)
		}
	}
}

// TestSubscriptions: a connection of lines has the messages of its subscriptions between its
// replies, each in order and once.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	s.send(id, executioner, "one")
	p := s.dial(reviewer)
	_ = p.send(`{"id":1,"method":"subscribe","params":{"thread_id":"%s","since_seq":0}}`, id)
	p.want(`{"id":1,"ok":true,"result":{"subscription":1}}`)
	p.want(`{"subscription":1,"message":{"message_id":"`, `"seq":1`, `"thread_id":"`+id+`"}`)
	s.send(id, executioner, "two")
	p.want(`{"subscription":1,"message":{`, `"seq":2`)
	_ = p.send(`{"id":2,"method":"subscribe","params":{"thread_id":"*"}}`)
	p.want(`{"id":2,"ok":true,"result":{"subscription":2}}`)
	_ = p.send(`{"id":3,"method":"unsubscribe","params":{"subscription":1}}`)
	p.want(`{"id":3,"ok":true,"result":{}}`)
	s.send(id, executioner, "three")
	p.want(`{"subscription":2,"message":{`, `"seq":3`, `"thread_id":"`+id+`"}`)
	for _, c := range []struct{ line, want string }{
		{`{"id":4,"method":"unsubscribe","params":{"subscription":1}}`, `{"id":4,"ok":false,"error":{"code":"NOT_FOUND"`},
		{`{"id":5,"method":"unsubscribe"}`, `{"id":5,"ok":false,"error":{"code":"VALIDATION_ERROR"`},
		{`{"id":6,"method":"subscribe","params":{"thread_id":"th_none"}}`, `{"id":6,"ok":false,"error":{"code":"NOT_FOUND"`},
		{`{"id":7,"method":"subscribe","params":{"thread_id":"*","since_seq":-1}}`, `{"id":7,"ok":false,"error":{"code":"VALIDATION_ERROR"`},
	} {
		_ = p.send("%s", c.line)
		p.want(c.want)
	}
	for i := 1; i <= 1023; i++ { // one is there already
		_ = p.send(`{"id":%d,"method":"subscribe","params":{"thread_id":"%s","since_seq":100}}`, i, id)
		p.want(`{"id":` + strconv.Itoa(i) + `,"ok":true`)
	}
	_ = p.send(`{"id":8,"method":"subscribe","params":{"thread_id":"%s"}}`, id)
	p.want(`{"id":8,"ok":false,"error":{"code":"RATE_LIMITED"`)
}

// TestStreamsEndWithTheRight: a token that expires or is revoked, and a lost membership, end
// streams and waits within a second with the contract's error.
func TestStreamsEndWithTheRight(t *testing.T) {
	t.Parallel()
	revoked := filepath.Join(t.TempDir(), "revoked")
	if err := os.WriteFile(revoked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "AUTH_REVOCATION_FILE="+revoked)
	id := s.create()
	soon := tokenOf(claims{"exp": time.Now().Unix() + 3, "iat": time.Now().Unix() - 10, "jti": "soon"})
	named := tokenOf(claims{"jti": "named"})
	open := func(token string) (*events, *peer, chan *answer) {
		e, p := s.follow(t, token, "thread_id="+id, ""), s.dial(token)
		_ = p.send(`{"id":1,"method":"subscribe","params":{"thread_id":"%s"}}`, id)
		p.want(`{"id":1,"ok":true`)
		wait := make(chan *answer, 1)
		go func() { wait <- s.post("read_messages", token, `{"thread_id":"`+id+`","wait_ms":60000}`) }()
		return e, p, wait
	}
	check := func(why string, e *events, p *peer, wait chan *answer, code string) {
		t.Helper()
		e.fails(code)
		p.want(`{"subscription":1,"error":{"code":"` + code + `"`)
		if a := <-wait; a.code() != code {
			t.Errorf("%s: a waiting call has %d %s", why, a.status, a.text)
		}
	}
	e, p, wait := open(soon)
	check("expired", e, p, wait, "UNAUTHORIZED")
	e, p, wait = open(named)
	if err := os.WriteFile(revoked, []byte(`{"jti":"named"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("revoked", e, p, wait, "UNAUTHORIZED")
	e, p, wait = open(reviewer)
	time.Sleep(50 * time.Millisecond)
	if a := s.post("update_participants", coordinator, `{"thread_id":"`+id+`","remove":["reviewer_agent"],"reason":"done"}`); a.status != 200 {
		t.Fatal(a.text)
	}
	check("no participant any more", e, p, wait, "FORBIDDEN")
}

// TestDrainEndsStreams: a server that stops ends streams with an event, and does not wait for them.
func TestDrainEndsStreams(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	e, p := s.follow(t, reviewer, "thread_id="+id, ""), s.dial(reviewer)
	_ = p.send(`{"id":1,"method":"subscribe","params":{"thread_id":"%s"}}`, id)
	p.want(`{"id":1,"ok":true`)
	began := time.Now()
	s.stop()
	e.fails("INTERNAL")
	p.want(`{"subscription":1,"error":{"code":"INTERNAL"`)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the server stops after %s", took)
	}
}

// TestLists: list_threads, what is unread and participants on HTTP and MCP.
func TestLists(t *testing.T) {
	t.Parallel()
	s := start(t)
	one, two := s.create(), s.create()
	time.Sleep(5 * time.Millisecond) // the time of a thread has milliseconds
	s.send(one, executioner, "x")
	list := func(token, body string) (ids []string, a *answer) {
		a = s.post("list_threads", token, body)
		threads, _ := a.body["threads"].([]any)
		for _, th := range threads {
			ids = append(ids, th.(map[string]any)["thread_id"].(string))
		}
		return ids, a
	}
	if ids, a := list(reviewer, `{}`); fmt.Sprint(ids) != fmt.Sprint([]string{one, two}) || !strings.Contains(a.text, `"latest_seq":1,"last_read_seq":0,"unread":1`) {
		t.Errorf("%d %s", a.status, a.text)
	}
	if ids, a := list(reviewer, `{"unread":true}`); len(ids) != 1 {
		t.Errorf("%d %s", a.status, a.text)
	}
	if ids, a := list(executioner, `{"unread":true}`); len(ids) != 0 {
		t.Errorf("own messages are unread: %d %s", a.status, a.text)
	}
	ids, a := list(reviewer, `{"limit":1}`)
	next, _ := a.body["next_cursor"].(string)
	if more, b := list(reviewer, `{"limit":1,"cursor":"`+next+`"}`); len(ids) != 1 || len(more) != 1 || ids[0] != one || more[0] != two || b.body["next_cursor"] != nil {
		t.Errorf("pages %s and %s", a.text, b.text)
	}
	if ids, _ := list(stranger, `{}`); len(ids) != 0 {
		t.Errorf("a stranger lists %v", ids)
	}
	if ids, _ := list(foreigner, `{}`); len(ids) != 0 {
		t.Errorf("another workspace lists %v", ids)
	}
	for _, body := range []string{`{"limit":0}`, `{"limit":201}`, `{"order":"x"}`, `{"cursor":"x"}`, `{"cursor":""}`, `{"unread":1}`, `{"status":"x"}`,
		`{"order":"created","cursor":"` + next + `"}`} {
		if _, a := list(reviewer, body); a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
	for _, c := range []struct {
		token, body string
		status      int
	}{
		{coordinator, `{"thread_id":"` + one + `","add":["stranger_agent"],"reason":"help"}`, 200}, {operator, `{"thread_id":"` + one + `","add":["stranger_agent"],"reason":"again"}`, 200},
		{reviewer, `{"thread_id":"` + one + `","add":["x"],"reason":"x"}`, 403}, {auditor, `{"thread_id":"` + one + `","add":["x"],"reason":"x"}`, 403},
		{coordinator, `{"thread_id":"` + one + `","reason":"x"}`, 400}, {coordinator, `{"thread_id":"` + one + `","add":["x"]}`, 400}, {coordinator, `{"thread_id":"` + one + `","add":[],"reason":"x"}`, 400},
		{coordinator, `{"thread_id":"` + one + `","remove":["executioner_agent","reviewer_agent","stranger_agent"],"reason":"x"}`, 400},
		{coordinator, `{"thread_id":"th_none","add":["x"],"reason":"x"}`, 404}, {foreigner, `{"thread_id":"` + one + `","add":["x"],"reason":"x"}`, 403},
	} {
		if a := s.post("update_participants", c.token, c.body); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.body, a.status, a.text, c.status)
		}
	}
	if ids, _ := list(stranger, `{}`); len(ids) != 1 {
		t.Errorf("an added participant lists %v", ids)
	}
	if text := s.mcp(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_threads","arguments":{}}}`).text; !strings.Contains(text, one) {
		t.Errorf("over MCP: %s", text)
	}
}

// TestColdSubscriptions: subscriptions that begin with messages that are not in memory any more
// have all of them, and those that are posted meanwhile, once and in order.
func TestColdSubscriptions(t *testing.T) {
	t.Parallel()
	s := start(t, "TRUNKLINE_THREADS_HOT_BYTES=1048576")
	id, other := s.create(), s.create()
	const old, later, subscriptions = 40, 60, 40
	for range old {
		s.send(id, executioner, "x")
	}
	for range 3 { // out of memory
		s.send(other, executioner, strings.Repeat("x", 900_000))
	}
	time.Sleep(300 * time.Millisecond)
	p := s.dial(reviewer)
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		for range later {
			s.send(id, executioner, "y")
		}
	}()
	for range subscriptions {
		_ = p.send(`{"id":1,"method":"subscribe","params":{"thread_id":"%s"}}`, id)
	}
	last := map[int]int{}
	for done := 0; done < subscriptions; {
		text, err := p.in.ReadString('\n')
		if err != nil {
			t.Fatalf("%d of %d are whole: %v %v", done, subscriptions, last, err)
		}
		var line struct {
			Subscription int
			Message      struct{ Seq int }
			OK           bool
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.Subscription > 0 && line.Message.Seq != last[line.Subscription]+1 {
			t.Fatalf("%v: %.200s after %d", err, text, last[line.Subscription])
		}
		if line.Subscription > 0 {
			if last[line.Subscription] = line.Message.Seq; line.Message.Seq == old+later {
				done++
			}
		}
	}
	<-posted
}

package external

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// model is a server that gives its replies in their order, the last one for ever.
type model struct {
	t       testing.TB
	replies []http.HandlerFunc

	mu     sync.Mutex
	asked  []string // bodies
	header http.Header
	waits  []time.Duration
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	n := len(m.asked)
	m.asked = append(m.asked, r.Method+" "+r.URL.Path+" "+string(body))
	m.header = r.Header
	m.mu.Unlock()
	m.replies[min(n, len(m.replies)-1)](w, r)
}

// count returns how many requests came.
func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

// newModel returns a planner that asks a server with these replies. It does not wait.
func newModel(t testing.TB, c Config, replies ...http.HandlerFunc) (*Planner, *model) {
	m := &model{t: t, replies: replies}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	c.Kind, c.URL, c.Model, c.Logger = OpenAI, s.URL+"/v1", "m", quiet()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	p := New(c)
	t.Cleanup(p.Close)
	p.asker.(*chat).wait = func(_ context.Context, d time.Duration) { m.waits = append(m.waits, d) }
	return p, m
}

// text is the reply of a server that made a text.
func text(content, finish string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		b, _ := json.Marshal(map[string]any{"id": "1", "choices": []any{map[string]any{"index": 0, "finish_reason": finish,
			"message": map[string]any{"role": "assistant", "content": content}}}})
		_, _ = w.Write(b)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func raw(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// TestChatRequest has every member of a request.
func TestChatRequest(t *testing.T) {
	pr := newProject(t, `{"schema_version":1,"ai":{"max_output_tokens":7}}`)
	p, m := newModel(t, Config{Key: "k"}, text(unknownIntent, "stop"))
	if _, f := p.Extract(context.Background(), pr.Project, "x"); f != nil {
		t.Fatal(f)
	}
	const input = `{\"user_input\":\"x\",\"files\":[],\"markers\":[],\"toolchain\":null}`
	words, _ := json.Marshal(instructions(extractIntent))
	want := `POST /v1/chat/completions {"model":"m","messages":[{"role":"system","content":` + string(words) + `},{"role":"user","content":"` + input + `"}],` +
		`"temperature":0,"stream":false,"response_format":{"type":"json_object"},"max_tokens":7}`
	if len(m.asked) != 1 || m.asked[0] != want {
		t.Errorf("%s\nwant %s", m.asked, want)
	}
	if m.header.Get("Authorization") != "Bearer k" || m.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", m.header)
	}
}

// TestChatReplies has every status, and what an answer can be. Requests that are refused for now
// are made again after 1, 2 and 4 seconds, or when the server wants it, at most 30 seconds later.
func TestChatReplies(t *testing.T) {
	ok := text(unknownIntent, "stop")
	f := func(want string, asked int, waits string, replies ...http.HandlerFunc) {
		t.Helper()
		pr := newProject(t, "")
		p, m := newModel(t, Config{}, replies...)
		_, f := p.Extract(context.Background(), pr.Project, "x")
		if code(f) != want || m.count() != asked || fmt.Sprint(m.waits) != waits {
			t.Errorf("%s after %d requests, waits %v; want %s after %d, %s", code(f), m.count(), m.waits, want, asked, waits)
		}
		if m.header.Get("Authorization") != "" {
			t.Error("a key was sent, and there is none")
		}
	}
	f("ok", 1, "[]", ok)
	f("AI-001 planner: status 401", 1, "[]", status(401))
	f("AI-001 planner: status 403", 1, "[]", status(403))
	f("AI-002 planner: status 429", 4, "[1s 2s 4s]", status(429))
	f("AI-003 planner: status 500", 4, "[1s 2s 4s]", status(500))
	f("AI-003 planner: status 503", 4, "[5s 2s 4s]", status(503, "Retry-After", "5"), status(503))
	f("AI-002 planner: status 429", 4, "[30s 30s 30s]", status(429, "Retry-After", "3000"))
	f("ok", 4, "[30s 30s 1s]", status(429, "Retry-After", "30"), status(429, "Retry-After", "31"), status(500, "Retry-After", "1"), ok)
	f("AI-002 planner: status 429", 4, "[1s 2s 4s]", status(429, "Retry-After", "soon"))
	f("ok", 3, "[1s 2s]", status(429), status(500), ok)
	f("ok", 4, "[1s 2s 4s]", status(429), status(429), status(429), ok)
	for _, s := range []int{201, 204, 301, 302, 307, 308, 400, 404, 418} {
		f("AI-003 planner: status "+strconv.Itoa(s), 1, "[]", status(s, "Location", "http://127.0.0.1:1/"))
	}
	hangUp := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	f("AI-003 planner: cannot be reached", 4, "[1s 2s 4s]", hangUp)
	f("ok", 2, "[1s]", hangUp, ok)
	f("AI-003 planner: cannot be reached", 4, "[1s 2s 4s]", func(w http.ResponseWriter, _ *http.Request) { // the body breaks off
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	})
	f("AI-004 answer: cut off at max_output_tokens", 1, "[]", text(unknownIntent, "length"))
	f("AI-004 answer: more than 4 MiB", 1, "[]", raw(strings.Repeat(" ", maxAnswer+1)))
	f("AI-005 answer: unexpected end of input at offset 4194304", 2, "[]", raw(strings.Repeat(" ", maxAnswer)))
	f("AI-005 answer: unexpected character 'S' at offset 0", 2, "[]", text("Sure! "+unknownIntent, "stop"))
	f("AI-005 answer: unexpected character '`' at offset 0", 2, "[]", text("```json\n"+unknownIntent+"\n```", "stop"))
	f("AI-005 answer: result: no object", 2, "[]", text("[]", "stop"))
	f("AI-005 answer: unexpected end of input at offset 0", 2, "[]", text("", "stop"))
	f("AI-005 answer: answer: no object", 2, "[]", raw("[]"))
	f("AI-005 answer: choices: no array", 2, "[]", raw("{}"))
	f("AI-005 answer: choices: no object", 2, "[]", raw(`{"choices":[]}`))
	f("AI-005 answer: message: no object", 2, "[]", raw(`{"choices":[{}]}`))
	f("AI-005 answer: content: no string", 2, "[]", raw(`{"choices":[{"message":{"content":null}}]}`))
	f("ok", 2, "[]", raw("{"), ok)
	f("SEC-003 planner: in its answer", 1, "[]", text(`{"x":"AKIAAAAAAAAAAAAAAAAA"}`, "stop"))
}

// TestChatEnds: the time limit of the project, and an abort, end a request that is not answered.
func TestChatEnds(t *testing.T) {
	pr := newProject(t, `{"schema_version":1,"limits":{"ai_timeout_seconds":1}}`)
	p, m := newModel(t, Config{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if _, f := p.Extract(context.Background(), pr.Project, "x"); code(f) != "AI-003 planner: no answer in time" || m.count() > 1 {
		t.Errorf("%v after %d requests", f, m.count())
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, _ = newModel(t, Config{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	pr.Config.AITimeout = 3600
	if _, f := p.Extract(ctx, pr.Project, "x"); code(f) != "IPC-010 " {
		t.Error(f)
	}
	// An abort ends a wait too.
	busy, n := newModel(t, Config{}, status(429))
	ctx, cancel = context.WithCancel(context.Background())
	busy.asker.(*chat).wait = func(ctx context.Context, d time.Duration) {
		cancel()
		sleep(ctx, time.Hour)
	}
	if _, f := busy.Extract(ctx, pr.Project, "x"); code(f) != "IPC-010 " || n.count() > 2 {
		t.Errorf("%v after %d requests", f, n.count())
	}
}

// TestKeyStaysAtHome: a redirection takes the key nowhere.
func TestKeyStaysAtHome(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	pr := newProject(t, "")
	p, _ := newModel(t, Config{Key: "k"}, status(307, "Location", other.URL))
	if _, f := p.Extract(context.Background(), pr.Project, "x"); code(f) != "AI-003 planner: status 307" || reached {
		t.Errorf("%v, reached: %v", f, reached)
	}
}

// TestModelOfProject: a project names the model if the operator leaves that to projects.
func TestModelOfProject(t *testing.T) {
	pr := newProject(t, `{"schema_version":1,"ai":{"model":"own"}}`)
	p, m := newModel(t, Config{Cache: Off}, text(unknownIntent, "stop"))
	for _, want := range []string{"m", "own"} {
		if _, f := p.Extract(context.Background(), pr.Project, "x"); f != nil || !strings.Contains(m.asked[len(m.asked)-1], `{"model":"`+want+`",`) {
			t.Errorf("%v, not %s: %s", f, want, m.asked)
		}
		p.cfg.Model = ""
	}
}

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/obs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Tokens of tests.
const (
	viewToken = "a token of viewers"
	opToken   = "a token of operators"
)

// hostile runs where text is taken for markup.
const hostile = `"><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'`

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// rig is a console over a source in memory.
type rig struct {
	t testing.TB
	*Console
	clock *clock
	log   *bytes.Buffer

	mu       sync.Mutex
	filter   ProcessFilter // of the last list
	ended    []string      // processes that were terminated
	overview obs.Overview
	subs     []*fakeSub
	refuse   error // of the next subscription
	cluster  obs.Cluster
	unready  error
}

// fakeSub is a subscription that tests feed.
type fakeSub struct {
	types  []string
	events chan Event
	closed chan struct{}
}

var errNoMore = errors.New("no more")

func (s *fakeSub) Next(ctx context.Context) (Event, error) {
	select {
	case e, ok := <-s.events:
		if !ok {
			return Event{}, errNoMore
		}
		return e, nil
	case <-ctx.Done():
		return Event{}, ctx.Err()
	}
}

func (s *fakeSub) Close() { close(s.closed) }

// newRig returns a console of a loopback address, changed by some functions.
func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, log: new(bytes.Buffer)}
	r.overview = obs.Overview{Version: "v1", UptimeSeconds: 10, Ready: true, Processes: map[string]int64{"RUNNING": 2}, Connections: map[string]int64{"ipc": 3},
		StoreMode: "always", LagRecords: 4, Latencies: []obs.Latency{{Protocol: "ipc", Method: hostile, Count: 20, Errors: 1, P50: 1e-5, P99: 2e-3}}}
	r.cluster = clusterOf(2)
	c := Config{Loopback: true, Version: "v1", Logger: slog.New(slog.NewTextHandler(r.log, nil)), now: r.clock.now, Source: r.source()}
	for _, f := range change {
		f(&c)
	}
	var err error
	if r.Console, err = New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func withTokens(c *Config) { c.ViewerToken, c.OperatorToken = viewToken, opToken }

// source has a little of everything, under hostile names.
func (r *rig) source() Source {
	at := r.clock.at.Add(-90 * time.Second)
	return Source{
		Overview: func() obs.Overview {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.overview
		},
		Processes: func(f ProcessFilter) ProcessList {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.filter = f
			l := ProcessList{Total: 10_000, Scanned: f.Limit, Next: f.After + uint64(f.Limit), Processes: []Process{}}
			for range f.Limit {
				l.Processes = append(l.Processes, Process{PID: hostile, State: "RUNNING", UserID: hostile})
			}
			return l
		},
		Process: func(_ context.Context, pid string) (ProcessDetail, error) {
			if pid != hostile {
				return ProcessDetail{}, fmt.Errorf("%w: process %q", obs.ErrNotFound, pid)
			}
			return ProcessDetail{Process: Process{PID: pid, State: "RUNNING"}, Session: &Session{CurrentStage: hostile, StageOrder: []string{"plan", hostile},
				Edges: map[string]int64{"plan->" + hostile: 3}, Envelope: envelopeOf(hostile)}}, nil
		},
		Terminate: func(_ context.Context, pid, reason string) error {
			if pid == "gone" {
				return obs.ErrNotFound
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, pid+"|"+reason)
			return nil
		},
		Threads: func(f ThreadFilter) ThreadList {
			return ThreadList{Threads: []Thread{{ID: hostile, Title: hostile, Workspace: f.Workspace, Status: "active", Participants: []string{hostile}, Created: at, Updated: at}},
				Total: 2, Scanned: 1, Next: 7}
		},
		Thread: func(id string, after uint64, limit int) (ThreadDetail, error) {
			d := ThreadDetail{Thread: Thread{ID: id, Title: hostile, Status: "active", Latest: 120, Created: at}, Next: after + uint64(limit), More: after+uint64(limit) < 120}
			for i := range limit {
				d.Messages = append(d.Messages, Message{Seq: after + uint64(i) + 1, Sender: hostile, Body: hostile, At: at, Metadata: json.RawMessage(`{"a":"<b>"}`)})
			}
			return d, nil
		},
		Projects: func() []Project {
			return []Project{{ID: "1", Root: "/" + hostile, State: "Executing"}, {ID: "2", Root: "/b", State: "Idle"}}
		},
		Project: func(id string, _ int) (ProjectDetail, error) {
			return ProjectDetail{Project: Project{ID: id, Root: "/" + hostile, State: "Executing"}, Events: projectEvents()}, nil
		},
		Cancel: func(_ context.Context, id string) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, "project "+id)
			return nil
		},
		Topics: func(int) TopicList { return TopicList{Topics: []Topic{{Name: hostile, Subscribers: 2}}, More: true} },
		Subscribe: func(_ context.Context, types []string) (Subscription, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if err := r.refuse; err != nil {
				r.refuse = nil
				return nil, err
			}
			s := &fakeSub{types: types, events: make(chan Event), closed: make(chan struct{})}
			r.subs = append(r.subs, s)
			return s, nil
		},
		Connections: func() []obs.Connection {
			return []obs.Connection{{ID: "ipc-1", Protocol: "ipc", Peer: hostile, Opened: at, BytesIn: 10, State: "open"}, {ID: "http-1", Protocol: "http", Opened: at.Add(-time.Hour), BytesIn: 99, State: "open"}}
		},
		Drop: func(_ context.Context, id string) error {
			if id == "gone" {
				return obs.ErrNotFound
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, "connection "+id)
			return nil
		},
		Slow: func() obs.SlowLog {
			return obs.SlowLog{ThresholdSeconds: 0.1, Total: 2, Entries: []obs.Slow{{At: at, Method: hostile, Seconds: 1.5}, {At: at, Method: "b", Seconds: 0.2}}}
		},
		Store: func() Store {
			return Store{Mode: "always", Dir: "/" + hostile, Warnings: []string{"storage_full"}, Open: true, Appended: 1234567, LastSnapshotAt: &at, Error: hostile}
		},
		Cluster: func() obs.Cluster {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.cluster
		},
		Standing: func() *obs.Standing {
			r.mu.Lock()
			defer r.mu.Unlock()
			c := &r.cluster
			return &obs.Standing{Cluster: c.Name, Node: c.Node, Role: c.Role, Owner: c.Owner, Index: c.Index}
		},
		Unready: func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.unready
		},
		Settings: func() []Setting {
			return []Setting{{Key: "log.level", Value: "info", Origin: "default", Reload: "live", Help: "least important line"},
				{Key: "store.dir", Value: hostile, Origin: "env X", Reload: "restart", Waiting: true, Help: "directory"}}
		},
	}
}

// request returns a request of a browser of this machine.
func request(method, path string, form url.Values) *http.Request {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	q := httptest.NewRequest(method, path, body)
	q.Host = "localhost:50090"
	if method == "GET" && !strings.Contains(path, "live") && !strings.Contains(path, ".json") {
		q.Header.Set("Accept", "text/html,*/*;q=0.8")
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return q
}

// do answers a request.
func (r *rig) do(q *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.Guard(r).ServeHTTP(w, q)
	return w
}

func (r *rig) get(path string) *httptest.ResponseRecorder { return r.do(request("GET", path, nil)) }

// want checks a status and that the body has a text.
func want(t testing.TB, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), text) {
		t.Errorf("%d, want %d with %q: %.2000s", w.Code, status, text, w.Body)
	}
}

// cutOut returns the text between two others.
func cutOut(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	found, _, _ := strings.Cut(rest, to)
	return found
}

// secretOf returns the secret of the form on a page.
func secretOf(w *httptest.ResponseRecorder) string {
	return cutOut(w.Body.String(), `name="csrf" value="`, `"`)
}

// logIn returns the cookie that a token gets, nil if it gets none.
func (r *rig) logIn(token string) *http.Cookie {
	r.t.Helper()
	form := url.Values{"csrf": {secretOf(r.get(root + "login"))}, "token": {token}, "next": {root + "store"}}
	w := r.do(request("POST", root+"login", form))
	for _, c := range w.Result().Cookies() {
		return c
	}
	return nil
}

func with(q *http.Request, c *http.Cookie) *http.Request {
	q.AddCookie(c)
	return q
}

func bearer(q *http.Request, token string) *http.Request {
	q.Header.Set("Authorization", "Bearer "+token)
	return q
}

// envelopeOf returns an envelope with a history.
func envelopeOf(name string) json.RawMessage {
	text, _ := json.Marshal(map[string]any{
		"raw_input": name, "received_at": "2026-03-01T11:00:00Z", "completed_at": nil,
		"audit": map[string]any{"created_at": "2026-03-01T11:00:01Z",
			"processing_history": []any{map[string]any{"agent": name, "status": "success", "timestamp": "2026-03-01T11:00:03Z", "tokens": 5}, map[string]any{"stage": "plan", "note": name}, name},
			"errors":             []any{map[string]any{"stage": name, "error": "no luck", "at": "2026-03-01T11:00:02Z"}}},
	})
	return text
}

// projectEvents are those of a plan that is being executed.
func projectEvents() (list []json.RawMessage) {
	name, _ := json.Marshal(hostile)
	for i, e := range []string{
		`"PlanProposed","payload":{"plan":{"id":"p1","version":2,"steps":[{"id":"s1","order":1,"type":"file_modify","target":` + string(name) + `},{"id":"s2","order":2,"type":"build"},{"id":"s3","order":3,"type":"build"}]}}`,
		`"StepStarted","payload":{"step_id":"s1"}`,
		`"StepCompleted","payload":{"step_id":"s1","ok":true,"duration_ms":12}`,
		`"StepStarted","payload":{"step_id":"s2"}`,
		`"StepCompleted","payload":{"step_id":"s2","ok":false}`,
		`"StepStarted","payload":{"step_id":"s3"}`,
		`"LogEntry","payload":{"message":` + string(name) + `}`,
	} {
		list = append(list, json.RawMessage(fmt.Sprintf(`{"stream_seq":%d,"sent_at":"2026-03-01T11:00:00Z","event":%s}`, i+1, e)))
	}
	return append(list, json.RawMessage(`no JSON`))
}

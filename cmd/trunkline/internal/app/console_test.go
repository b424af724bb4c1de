package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/codec/transcode"
	"trunkline/engine/obs"
	"trunkline/engine/threadstore"
	"trunkline/handlers/console"
	"trunkline/handlers/ipc/ipcclient"
)

// packed returns JSON as MessagePack.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fill makes processes p1 to pn, the first of which has a session of two stages.
func fill(t *testing.T, c *ipcclient.Conn, n int) {
	t.Helper()
	for i := range n {
		p := ipcclient.CreateProcess{PID: fmt.Sprint("p", i+1), UserID: fmt.Sprint("u", i%10)}
		if _, err := c.CreateProcess(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.InitializeSession(t.Context(), ipcclient.InitializeSession{ProcessID: "p1",
		PipelineConfig: packed(t, `{"name":"n","agents":[{"name":"plan","default_next":"work"},{"name":"work"}]}`),
		Envelope:       packed(t, `{"raw_input":"what to do <b>","received_at":"2026-03-01T11:00:00Z"}`)})
	if err != nil {
		t.Fatal(err)
	}
	report := ipcclient.ReportAgentResult{ProcessID: "p1", AgentName: "plan", Success: true, Output: packed(t, `{"ok":true}`)}
	if _, err = c.ReportAgentResult(t.Context(), report); err != nil {
		t.Fatal(err)
	}
}

// TestConsoleShowsTheServer: the pages have what the endpoints hold.
func TestConsoleShowsTheServer(t *testing.T) {
	i := start(t, "exacta.listen_addr=unix://"+filepath.Join(t.TempDir(), "s"), "threads.public_url=http://user:geheim@localhost/")
	fill(t, i.dial(i.addr("kernel ipc")), 60)
	page := func(path string, into any) {
		t.Helper()
		status, body := i.get("/console/" + path)
		if err := json.Unmarshal([]byte(body), into); status != 200 || err != nil {
			t.Fatalf("%s: %d %v %.500s", path, status, err, body)
		}
	}
	var overview struct {
		Ready     bool
		Processes map[string]int64
	}
	if page("overview.json", &overview); !overview.Ready || overview.Processes["READY"] != 60 {
		t.Errorf("overview %+v", overview)
	}
	var list console.ProcessList
	if page("processes.json", &list); len(list.Processes) != 50 || list.Total != 60 || list.Processes[0].Stage != "work" || list.Next == 0 {
		t.Errorf("%d processes of %d, next %d, first %+v", len(list.Processes), list.Total, list.Next, list.Processes[0])
	}
	if page(fmt.Sprint("processes.json?after=", list.Next), &list); len(list.Processes) != 10 || list.Processes[9].PID != "p60" || list.Next != 0 {
		t.Errorf("%d further processes, next %d", len(list.Processes), list.Next)
	}
	if page("processes.json?user=u1&pid=p5", &list); len(list.Processes) != 1 || list.Processes[0].PID != "p52" || list.Scanned != 60 {
		t.Errorf("processes of u1: %+v", list)
	}
	if page("processes.json?state=ZOMBIE", &list); len(list.Processes) != 0 || list.Processes == nil {
		t.Errorf("zombies: %+v", list)
	}
	var one console.ProcessDetail
	page("process.json?pid=p1", &one)
	if s := one.Session; s == nil || s.CurrentStage != "work" || len(s.StageOrder) != 2 || s.Edges["plan->work"] != 1 || !strings.Contains(string(s.Envelope), `what to do`) {
		t.Errorf("session %+v", s)
	}
	one = console.ProcessDetail{}
	if page("process.json?pid=p2", &one); one.Session != nil || one.UserID != "u1" {
		t.Errorf("process %+v", one)
	}
	if status, body := i.get("/console/process.json?pid=nobody"); status != 404 {
		t.Errorf("a process that is not there: %d %s", status, body)
	}
	var topics console.TopicList
	if page("topics.json", &topics); len(topics.Topics) != 4 || topics.Topics[0].Name != "process.created" || topics.Topics[0].Subscribers != 0 {
		t.Errorf("topics %+v", topics)
	}
	if status, body := i.get("/console/topic?type=process.terminated"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if page("topics.json", &topics); topics.Topics[2].Subscribers != 1 {
		t.Errorf("topics %+v", topics)
	}
	subscribers := i.dial(i.addr("kernel ipc"))
	for range 2 {
		if _, err := subscribers.Subscribe(t.Context(), ipcclient.Subscribe{EventPatterns: []string{"process.*"}}); err != nil {
			t.Fatal(err)
		}
	}
	if page("topics.json", &topics); len(topics.Patterns) != 1 ||
		topics.Patterns[0] != (console.Topic{Name: "process.*", Subscribers: 2}) {
		t.Errorf("patterns %+v", topics.Patterns)
	}
	if _, body := i.get("/console/topics"); !strings.Contains(body,
		`<th scope="row">process.* <span class="soft">(pattern)</span></th><td class="n">2</td>`) {
		t.Errorf("patterns are not on the page: %s", body)
	}
	for _, path := range []string{"/cluster", "/console/cluster", "/console/cluster.json"} {
		if status, body := i.get(path); status != 404 || !strings.Contains(body,
			`{"error":"this server is not a node of a cluster: cluster.mode is off"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	var store console.Store
	if page("store.json", &store); store.Mode != "memory" {
		t.Errorf("store %+v", store)
	}
	if _, body := i.get("/console/settings.json?q=public_url"); strings.Contains(body, "geheim") || !strings.Contains(body, "flag --set") {
		t.Errorf("settings %s", body)
	}
	for _, name := range []string{"threads.json", "projects.json", "help.json"} {
		page(name, new(any))
	}
	if status, _ := i.get("/console/project.json?id=x"); status != 404 {
		t.Errorf("a project that is not open: %d", status)
	}
	if status, body := i.get("/"); status != 404 {
		t.Errorf("a program is led from /: %d %s", status, body)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
}

// post sends a form to the console with a token, and returns status and body.
func (i *instance) post(path, token string, form url.Values) (int, string) {
	i.t.Helper()
	return i.submit("POST", path, token, form)
}

// submit is post with any method. An empty token is none.
func (i *instance) submit(method, path, token string, form url.Values) (int, string) {
	i.t.Helper()
	q, err := http.NewRequest(method, "http://"+i.addr("admin")+path, strings.NewReader(form.Encode()))
	if err != nil {
		i.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// tokenFiles returns settings with both tokens, which it writes.
func tokenFiles(t *testing.T) []string {
	t.Helper()
	var set []string
	for name, key := range map[string]string{"viewer-0123456789": "admin.console_token_file", "operator-0123456789": "admin.console_operator_token_file"} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		set = append(set, key+"="+file)
	}
	return set
}

// TestConsoleTerminates: an operator ends a process, which survives the server, and a viewer does
// not.
func TestConsoleTerminates(t *testing.T) {
	set := append(tokenFiles(t), "store.mode=always", "store.dir="+filepath.Join(t.TempDir(), "d"))
	i := start(t, set...)
	c := i.dial(i.addr("kernel ipc"))
	fill(t, c, 2)
	sub, err := c.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"process.terminated"}})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := i.get("/console/processes.json"); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	form := url.Values{"pid": {"p1"}, "reason": {"by hand"}}
	if status, body := i.post("/console/process/terminate", "viewer-0123456789", form); status != 403 {
		t.Errorf("a viewer: %d %s", status, body)
	}
	if status, body := i.post("/console/process/terminate", "operator-0123456789", form); status != 200 {
		t.Fatalf("an operator: %d %s", status, body)
	}
	if e, err := sub.Next(t.Context()); err != nil || !strings.Contains(e.Payload, "by hand") {
		t.Errorf("event %+v %v", e, err)
	}
	if status, body := i.post("/console/process/terminate", "operator-0123456789", url.Values{"pid": {"nobody"}}); status != 404 {
		t.Errorf("a process that is not there: %d %s", status, body)
	}
	if status, _ := i.post("/metrics", "operator-0123456789", form); status != 405 {
		t.Errorf("POST beside the console: %d", status)
	}
	i.await(`msg="console change" action=terminate_process pid=p1 reason="by hand" by=operator`)
	if err := i.end(); err != nil {
		t.Fatal(err)
	}
	i = start(t, set...)
	if p, err := i.dial(i.addr("kernel ipc")).GetProcess(t.Context(), "p1"); err != nil || p.State != "TERMINATED" {
		t.Errorf("after a restart %+v %v", p, err)
	}
}

// TestConsoleCancels: an operator cancels the plan of a project that waits for approval.
func TestConsoleCancels(t *testing.T) {
	i := start(t, append(tokenFiles(t), "exacta.listen_addr=127.0.0.1:0", "exacta.loops=1")...)
	p := i.dialProjects("tcp", i.addr("exacta"))
	p.open(newProject(t))
	cancel := func(id string) (int, string) {
		t.Helper()
		return i.post("/console/project/cancel", "operator-0123456789", url.Values{"id": {id}})
	}
	if status, body := cancel(p.id); status != 503 || !strings.Contains(body, "nothing goes on") {
		t.Errorf("an idle project: %d %s", status, body)
	}
	intent := p.must("ExtractIntent", `"user_input":"create file a.txt"`)["intent"].(map[string]any)
	p.must("GeneratePlan", field("intent_id", intent["id"]))
	if status, body := cancel(p.id); status != 200 {
		t.Fatalf("a plan that waits: %d %s", status, body)
	}
	i.token = "viewer-0123456789"
	open := i.exactaProjects()
	if len(open) != 1 || open[0].State != "Idle" {
		t.Errorf("after the cancellation %+v", open)
	}
	if status, body := cancel("nothing"); status != 404 {
		t.Errorf("a project that is not open: %d %s", status, body)
	}
}

// exactaProjects returns the open projects, as the page of projects has them.
func (i *instance) exactaProjects() []struct{ State string } {
	i.t.Helper()
	var list struct{ Projects []struct{ State string } }
	if _, body := i.get("/exacta/projects"); json.Unmarshal([]byte(body), &list) != nil {
		i.t.Fatal(body)
	}
	return list.Projects
}

// TestConsoleThreads: threads of all workspaces are listed, newest first, with their messages.
func TestConsoleThreads(t *testing.T) {
	cfg := settings(t)
	s, err := bind(cfg, Options{Build: obs.ReadBuild("v7", "rev"), Logger: slog.New(slog.DiscardHandler), Banner: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.abort)
	p := s.console
	if _, err := p.process(t.Context(), "x"); !errors.Is(err, errNotReady) || !errors.Is(p.unready(), errNotReady) {
		t.Errorf("before the store was read: %v, %v", err, p.unready())
	}
	if err := s.first().kernel.recover(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	engine, now := s.first().kernel.rt.Threads, time.Now().UnixMilli()
	var ids []string
	for i := range 5 {
		boss := threadstore.Actor{Workspace: fmt.Sprint("w", i%2), Agent: "boss", Rank: threadstore.Coordinator}
		id, _, refused := engine.Create(&boss, &threadstore.NewThread{Title: []byte("title"), Participants: [][]byte{[]byte("boss")}}, now)
		if refused.Code != threadstore.OK {
			t.Fatal(refused)
		}
		ids = append(ids, id)
		for n := range 3 {
			if _, refused = engine.Post(&boss, []byte(id), &threadstore.Post{Body: fmt.Appendf(nil, "message %d", n+1), Key: fmt.Append(nil, n)}, now); refused.Code != threadstore.OK {
				t.Fatal(refused)
			}
		}
	}
	f := func(filter console.ThreadFilter, scanned int, next uint64, want ...string) {
		t.Helper()
		list := p.threads(filter)
		var got []string
		for _, l := range list.Threads {
			got = append(got, l.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || list.Scanned != scanned || list.Next != next || list.Total != 5 {
			t.Errorf("%+v: %v, scanned %d, next %d; want %v, %d, %d", filter, got, list.Scanned, list.Next, want, scanned, next)
		}
	}
	f(console.ThreadFilter{Limit: 10, Scan: 10}, 5, 0, ids[4], ids[3], ids[2], ids[1], ids[0])
	f(console.ThreadFilter{Limit: 2, Scan: 10}, 2, 4, ids[4], ids[3])
	f(console.ThreadFilter{Limit: 2, Scan: 10, Before: 4}, 2, 2, ids[2], ids[1])
	f(console.ThreadFilter{Limit: 5, Scan: 5}, 5, 0, ids[4], ids[3], ids[2], ids[1], ids[0])
	f(console.ThreadFilter{Limit: 10, Scan: 3, Workspace: "w1"}, 3, 3, ids[3])
	f(console.ThreadFilter{Limit: 10, Scan: 10, Status: "closed"}, 5, 0)
	d, err := p.thread(ids[1], 1, 1)
	if err != nil || len(d.Messages) != 1 || d.Messages[0].Body != "message 2" || d.Messages[0].Sender != "boss" || d.Messages[0].Seq != 2 || d.Next != 2 || !d.More || d.Latest != 3 {
		t.Errorf("%+v %v", d, err)
	}
	if _, err = p.thread("nothing", 0, 1); !errors.Is(err, obs.ErrNotFound) {
		t.Errorf("a thread that is not there: %v", err)
	}
}

// TestConsoleTokens: a token file that cannot be read, or is short, ends the start.
func TestConsoleTokens(t *testing.T) {
	f := func(ok bool, set ...string) {
		t.Helper()
		s, err := bind(settings(t, set...), Options{Build: obs.ReadBuild("v7", "rev"), Logger: slog.New(slog.DiscardHandler), Banner: io.Discard})
		if (err == nil) != ok {
			t.Errorf("%v: %v", set, err)
		}
		if err == nil {
			s.abort()
		}
	}
	token := func(text string) string {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	f(false, "admin.console_token_file="+token("123456789012345\n"))
	f(true, "admin.console_token_file="+token("1234567890123456\n"))
	f(false, "admin.console_operator_token_file=/nothing/here")
	f(false, "admin.console_token_file="+token("1234567890123456"), "admin.console_operator_token_file="+token("1234567890123456"))
	f(true, tokenFiles(t)...)
}

// TestConsoleScan: a page of processes looks at no more of them than is asked for.
func TestConsoleScan(t *testing.T) {
	cfg := settings(t)
	s, err := bind(cfg, Options{Build: obs.ReadBuild("v7", "rev"), Logger: slog.New(slog.DiscardHandler), Banner: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.abort)
	if err := s.first().kernel.recover(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	c, err := s.console.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill(t, c, 5)
	f := func(filter console.ProcessFilter, scanned int, next uint64, want string) {
		t.Helper()
		list := s.console.processes(filter)
		var got []string
		for _, p := range list.Processes {
			got = append(got, p.PID)
		}
		if strings.Join(got, " ") != want || list.Scanned != scanned || list.Next != next {
			t.Errorf("%+v: %v, scanned %d, next %d; want %s, %d, %d", filter, got, list.Scanned, list.Next, want, scanned, next)
		}
	}
	f(console.ProcessFilter{Limit: 5, Scan: 5}, 5, 0, "p1 p2 p3 p4 p5")
	f(console.ProcessFilter{Limit: 4, Scan: 5}, 4, 4, "p1 p2 p3 p4")
	f(console.ProcessFilter{Limit: 5, Scan: 4, PID: "5"}, 4, 4, "")
	f(console.ProcessFilter{Limit: 5, Scan: 4, PID: "5", After: 4}, 1, 0, "p5")
	f(console.ProcessFilter{Limit: 1, Scan: 5, PID: "2"}, 2, 2, "p2")
}

package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/handlers/exacta"
)

// message is what a server sends.
type message struct {
	Type      string
	Event     string
	RequestID *string `json:"request_id"`
	OK        bool
	Result    map[string]any
	Error     *struct{ Code string }
	Payload   map[string]any
	StreamSeq uint64 `json:"stream_seq"`
}

// client is one of the library.
type client struct {
	t   testing.TB
	ctx context.Context
	*websocket.Conn
	events []message
}

// connect opens a connection to a URL.
func connect(t testing.TB, url string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		t.Fatal(err, resp)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(-1)
	return &client{t: t, ctx: ctx, Conn: ws}
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.Write(c.ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// next reads a message.
func (c *client) next() message {
	c.t.Helper()
	_, text, err := c.Read(c.ctx)
	if err != nil {
		c.t.Fatalf("%v, after %v", err, c.events)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// ask sends a request and returns its result; events before it are kept.
func (c *client) ask(n int, command, payload string) map[string]any {
	c.t.Helper()
	c.send(request(n, command, payload))
	for {
		m := c.next()
		if m.Type == "event" {
			c.events = append(c.events, m)
			continue
		}
		if m.RequestID == nil || *m.RequestID != id(n) || !m.OK {
			c.t.Fatalf("%s: %+v %+v", command, m, m.Error)
		}
		return m.Result
	}
}

// until reads events up to one.
func (c *client) until(event string, member, value string) {
	c.t.Helper()
	for {
		m := c.next()
		c.events = append(c.events, m)
		if m.Event == event && (member == "" || m.Payload[member] == value) {
			return
		}
	}
}

func subscribe(n int, project, fields string) string {
	return fmt.Sprintf(`{"ipc_version":"1.0","type":"subscribe","request_id":"%s","sent_at":"2026-01-15T00:00:00Z","project_id":"%s"%s}`, id(n), project, fields)
}

// run makes and executes a plan.
func (c *client) run(n int, project, input string) {
	c.t.Helper()
	c.approve(n, project, c.plan(n, project, input))
}

func (c *client) plan(n int, project, input string) (plan string) {
	c.t.Helper()
	of := `"project_id":"` + project + `",`
	intent := c.ask(n, "ExtractIntent", of+`"user_input":`+quote(input))["intent"].(map[string]any)["id"].(string)
	return c.ask(n+1, "GeneratePlan", of+`"intent_id":"`+intent+`"`)["plan_id"].(string)
}

func (c *client) approve(n int, project, plan string) {
	c.t.Helper()
	of := `"project_id":"` + project + `","plan_id":"` + plan + `"`
	c.ask(n+2, "ApprovePlan", of)
	c.ask(n+3, "ExecutePlan", of)
	c.until("StateChanged", "to", "Completed")
}

// TestFlow: a plan over a WebSocket, and another connection that goes on where one was lost,
// without a gap and without anything twice (exacta §3.5, E12).
func TestFlow(t *testing.T) {
	r, dir := start(t, exacta.Config{}, nil), newProject(t)
	url := "ws://" + r.addr + wsPath
	one := connect(t, url)
	project := one.ask(1, "OpenProject", strings.Repeat("\n", 200_000)+`"path":`+quote(dir))["project_id"].(string)
	one.run(10, project, `Append "世界" to a.txt`)
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "a\n世界\n" {
		t.Fatalf("%q, %v", text, err)
	}
	seen := one.events[len(one.events)/2].StreamSeq
	last := one.events[len(one.events)-1].StreamSeq
	_ = one.CloseNow()

	two := connect(t, url)
	two.send(subscribe(1, project, fmt.Sprintf(`,"after_stream_seq":%d`, seen)))
	if m := two.next(); m.Type != "ack" || !m.OK || m.Result["replayed"] != float64(last-seen) {
		t.Fatalf("%+v", m)
	}
	for want := seen + 1; want <= last; want++ {
		if m := two.next(); m.StreamSeq != want {
			t.Fatalf("event %d, want %d", m.StreamSeq, want)
		}
	}
	three := connect(t, url)
	three.run(20, project, `Append "more" to a.txt`)
	for want := last + 1; want <= three.events[len(three.events)-1].StreamSeq; want++ {
		if m := two.next(); m.StreamSeq != want {
			t.Fatalf("event %d, want %d", m.StreamSeq, want)
		}
	}
	three.send(request(30, "ApplyDiffSet", `"project_id":"`+project+`","diffs":["NO_CHANGES_REQUIRED"]`))
	if m := three.next(); m.OK || m.Error.Code != "CFG-002" {
		t.Errorf("%+v, want CFG-002: debug_commands is off", m)
	}
}

// TestAClosedConnectionCancelsNothing: what was read runs (exacta §2.6).
func TestAClosedConnectionCancelsNothing(t *testing.T) {
	r, dir := start(t, exacta.Config{}, nil), newProject(t)
	url := "ws://" + r.addr + wsPath
	one := connect(t, url)
	project := one.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)
	plan := one.plan(10, project, `Append "x" to a.txt`)
	for n, command := range []string{"ApprovePlan", "ExecutePlan"} {
		one.send(request(20+n, command, `"project_id":"`+project+`","plan_id":"`+plan+`"`))
	}
	_ = one.Close(websocket.StatusNormalClosure, "") // its frame is behind the requests
	two := connect(t, url)
	two.send(subscribe(1, project, `,"after_stream_seq":0`))
	two.until("StateChanged", "to", "Completed")
	two.ask(21, "ExecutePlan", `"project_id":"`+project+`","plan_id":"`+plan+`"`) // the stored answer
}

// TestManySubscribers: all get the same events, in the same order, without a gap.
func TestManySubscribers(t *testing.T) {
	r, dir := start(t, exacta.Config{}, nil), newProject(t)
	url := "ws://" + r.addr + wsPath
	one := connect(t, url)
	project := one.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)
	var group sync.WaitGroup
	for n := range 50 {
		c := connect(t, url)
		c.send(subscribe(n, project, `,"after_stream_seq":0`))
		if m := c.next(); m.Type != "ack" || !m.OK {
			t.Fatalf("%+v", m)
		}
		group.Go(func() {
			for want := uint64(1); ; want++ {
				var m message
				_, text, err := c.Read(c.ctx)
				if err == nil {
					err = json.Unmarshal(text, &m)
				}
				if err != nil || m.StreamSeq != want {
					t.Errorf("event %d, want %d: %v", m.StreamSeq, want, err)
					return
				}
				if m.Payload["to"] == "Completed" && want > 60 {
					return
				}
			}
		})
	}
	for n := range 4 {
		one.run(10*(n+1), project, `Append "x" to a.txt`)
	}
	group.Wait()
}

// TestOverrun: a connection that cannot go on without a gap is closed with 1013 (exacta §2.5).
func TestOverrun(t *testing.T) {
	r := start(t, exacta.Config{}, func(c *config) { c.open = func(*connection.Port) connection.Session { return new(lost) } })
	c := connect(t, "ws://"+r.addr+wsPath)
	if _, _, err := c.Read(c.ctx); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("%v, want 1013", err)
	}
}

// lost is a session that cannot go on.
type lost struct{ echo }

func (*lost) Load() connection.Load { return connection.Load{Until: 1} }

// TestSlowSubscriber: one that does not read holds up no plan, and is closed with 1013 when its
// next event is not kept any more; what it got has no gap (exacta §2.5).
func TestSlowSubscriber(t *testing.T) {
	const plans, files = 26, 4
	r, dir := start(t, exacta.Config{Limits: projects.Limits{JournalEvents: 100}}, nil), newProject(t)
	input := make([]string, files)
	for i := range input {
		name := fmt.Sprintf("f%d.txt", i)
		input[i] = `replace "aaa" with "bbb" in ` + name
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(strings.Repeat("x", 240)+"aaa\n", 190)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, "ws://"+r.addr+wsPath)
	project := c.ask(1, "OpenProject", `"path":`+quote(dir))["project_id"].(string)
	slow := open(t, r.addr)
	_ = slow.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	slow.send(masked(fin|opText, []byte(subscribe(1, project, ""))))
	slow.want(`"type":"ack"`)

	of := `"project_id":"` + project + `",`
	intent := c.ask(2, "ExtractIntent", of+`"user_input":`+quote(strings.Join(input, "; ")))["intent"].(map[string]any)["id"].(string)
	for n := range plans { // of 370 kB each
		c.ask(10+n, "GeneratePlan", of+`"intent_id":"`+intent+`"`)
	}
	last := c.events[len(c.events)-1].StreamSeq
	for want := uint64(2); ; want++ {
		first, payload := slow.frame()
		for first&fin == 0 {
			var more []byte
			if first, more = slow.frame(); first == fin|opClose { // within a message
				payload = nil
			}
			payload = append(payload, more...)
		}
		if first == fin|opClose {
			if code := binary.BigEndian.Uint16(payload); code != 1013 {
				t.Errorf("closed with %d, want 1013", code)
			}
			break
		}
		var m message
		if err := json.Unmarshal(payload, &m); err != nil || m.StreamSeq != want || want == last {
			t.Fatalf("event %d of %d, want %d: %v", m.StreamSeq, last, want, err)
		}
	}
}

// TestForeignClient: the WebSocket of node, which is none of ours, makes a plan.
func TestForeignClient(t *testing.T) {
	t.Parallel() // it waits
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("program node is not installed")
	}
	args := []string{"-e", "process.exit(typeof WebSocket === 'undefined' ? 1 : 0)"}
	flags := []string{}
	if exec.Command(node, args...).Run() != nil {
		flags = []string{"--experimental-websocket", "--no-warnings"} // before node 22
		if exec.Command(node, append(flags, args...)...).Run() != nil {
			t.Skip("program node of version 20.10 or later is not installed")
		}
	}
	const token = "0123456789abcdef"
	r, dir := start(t, exacta.Config{AuthToken: token}, nil), newProject(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append(flags, filepath.Join("testdata", "client.js"), "ws://"+r.addr+wsPath, token, dir)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if want := "OpenProject ExtractIntent GeneratePlan ApprovePlan ExecutePlan Completed close 1000\n"; err != nil || string(out) != want {
		t.Errorf("%v, %s, want %s", err, out, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || !strings.HasSuffix(string(text), "from node\n") {
		t.Errorf("%q, %v", text, err)
	}
}

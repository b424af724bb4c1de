package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/bus"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/toolhost"
)

// eventText makes texts of events.
func eventText(dst []byte, eventType, source string, payload []byte) []byte {
	return fmt.Appendf(dst, "%s %s %s", eventType, source, payload)
}

// asleep is an owner that does not wake its connection.
type asleep struct{}

func (*asleep) Wake() {}

func TestEventsOnABus(t *testing.T) {
	var c toolhost.Config
	b := bus.New(bus.Config{StreamBufferEvents: 2, EventBody: eventText})
	defer b.Close()
	c.Events, c.EventsWanted = emitTo(b), b.Wants
	c.Events(toolhost.Event{Name: "toolhost.a", Payload: []byte(`{"n":0}`)}) // without a subscriber
	if n := b.Stats().EventsPublished; n != 0 || c.EventsWanted("toolhost.a") {
		t.Errorf("%d events published to nobody, wanted %v", n, c.EventsWanted("toolhost.a"))
	}
	s := b.Subscribe(new(asleep), []string{"toolhost.a"}, 0)
	if !c.EventsWanted("toolhost.a") || c.EventsWanted("toolhost.b") {
		t.Error("what is wanted is not what is subscribed to")
	}
	for n := 1; n < 5; n++ { // two more than the stream takes: the emitter does not wait
		c.Events(toolhost.Event{Name: "toolhost.a", Payload: fmt.Appendf(nil, `{"n":%d}`, n)})
		c.Events(toolhost.Event{Name: "toolhost.b"})
	}
	for _, want := range []string{`toolhost.a toolhost {"n":1}`, `toolhost.a toolhost {"n":2}`} {
		m := s.Pop()
		if m == nil || string(m.Body) != want {
			t.Fatalf("%v, want %s", m, want)
		}
		m.Release()
	}
	if st := b.Stats(); st.DroppedEvents != 2 || st.EventsPublished != 4 {
		t.Errorf("%+v, want 2 of 4 dropped", st)
	}
	b.Subscribe(new(asleep), nil, 0)
	s.Discard()
	if c.EventsWanted("toolhost.a") {
		t.Error("an event is wanted by somebody who left")
	}
}

// everything is every event type of toolhost §4.12.
var everything = strings.Fields(`toolhost.tool.finished toolhost.lease.issued toolhost.lease.consumed toolhost.lease.rejected
	toolhost.breaker.opened toolhost.breaker.half_open toolhost.breaker.closed toolhost.worker.started toolhost.worker.exited
	toolhost.run.opened toolhost.run.closed toolhost.selector.shadow`)

// lines is a connection to the tool server.
type lines struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (i *instance) lines() *lines {
	i.t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(i.addr("toolhost"), "unix://"))
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = conn.Close() })
	return &lines{i.t, conn, bufio.NewReader(conn)}
}

// ask sends a line and returns its reply, which must have this text in it.
func (l *lines) ask(line, want string) string {
	l.t.Helper()
	if _, err := l.conn.Write([]byte(line + "\n")); err != nil {
		l.t.Fatal(err)
	}
	got, err := l.r.ReadString('\n')
	if err != nil || !strings.Contains(got, want) {
		l.t.Fatalf("%s\n got %s %v\nwant %s", line, got, err, want)
	}
	return got
}

// toolRoot is a root with a policy and a plugin with a worker that dies on request.
func toolRoot(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"policies/p.sh": `echo '<NOOP><END>'`,
		"pack/w.sh": `while read -r line; do
			case "$line" in *die*) exit 3;; esac
			echo '{"status":"OK","output_json":"{}"}'
		done`,
		"pack/m.json": `{"toolpack_id":"toolpack.t","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[{"aid":"AID.EXT.v1","name":"ext",
			"deterministic":false,"tags":["tag.t"],"side_effects":["none"],"estimate_model":{"mode":"InfinityBound"},"inputs_schema":{},
			"outputs_schema":{},"exec":{"kind":"process","command":["sh","w.sh"],"mode":"serve"}}]}`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const operator = "secret-of-the-operator"

// withTools starts a server that has them on a unix socket.
func withTools(t *testing.T, set ...string) *instance {
	t.Helper()
	root := toolRoot(t)
	for name, value := range map[string]string{"MACHINA_OPERATOR_TOKEN": operator, "MACHINA_LEASE_ENFORCE": "1", "MACHINA_TOOL_FAIL_THRESHOLD": "1",
		"MACHINA_TOOL_COOLDOWN_MS": "0", "MACHINA_POLICY_CMD": "sh policies/p.sh"} {
		t.Setenv(name, value)
	}
	return start(t, append([]string{"toolhost.listen_addr=unix://" + filepath.Join(t.TempDir(), "t.sock"), "toolhost.root=" + root,
		"toolhost.plugins=builtin," + filepath.Join(root, "pack")}, set...)...)
}

// drive makes every event happen, and returns the token that was used.
func (l *lines) drive() (token string) {
	l.t.Helper()
	l.ask(`{"aid":"AID.NOOP.v1","request_id":"r1"}`, `"status":"OK"`)
	var lease struct {
		Token string `json:"token_id"`
	}
	reply := l.ask(`{"aid":"_lease.issue","tool_aid":"AID.FILE.WRITE.v1","ttl_ms":60000,"_operator_token":"`+operator+`"}`, `"ok":true`)
	if err := json.Unmarshal([]byte(reply), &lease); err != nil || lease.Token == "" {
		l.t.Fatalf("%v: %s", err, reply)
	}
	l.ask(`{"aid":"AID.MEMORY.APPEND.v1","inputs":{"text":"x"},"_lease_token":"`+lease.Token+`"}`, "tool mismatch")
	l.ask(`{"aid":"AID.FILE.WRITE.v1","inputs":{"path":"a.txt","content":"x"},"idempotency_key":"k","_lease_token":"`+lease.Token+`"}`, `"status":"OK"`)
	l.ask(`{"aid":"AID.EXT.v1","inputs":{"x":"die"}}`, `"type":"crash"`)
	l.ask(`{"aid":"AID.EXT.v1"}`, `"status":"OK"`)
	l.ask(`{"aid":"_run.open","goal_id":"goal.T.v1","run_id":"run-1","control_mode":"SHADOW_POLICY"}`, `"ok":true`)
	l.ask(`{"aid":"_run.select"}`, `"ok":true`)
	l.ask(`{"aid":"_run.close"}`, `"ok":true`)
	return lease.Token
}

// members returns the members of an object, sorted.
func members(t *testing.T, object string) string {
	t.Helper()
	m := make(map[string]any)
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// expected is what drive makes happen, by event type: the members of each payload (toolhost §4.12)
// and how often it comes.
var expected = map[string]struct {
	members string
	n       int
}{
	"toolhost.tool.finished":     {"aid duration_us error_type idempotent_hit request_id status", 4},
	"toolhost.lease.issued":      {"principal tier token_fp tool_aid ttl_ms", 1},
	"toolhost.lease.consumed":    {"aid tier token_fp tool_aid", 1},
	"toolhost.lease.rejected":    {"aid reason tier token_fp tool_aid", 1},
	"toolhost.breaker.opened":    {"aid failures", 1},
	"toolhost.breaker.half_open": {"aid failures", 1},
	"toolhost.breaker.closed":    {"aid failures", 1},
	"toolhost.worker.started":    {"aid pid", 2},
	"toolhost.worker.exited":     {"aid exit_code pid reason", 1},
	"toolhost.run.opened":        {"goal_id run_header", 1},
	"toolhost.run.closed":        {"ended run_id steps", 1},
	"toolhost.selector.shadow":   {"raw run_id step", 1},
}

// TestToolEventsReachSubscribers: what happens in the tool server is published on the bus of the
// kernel endpoint beside it.
func TestToolEventsReachSubscribers(t *testing.T) {
	for _, store := range [][]string{{"store.mode=memory"}, {"store.mode=always", "store.dir=" + filepath.Join(t.TempDir(), "s")}} {
		i := withTools(t, store...)
		sub, err := i.dial(i.addr("kernel ipc")).Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: everything})
		if err != nil {
			t.Fatal(err)
		}
		token := i.lines().drive()
		left, total := make(map[string]int), 0
		for name, e := range expected {
			left[name], total = e.n, total+e.n
		}
		for range total {
			e, err := sub.Next(t.Context())
			if err != nil {
				t.Fatalf("%v; missing: %v", err, left)
			}
			if left[e.EventType]--; left[e.EventType] < 0 {
				t.Errorf("too many %s: %s", e.EventType, e.Payload)
			}
			if got := members(t, e.Payload); got != expected[e.EventType].members || e.Source != "toolhost" || e.TimestampMS == 0 {
				t.Errorf("%+v has %s, want %s", e, got, expected[e.EventType].members)
			}
			if strings.Contains(e.Payload, strings.TrimPrefix(token, "lease_")) || strings.Contains(e.Payload, operator) {
				t.Errorf("an event has a token: %s", e.Payload)
			}
		}
		for name, n := range left {
			if n != 0 {
				t.Errorf("%d of %s are missing", n, name)
			}
		}
		if err := i.end(); err != nil {
			t.Error(err)
		}
	}
}

// TestOneTypeIsEnough: events come by their exact type, in the order of what happened, and nothing
// else comes.
func TestOneTypeIsEnough(t *testing.T) {
	i := withTools(t)
	sub, err := i.dial(i.addr("kernel ipc")).Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"toolhost.tool.finished"}})
	if err != nil {
		t.Fatal(err)
	}
	l := i.lines()
	l.drive()
	var got []string
	for range expected["toolhost.tool.finished"].n {
		e, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			AID    string `json:"aid"`
			Status string `json:"status"`
			Type   string `json:"error_type"`
			ID     string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(e.Payload), &p); err != nil || e.EventType != "toolhost.tool.finished" {
			t.Fatalf("%v: %+v", err, e)
		}
		got = append(got, strings.Join([]string{p.AID, p.Status, p.Type, p.ID}, " "))
	}
	want := []string{"AID.NOOP.v1 OK  r1", "AID.FILE.WRITE.v1 OK  ", "AID.EXT.v1 TOOL_ERROR crash ", "AID.EXT.v1 OK  "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEventsNeedSubscriber: without a subscriber nothing is published, with a subscriber to
// something else neither.
func TestEventsNeedSubscriber(t *testing.T) {
	i := withTools(t)
	l := i.lines()
	l.drive()
	if _, err := i.dial(i.addr("kernel ipc")).Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"toolhost.tool", "process.created"}}); err != nil {
		t.Fatal(err)
	}
	l.ask(`{"aid":"AID.NOOP.v1"}`, `"status":"OK"`)
	if _, m := i.get("/metrics"); !strings.Contains(m, "trunkline_bus_events_published_total 0\n") || !strings.Contains(m, `machina_tool_ok_total{aid="AID.NOOP.v1"} 2`) {
		t.Errorf("events for nobody:\n%s", m)
	}
}

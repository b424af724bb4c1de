package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"trunkline/codec/frame"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// monitorLines are the lines of one /monitor.
type monitorLines struct {
	t  *testing.T
	in *bufio.Scanner
}

// monitor begins to monitor a connection.
func (i *instance) monitor(query string) *monitorLines {
	i.t.Helper()
	ctx, leave := context.WithCancel(i.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.addr("admin")+"/monitor?conn="+query, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		i.t.Fatalf("%v, %v", resp, err)
	}
	i.t.Cleanup(func() {
		leave()
		resp.Body.Close()
	})
	return &monitorLines{i.t, bufio.NewScanner(resp.Body)}
}

// next reads one line.
func (m *monitorLines) next() (f ops.Frame) {
	m.t.Helper()
	if !m.in.Scan() {
		m.t.Fatalf("no line: %v", m.in.Err())
	}
	if err := json.Unmarshal(m.in.Bytes(), &f); err != nil {
		m.t.Fatal(err)
	}
	return f
}

// want reads one line, which must be a frame as described: direction, type, method, id, code.
func (m *monitorLines) want(text string) ops.Frame {
	m.t.Helper()
	f := m.next()
	if got := strings.Join(strings.Fields(f.Direction+" "+f.Type+" "+f.Method+" "+f.ID+" "+f.Code), " "); got != text {
		m.t.Fatalf("%q, want %q (%s)", got, text, m.in.Text())
	}
	if f.At.IsZero() || f.Direction != "" && f.Bytes < frame.HeaderSize {
		m.t.Errorf("%s", m.in.Text())
	}
	return f
}

func TestMonitorOfAConnection(t *testing.T) {
	i := start(t, "admin.monitor_payloads=true")
	c := i.dial(i.addr("kernel ipc"))
	if _, err := c.Ping(t.Context(), nil); err != nil { // so that the server has it
		t.Fatal(err)
	}
	m := i.monitor("ipc-1&payload=200")
	if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: "p1", UserID: "u1"}); err != nil {
		t.Fatal(err)
	}
	f := m.want("in request kernel.CreateProcess 2")
	if !strings.HasPrefix(string(f.Payload), `{"pid":"p1",`) || f.PayloadCut != "" {
		t.Errorf("payload %s, cut %s", f.Payload, f.PayloadCut)
	}
	if f = m.want("out response kernel.CreateProcess 2"); len(f.Payload)+len(f.PayloadCut) == 0 {
		t.Error("no payload")
	}
	if _, err := c.GetProcess(t.Context(), "ghost"); err == nil {
		t.Fatal("a process that does not exist was found")
	}
	m.want("in request kernel.GetProcess 3")
	m.want("out error kernel.GetProcess 3 NOT_FOUND")
	if _, err := c.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"job.done"}, SubscriberID: "s"}); err != nil {
		t.Fatal(err)
	}
	m.want("in request commbus.Subscribe 4")
	if _, err := i.dial(i.addr("kernel ipc")).Publish(t.Context(), ipcclient.Publish{EventType: "job.done", Payload: `{"token":"abcd1234","n":1}`}); err != nil {
		t.Fatal(err)
	}
	for {
		f = m.want("out chunk commbus.Subscribe 4")
		if strings.Contains(string(f.Payload), "job.done") && strings.Contains(string(f.Payload), `\"n\":1`) {
			break
		}
	}
	if strings.Contains(string(f.Payload), "abcd1234") || !strings.Contains(string(f.Payload), "REDACTED") {
		t.Errorf("the token is shown: %s", f.Payload)
	}
	c.Close()
	for m.in.Scan() && !strings.Contains(m.in.Text(), `"type":"closed"`) {
	}
	if !strings.Contains(m.in.Text(), `"type":"closed"`) || m.in.Scan() {
		t.Errorf("the end is %s", m.in.Text())
	}
}

// TestMonitorIsRefused: the limits, and what is not there.
func TestMonitorIsRefused(t *testing.T) {
	i := start(t)
	f := func(query string, status int, body string) {
		t.Helper()
		if code, got := i.get("/monitor?" + query); code != status || !strings.Contains(got, body) {
			t.Errorf("%s = %d %s, want %d with %s", query, code, got, status, body)
		}
	}
	f("conn=ipc-1", 404, "no such connection")
	f("conn=http-1", 404, "want one of ipc, toolhost, threads or exacta")
	f("conn=threads-http-1", 404, "those over HTTP cannot be monitored")
	f("conn=toolhost-1", 404, "cannot monitor connection") // it is not served
	f("conn=ipc-x", 404, "want one of")
	f("conn=", 404, "want one of")
	f("conn=ipc-1&payload=10", 403, "admin.monitor_payloads is false")
	if _, err := i.dial(i.addr("kernel ipc")).Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	i.monitor("ipc-1")
	f("conn=ipc-1", 409, "observed already")
	r := monitorRefusal("ipc-1", connection.ErrTaps).(*ops.Refusal)
	if r.Status != http.StatusTooManyRequests || r.Hint == "" {
		t.Errorf("%+v", r)
	}
}

// TestMonitorDoesNotHoldADrainUp: it ends with its connection.
func TestMonitorDoesNotHoldADrainUp(t *testing.T) {
	i := start(t)
	c := i.dial(i.addr("kernel ipc"))
	if _, err := c.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	m := i.monitor("ipc-1")
	if err := i.end(); err != nil {
		t.Error(err)
	}
	m.want("closed")
}

// TestMonitorOfEveryEndpoint: connections with lines are monitored like those with frames.
func TestMonitorOfEveryEndpoint(t *testing.T) {
	e := startEverywhere(t)
	tools, projects := e.instance.lines(), e.dialProjects("unix", strings.TrimPrefix(e.addr("exacta"), "unix://"))
	tools.ask(`{"aid":"_health"}`, `"ok":true`)
	threads, err := net.Dial("tcp", e.addr("threads lines"))
	if err != nil {
		t.Fatal(err)
	}
	defer threads.Close()
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(threads, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(threads).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	say(fmt.Sprintf(`{"id":1,"method":"auth","params":{"protocol":"threads/1","token":%q}}`, e.bearer))
	projects.open(newProject(t))
	m := e.monitor("toolhost-1")
	tools.ask(`{"aid":"AID.NOOP.v1","request_id":7}`, `"ok":true`)
	m.want("in request AID.NOOP.v1 7")
	m.want("out response AID.NOOP.v1 7")
	m = e.monitor("threads-1")
	say(`{"id":2,"method":"create_thread","params":{}}`)
	m.want("in request create_thread 2")
	if f := m.next(); f.Type != "error" || f.ID != "2" || f.Method != "create_thread" || f.Code == "" || f.Payload != nil {
		t.Errorf("%+v", f)
	}
	m = e.monitor("exacta-1")
	projects.ask("Pause", `"execution_id":"00000000-0000-4000-8000-000000000009"`)
	for f := m.next(); ; f = m.next() {
		if f.Direction == "out" && f.Method == "Pause" && f.Type == "error" {
			break
		}
	}
}

func TestOverview(t *testing.T) {
	i := start(t, "store.mode=always", "store.dir="+t.TempDir(), "toolhost.listen_addr=127.0.0.1:0", "exacta.listen_addr=")
	c := i.dial(i.addr("kernel ipc"))
	if _, err := c.CreateProcess(t.Context(), ipcclient.CreateProcess{PID: "p1", UserID: "u1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"job.done"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), ipcclient.Publish{EventType: "job.done", Payload: "{}"}); err != nil {
		t.Fatal(err)
	}
	status, body := i.get("/overview")
	var o obs.Overview
	if err := json.Unmarshal([]byte(body), &o); status != 200 || err != nil {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	if !o.Ready || o.Version != "v7" || o.UptimeSeconds <= 0 || time.Since(o.At) > time.Hour || len(o.Reasons) != 0 {
		t.Errorf("%s", body)
	}
	if o.Processes["READY"]+o.Processes["NEW"] != 1 || o.Connections["ipc"] != 1 || o.Subscribers != 1 || o.EventsPublished < 1 || o.EventsDropped != 0 {
		t.Errorf("%s", body)
	}
	if _, there := o.Connections["toolhost"]; !there || o.StoreMode != "always" || o.Refusing || o.LagRecords != 0 {
		t.Errorf("%s", body)
	}
	if !strings.Contains(body, `"reasons":[]`) || !strings.Contains(body, `"method":"kernel.CreateProcess","count":1,"errors":0,`) {
		t.Errorf("%s", body)
	}
}

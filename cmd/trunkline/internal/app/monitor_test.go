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
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/link"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/client"
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
	if _, err := c.CreateProcess(t.Context(), client.CreateProcess{PID: "p1", UserID: "u1"}); err != nil {
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
	if _, err := c.Subscribe(t.Context(), client.Subscribe{EventTypes: []string{"job.done"}, SubscriberID: "s"}); err != nil {
		t.Fatal(err)
	}
	m.want("in request commbus.Subscribe 4")
	if _, err := i.dial(i.addr("kernel ipc")).Publish(t.Context(), client.Publish{EventType: "job.done", Payload: `{"token":"abcd1234","n":1}`}); err != nil {
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
	r := monitorRefusal("ipc-1", link.ErrTaps).(*ops.Refusal)
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

// seenFrame is a frame as a tap holds it.
func seenFrame(out bool, whole []byte, keep int) *link.Seen {
	return &link.Seen{At: 1000, Out: out, Size: len(whole), Head: whole[:min(keep, len(whole))]}
}

func requestFrame(t *testing.T, id, service, method, body string) []byte {
	t.Helper()
	b, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	out := mpack.AppendRequest(frame.Begin(nil, frame.Request), id, service, method, b)
	frame.Finish(out, 0)
	return out
}

func TestMonitorCutsPayloads(t *testing.T) {
	const body = `{"a":"0123456789","b":["x","y"]}`
	whole := requestFrame(t, "7", "kernel", "Ping", body)
	f := func(payload, keep int, want, cut string) {
		t.Helper()
		m := &monitored{read: readFrame, payload: payload, asked: map[string]request{}}
		got := m.decode(seenFrame(false, whole, keep))
		if got.Method != "kernel.Ping" || got.ID != "7" || got.Bytes != len(whole) || string(got.Payload) != want || got.PayloadCut != cut {
			t.Errorf("%d bytes of %d: %+v, payload %s, want %q or %q", payload, keep, got, got.Payload, want, cut)
		}
	}
	f(0, 1000, "", "")
	f(len(body), 1000, body, "")
	f(len(body)-1, 1000, "", body[:len(body)-1])
	f(5, 1000, "", body[:5])
	f(1000, len(whole)-1, "", `{"a":"0123456789","b":["x",`)
}

// TestMonitorOfLines: those of tools, threads and projects, however long they are.
func TestMonitorOfLines(t *testing.T) {
	f := func(out bool, line, want, payload string) {
		t.Helper()
		m := &monitored{read: readLine, payload: 40, asked: map[string]request{"7": {"create_thread", 500}}}
		got := m.decode(seenFrame(out, []byte(line), 100))
		text := strings.Join(strings.Fields(got.Direction+" "+got.Type+" "+got.Method+" "+got.ID+" "+got.Code), " ")
		if text != want || got.Bytes != len(line) || string(got.Payload)+got.PayloadCut != payload {
			t.Errorf("%s\n%q, want %q\n%s%s, want %s", line, text, want, got.Payload, got.PayloadCut, payload)
		}
	}
	f(false, `{"aid":"AID.NOOP.v1","request_id":"r4"}`+"\n", "in request AID.NOOP.v1 r4", `{"aid":"AID.NOOP.v1","request_id":"r4"}`)
	f(true, `{"ok":false,"error":"no tool","request_id":3}`+"\r\n", "out error 3", `{"ok":false,"error":"no tool","request_i`)
	f(true, `{"id":7,"ok":false,"error":{"code":"NOT_FOUND"}}`+"\n", "out error create_thread 7 NOT_FOUND", `{"id":7,"ok":false,"error":{"code":"NOT_`)
	f(false, `{"id":1,"method":"auth","token":"abcd1"}`+"\n", "in request auth 1", `{"id":1,"method":"auth","token":"[REDACT`)
	f(true, `{"type":"event","event":"Done","seq":1}`+"\n", "out event Done", `{"type":"event","event":"Done","seq":1}`)
	f(false, `{"type":"subscribe"}`+"\n", "in request subscribe", `{"type":"subscribe"}`)
	f(false, `{"id":{"a":"b"},"method":5}`+"\n", "in request", `{"id":{"a":"b"},"method":5}`)
	f(false, `{"aid":"A","inputs":"`+strings.Repeat("x", 200)+`"}`+"\n", "in request A", `{"aid":"A","inputs":"[REDACTED]"`)
	f(false, "{\"aid\":\"A\"} x\n", "in request A", `{"aid":"A"} x`)
	f(false, "{\"aid\":\"A\xff\"}\n", "in request A\ufffd", `{"aid":"A"}`)
	f(false, "[1]\n", "in unreadable", "")
	f(false, "\n", "in unreadable", "")
	f(true, `x","request_id":3}`+"\n", "out unreadable", "")
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

func TestLineSizes(t *testing.T) {
	for text, want := range map[string]int{"": 0, "\n": 1, "{}\n{}\n": 3, "{}": 2} {
		if got := lineSize(true, []byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestMonitorForgets: requests without an answer are bounded.
func TestMonitorForgets(t *testing.T) {
	m := &monitored{read: readFrame, asked: map[string]request{}}
	for n := range monitorAsked {
		m.decode(seenFrame(false, requestFrame(t, fmt.Sprint(n), "kernel", "Ping", `{}`), 1000))
	}
	if len(m.asked) != monitorAsked {
		t.Errorf("%d are remembered", len(m.asked))
	}
	m.decode(seenFrame(false, requestFrame(t, "one more", "kernel", "Ping", `{}`), 1000))
	if len(m.asked) != 1 {
		t.Errorf("%d are remembered behind the limit", len(m.asked))
	}
	long := m.decode(seenFrame(false, requestFrame(t, strings.Repeat("i", monitorName+1), "s", "m", `{}`), 1000))
	if len(long.ID) != monitorName {
		t.Errorf("an id of %d bytes", len(long.ID))
	}
}

func TestFrameSizes(t *testing.T) {
	size := frameSize(100)
	f := func(out bool, b string, want int) {
		t.Helper()
		if got := size(out, []byte(b)); got != want {
			t.Errorf("%v %q: %d, want %d", out, b, got, want)
		}
	}
	f(false, "\x00\x00\x00\x01\x01", 5)
	f(false, "\x00\x00\x00\x01\x77", 5)
	f(true, "\x00\x00\x00\x01\x77", 0)
	f(true, "\x00\x00\x00\x01\x01", 0)
	f(true, "\x00\x00\x00\x64\x02", 104)
	f(true, "\x00\x00\x00\x65\x02", 0)
	f(true, "\x00\x00\x00\x00\x02", 0)
	f(true, "\x00\x00\x00\x01", 0)
	f(true, "", 0)
}

func TestHideSecrets(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := string(hideSecrets(nil, []byte(text), 0)); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
	}
	same := func(text string) { t.Helper(); f(text, text) }
	same(`{"pid":"p1","usage":{"tokens_in":5,"max_tokens":100.5},"a":[true,null,"x"]}`)
	same(`{"payload":"{\"n\":1}"}`)
	same(`{"cut":[1,`)
	same(``)
	f(`{"token":"abcd","n":1}`, `{"token":"[REDACTED]","n":1}`)
	f(`{"\u0074oken":"abcd","n":1}`, `{"\u0074oken":"[REDACTED]","n":1}`)
	f(`{"api_key":{"a":["]"],"b":"}"},"n":1}`, `{"api_key":"[REDACTED]","n":1}`)
	f(`{"Authorization":["Basic x"]}`, `{"Authorization":"[REDACTED]"}`)
	f(`{"client_secret":{"a":`, `{"client_secret":"[REDACTED]"`)
	f(`{"text":"use Bearer abcdefgh1234 here"}`, `{"text":"use [REDACTED] here"}`)
	f(`{"payload":"{\"password\": \"x\",\"n\":1}"}`, `{"payload":"{\"password\":\"[REDACTED]\",\"n\":1}"}`)
	f(`{"payload":"[{\"p\":\"{\\\"token\\\":\\\"x\\\"}\"}]"}`, `{"payload":"[{\"p\":\"{\\\"token\\\":\\\"[REDACTED]\\\"}\"}]"}`)
	f(`{"payload":"{token=abcdefgh"}`, `{"payload":"{[REDACTED]"}`)
	f(`{"a":"not who`, `{"a":"[REDACTED]"`)
}

func FuzzMonitoredFrame(f *testing.F) {
	f.Add(true, []byte("\x00\x00\x00\x03\x02\x81\xa2"), 100)
	f.Add(false, []byte("\x00\x00\x00\x20\x01\x84\xa2id\xa11\xa7service\xa1k\xa6method\xa1m\xa4body\x81\xa5token\xa4abcd"), 10)
	f.Add(true, []byte("\x00\x00\x00\x20\xff\x83\xa2id\xa11\xa2ok\xc2\xa5error\x82\xa4code\xa1C\xa7message\xa1m"), 1000)
	f.Add(true, []byte(`{"id":7,"ok":false,"error":{"code":"C"},"type":"event"} x`), 100)
	f.Add(false, []byte("{\"aid\":\"A\xff\",\"inputs\":{\"token\":\"x"), 100)
	f.Fuzz(func(t *testing.T, out bool, b []byte, payload int) {
		for i, size := range []int{len(b), 2 * len(b), len(b), 2 * len(b)} {
			m := &monitored{read: readFrame, payload: payload & 0xffff, asked: map[string]request{}}
			if i > 1 {
				m.read = readLine
			}
			fr := m.decode(&link.Seen{Out: out, Size: size, Head: b})
			if _, err := json.Marshal(&fr); err != nil {
				t.Fatalf("%x: %v", b, err)
			}
			if len(fr.Payload) > m.payload || len(fr.PayloadCut) > m.payload {
				t.Fatalf("%d and %d bytes of %d", len(fr.Payload), len(fr.PayloadCut), m.payload)
			}
		}
	})
}

func TestOverview(t *testing.T) {
	i := start(t, "store.mode=always", "store.dir="+t.TempDir(), "toolhost.listen_addr=127.0.0.1:0", "exacta.listen_addr=")
	c := i.dial(i.addr("kernel ipc"))
	if _, err := c.CreateProcess(t.Context(), client.CreateProcess{PID: "p1", UserID: "u1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subscribe(t.Context(), client.Subscribe{EventTypes: []string{"job.done"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), client.Publish{EventType: "job.done", Payload: "{}"}); err != nil {
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

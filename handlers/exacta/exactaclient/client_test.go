package exactaclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// TestAPlanFromItsRequestToItsEnd: requests and events of a real server.
func TestAPlanFromItsRequestToItsEnd(t *testing.T) {
	p := openProject(t, serveProjects(t).addr)
	id := p.plan(`Append "Bye." to README.md`)
	p.ask("ApprovePlan", map[string]any{"plan_id": id})
	p.ask("ExecutePlan", map[string]any{"plan_id": id})
	for {
		m, err := p.conn.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.Event == "StateChanged" && m.Payload.Text("to") == "Completed" {
			break
		}
	}
	if got, _ := os.ReadFile(filepath.Join(p.dir, "README.md")); string(got) != "# Demo\n\nHello.\nBye.\n" {
		t.Errorf("README.md: %q", got)
	}
	payload, _ := json.Marshal(map[string]string{"project_id": p.id, "plan_id": id})
	var answer *Error
	if _, err := p.conn.Ask(t.Context(), "ExecutePlan", payload, nil); !errors.As(err, &answer) || answer.Code != "ST-001" || answer.Local || answer.Category != "State" {
		t.Errorf("executed twice: %v", err)
	}
	p.ask("CloseProject", nil)
	if _, err := p.conn.Ask(t.Context(), "Pause", payload, nil); !errors.As(err, &answer) || answer.Code != "IPC-009" {
		t.Errorf("without a field: %v", err)
	}
}

// TestAFollowerMissesNothing: its connections break again and again, and each event comes once.
func TestAFollowerMissesNothing(t *testing.T) {
	s := serveProjects(t)
	p := openProject(t, s.addr)
	lost := 0
	f := &Follower{
		Dial:    func(ctx context.Context) (*Conn, error) { return Dial(ctx, s.addr, Options{}) },
		Project: p.id, Session: p.session, Within: time.Minute, Lost: func(error) { lost++ },
	}
	defer f.Close()
	<-s.last // the connection of p
	var broken net.Conn
	for n := range 5 {
		p.plan(fmt.Sprintf("Append %q to README.md", strings.Repeat("x", n+1)))
		for f.After < p.last {
			before := f.After
			m, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m.StreamSeq != before+1 {
				t.Fatalf("event %d behind %d", m.StreamSeq, before)
			}
			if before%7 == 3 { // not at the last one: another plan follows
				select {
				case broken = <-s.last:
				default:
				}
				broken.Close()
			}
		}
		p.ask("RejectPlan", map[string]any{"plan_id": p.ask("OpenProject", map[string]any{"path": p.dir}).Text("active_plan_id")})
	}
	if lost == 0 {
		t.Error("no connection was lost")
	}
}

// TestAFollowerThatCannotGoOn: a restarted server, and events that are kept no more.
func TestAFollowerThatCannotGoOn(t *testing.T) {
	s := serveProjects(t)
	p := openProject(t, s.addr)
	f := func(session string, after uint64, code string) {
		t.Helper()
		f := &Follower{Dial: func(ctx context.Context) (*Conn, error) { return Dial(ctx, s.addr, Options{}) }, Project: p.id, Session: session, After: after, Within: time.Minute}
		defer f.Close()
		var answer *Error
		if _, err := f.Next(t.Context()); !errors.As(err, &answer) || answer.Code != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
	f("00000000-0000-4000-8000-000000000001", 0, "ST-003")
	f(p.session, 1000, "IPC-007")
}

func TestAFollowerGivesUp(t *testing.T) {
	addr := kit.Reserve(t)
	f := &Follower{Dial: func(ctx context.Context) (*Conn, error) { return Dial(ctx, addr, Options{}) }, Within: 100 * time.Millisecond}
	var lost *ConnError
	if _, err := f.Next(t.Context()); !errors.As(err, &lost) || !strings.HasPrefix(err.Error(), "cannot connect to "+addr+": ") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.Within, f.Lost = time.Hour, func(error) { cancel() }
	if _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Beginnings of messages of a server.
const (
	fakeHead  = `{"ipc_version":"1.0","type":"response","request_id":"{R}","correlation_id":"00000000-0000-4000-8000-00000000000c","sent_at":"x",`
	fakeEvent = `{"ipc_version":"1.0","type":"event","event_id":"00000000-0000-4000-8000-00000000000e","sent_at":"x","request_id":null,` +
		`"correlation_id":"00000000-0000-4000-8000-00000000000c","project_id":"00000000-0000-4000-8000-00000000000a","payload":{},`
	fakeOpened = fakeHead + `"ok":true,"result":{"project_id":"00000000-0000-4000-8000-00000000000A","stream_seq":4},"error":null}` + "\n"
)

// TestHostileServers: what a server must not send ends the connection with the code of the
// contract.
func TestHostileServers(t *testing.T) {
	f := func(why, answer, code, detail string) {
		t.Helper()
		c := dial(t, fakeServer(t, func(int, string) (string, bool) { return answer, false }), "")
		_, err := c.Ask(t.Context(), "OpenProject", []byte("{}"), nil)
		var refused *Error
		for err == nil {
			_, err = c.Next(t.Context())
		}
		if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Detail, detail) {
			t.Errorf("%s: %v %+v", why, err, refused)
			return
		}
		if _, again := c.Next(t.Context()); again != err {
			t.Errorf("%s: it goes on with %v", why, again)
		}
	}
	f("major", strings.Replace(fakeOpened, `"1.0"`, `"2.0"`, 1), "IPC-002", "2.0")
	f("major 0", strings.Replace(fakeOpened, `"1.0"`, `"0.9"`, 1), "IPC-002", "0.9")
	f("no version", strings.Replace(fakeOpened, `"ipc_version":"1.0",`, ``, 1), "IPC-001", "missing:ipc_version")
	f("a version of one number", strings.Replace(fakeOpened, `"1.0"`, `"1"`, 1), "IPC-001", "invalid:ipc_version")
	f("leading zero", strings.Replace(fakeOpened, `"1.0"`, `"01.0"`, 1), "IPC-001", "invalid:ipc_version")
	f("both", fakeHead+`"ok":true,"result":{},"error":{}}`+"\n", "IPC-005", "both")
	f("neither", fakeHead+`"ok":true,"result":null,"error":null}`+"\n", "IPC-005", "neither")
	f("neither, absent", fakeHead+`"ok":true}`+"\n", "IPC-005", "neither")
	f("ok with an error", fakeHead+`"ok":true,"result":null,"error":{"code":"X"}}`+"\n", "IPC-005", "invalid:ok")
	f("no ok", fakeHead+`"result":null,"error":{"code":"X"}}`+"\n", "IPC-005", "invalid:ok")
	f("a list as the result", fakeHead+`"ok":true,"result":[],"error":null}`+"\n", "IPC-005", "invalid:result")
	f("another request", strings.Replace(fakeOpened, "{R}", "00000000-0000-4000-8000-000000000001", 1), "IPC-005", "request_id")
	f("answered twice", fakeOpened+fakeOpened, "IPC-005", "request_id")
	f("no request_id", strings.Replace(fakeOpened, `"request_id":"{R}",`, ``, 1), "IPC-001", "missing:request_id")
	f("an ack", strings.Replace(fakeOpened, `"response"`, `"ack"`, 1), "IPC-005", "request_id")
	f("type", strings.Replace(fakeOpened, `"response"`, `"request"`, 1), "IPC-001", "invalid:type")
	f("garbage", "HTTP/1.1 400 Bad Request\r\n", "IPC-001", "invalid_json")
	f("list", "[]\n", "IPC-001", "not_an_object")
	f("a key twice", strings.Replace(fakeOpened, `"ok":true,`, `"ok":true,"ok":true,`, 1), "IPC-001", "invalid_json")
	f("gap", fakeOpened+fakeEvent+`"event":"LogEntry","seq":1,"stream_seq":6}`+"\n", "IPC-007", "stream_seq 6 in the place of 5")
	f("again", fakeOpened+fakeEvent+`"event":"LogEntry","seq":1,"stream_seq":4}`+"\n", "IPC-007", "stream_seq 4")
	f("gap of seq", fakeOpened+fakeEvent+`"event":"LogEntry","seq":1,"stream_seq":5}`+"\n"+fakeEvent+`"event":"LogEntry","seq":3,"stream_seq":6}`+"\n", "IPC-007", "seq 3 in the place of 2")
	f("a gap among unknown events", fakeOpened+fakeEvent+`"event":"Novel","seq":1,"stream_seq":5}`+"\n"+fakeEvent+`"event":"Novel","seq":2,"stream_seq":7}`+"\n", "IPC-007", "stream_seq 7")
	f("an event without a payload", fakeOpened+strings.Replace(fakeEvent, `"payload":{},`, ``, 1)+`"event":"LogEntry"}`+"\n", "IPC-001", "invalid:event")
	f("half a seq", fakeOpened+fakeEvent+`"event":"LogEntry","seq":1.5}`+"\n", "IPC-001", "invalid:seq")
}

// TestServersOfLaterVersions: more fields, more events, a later minor version; the numbers are no
// part of the oldest form.
func TestServersOfLaterVersions(t *testing.T) {
	answer := strings.Replace(fakeOpened, `"1.0"`, `"1.7"`, 1)
	answer = strings.Replace(answer, `"error":null`, `"error":null,"new":{"x":[1]}`, 1)
	later := " \t\n" + fakeEvent + `"event":"Novel","seq":1,"stream_seq":5}` + "\r\n" + fakeEvent + `"event":"LogEntry","seq":2,"stream_seq":6}` + "\n" + fakeEvent + `"event":"Progress"}` + "\n"
	c := dial(t, fakeServer(t, func(int, string) (string, bool) { return answer + later, false }), "")
	if _, err := c.Ask(t.Context(), "OpenProject", []byte("{}"), nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LogEntry", "Progress"} {
		if m, err := c.Next(t.Context()); err != nil || m.Event != want {
			t.Fatalf("%v, %v, want %s", m, err, want)
		}
	}
}

func TestConnectionsThatEnd(t *testing.T) {
	f := func(why, answer string, want error) {
		t.Helper()
		c := dial(t, fakeServer(t, func(int, string) (string, bool) { return answer, true }), "")
		_, err := c.Ask(t.Context(), "Pause", []byte("{}"), nil)
		var lost *ConnError
		if !errors.As(err, &lost) || !errors.Is(err, want) {
			t.Errorf("%s: %v", why, err)
		}
		if _, again := c.Send(t.Context(), "Pause", []byte("{}")); !errors.As(again, &lost) {
			t.Errorf("%s: sent on it: %v", why, again)
		}
	}
	f("at once", "", io.EOF)
	f("in a message", fakeHead, io.ErrUnexpectedEOF)
}

// TestAContextThatEndsLeavesTheConnection: a Cancel can be sent on it.
func TestAContextThatEndsLeavesTheConnection(t *testing.T) {
	c := dial(t, fakeServer(t, func(n int, _ string) (string, bool) {
		if n == 0 {
			return fakeHead[:20], false
		}
		return "", false
	}), "")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Ask(ctx, "Build", []byte("{}"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), "Cancel", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.Next(gone); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestTheLongestLine(t *testing.T) {
	whole := fakeHead + `"ok":true,"error":null,"result":{"x":"`
	// The request_id takes the place of {R}.
	room := maxLine - len(whole) - 36 + len("{R}") - len(`"}}`)
	for _, more := range []int{0, 1} {
		c := dial(t, fakeServer(t, func(int, string) (string, bool) { return whole + strings.Repeat("x", room+more) + `"}}` + "\n", false }), "")
		m, err := c.Ask(t.Context(), "Pause", []byte("{}"), nil)
		var refused *Error
		if more == 0 && (err != nil || len(m.Raw) != maxLine) || more == 1 && (!errors.As(err, &refused) || refused.Detail != "message_too_large") {
			t.Errorf("%d more: %v", more, err)
		}
	}
}

func TestHowManyRequestsMayWait(t *testing.T) {
	c := dial(t, fakeServer(t, func(int, string) (string, bool) { return "", false }), "")
	for n := range maxPending + 1 {
		if _, err := c.Send(t.Context(), "Pause", []byte("{}")); (err == nil) != (n < maxPending) {
			t.Fatalf("request %d: %v", n+1, err)
		}
	}
}

// TestTokens: the first line on TCP, and none before its ack.
func TestTokens(t *testing.T) {
	const token = "sixteen bytes \"at\" least"
	ack := `{"ipc_version":"1.0","type":"ack","request_id":null,"sent_at":"x","ok":true,"result":{},"error":null}` + "\n"
	lines := make(chan string, 4)
	c := dial(t, fakeServer(t, func(n int, line string) (string, bool) {
		lines <- line
		if n == 0 {
			return ack, false
		}
		return fakeOpened, false
	}), token)
	if _, err := c.Ask(t.Context(), "OpenProject", []byte("{}"), nil); err != nil {
		t.Fatal(err)
	}
	if first := <-lines; first != `{"type":"auth","token":"sixteen bytes \"at\" least"}` {
		t.Errorf("first line %s", first)
	}
	refusal := `{"ipc_version":"1.0","type":"response","request_id":null,"correlation_id":"00000000-0000-4000-8000-00000000000c","sent_at":"x","ok":false,"result":null,"error":{"code":"SEC-002"}}` + "\n"
	f := func(answer, code string) {
		t.Helper()
		_, err := Dial(t.Context(), fakeServer(t, func(int, string) (string, bool) { return answer, true }), Options{Token: token})
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != code || strings.Contains(err.Error(), token) {
			t.Errorf("%v, want %s", err, code)
		}
	}
	f(refusal, "SEC-002")
	f(fakeOpened, "IPC-001")
	f(strings.Replace(ack, "null", `"00000000-0000-4000-8000-000000000001"`, 1), "IPC-005")
}

func TestAddresses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, addr := range []string{name, "unix://" + name} {
		dial(t, addr, "tokens are not shown on a unix socket")
	}
	for _, addr := range []string{"", "localhost", "unix://relative", "http://x:1/"} {
		if c, err := Dial(t.Context(), addr, Options{}); err == nil {
			c.Close()
			t.Errorf("%q was dialled", addr)
		}
	}
}

func TestProjectsAndCorrelationsThatAreRemembered(t *testing.T) {
	var o order
	for n := range maxProjects + 1 {
		o.follow(fmt.Sprint(n), 1)
	}
	if len(o.next) != maxProjects {
		t.Errorf("%d projects", len(o.next))
	}
	o.follow("0", 9)
	if err := o.check(&Message{Project: "0", StreamSeq: 9}); err != nil {
		t.Error(err)
	}
	for n := range maxCorrelations + 1 {
		if err := o.check(&Message{Correlation: fmt.Sprint(n), Seq: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.last) != maxCorrelations {
		t.Errorf("%d correlations", len(o.last))
	}
	if o.check(&Message{Correlation: "0", Seq: 2}) != nil || o.check(&Message{Correlation: "9", Seq: 5}) == nil {
		t.Error("not the oldest one is forgotten")
	}
}

// FuzzMessage: no line makes the client crash, and what is decoded is what its kind promises.
func FuzzMessage(f *testing.F) {
	id := "00000000-0000-4000-8000-000000000001"
	for _, line := range []string{fakeOpened, fakeEvent + `"event":"LogEntry","seq":1,"stream_seq":6}`, "{}", `{"ipc_version":"2.0"}`,
		fakeHead + `"ok":false,"result":null,"error":{"code":"FS-003","category":"FileSystem","message":"m","retryable":true}}`} {
		f.Add([]byte(strings.ReplaceAll(line, "{R}", id)))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var d decoder
		m, err := d.decode(line)
		if err != nil {
			if err.Code == "" || err.Category != "Protocol" {
				t.Fatalf("%+v", err)
			}
			return
		}
		switch {
		case !json.Valid(line):
			t.Fatalf("no JSON: %q", line)
		case m.Kind == Event && (m.Event == "" || m.Payload == nil || m.Err != nil):
			t.Fatalf("%q: %+v", line, m)
		case m.Kind != Event && (m.OK != (m.Result != nil) || m.OK == (m.Err != nil)):
			t.Fatalf("%q: %+v", line, m)
		}
		var o order
		o.follow(m.Project, m.StreamSeq)
		_ = o.check(&m)
	})
}

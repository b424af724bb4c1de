package exacta

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/fuzz/kit/schemacheck"
	"trunkline/handlers/exacta/workspace"
)

func TestMain(m *testing.M) {
	if n := os.Getenv(killAt); n != "" {
		serveUntilKilled(n)
		return
	}
	dir, err := os.MkdirTemp("", "exacta-key-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv(keyFile, filepath.Join(dir, "key"))
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// keyFile is the variable with the file of the key of all servers of the tests.
const keyFile = "EXACTA_TEST_KEY_FILE"

// key returns that key.
func key() []byte {
	k, err := workspace.LoadKey(os.Getenv(keyFile))
	if err != nil {
		panic(err)
	}
	return k
}

// newServer returns a server with a fixed clock and a seed.
func newServer(t testing.TB) *Server { return newServerOf(t, Config{}) }

// newServerOf is newServer with other options.
func newServerOf(t testing.TB, c Config) *Server {
	s := New(fixed(c))
	t.Cleanup(s.Close)
	return s
}

// fixed returns options with a fixed clock and a seed.
func fixed(c Config) Config {
	c.KeyFile = os.Getenv(keyFile)
	c.Clock, c.Seed = codec.FixedClock(time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)), "t1"
	return c
}

// peer is a client whose connection the test owns.
type peer struct {
	t    testing.TB
	sess connection.Session
	port *connection.Port
	wake chan struct{}
	rest []byte   // sent by the server, not looked at
	room int      // of a Pump
	last []string // of the lines that were heard

	validator *schemacheck.Validator
	line      []byte // of the server, not complete
}

// Wake implements connection.Owner.
func (p *peer) Wake(*connection.Port) {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func newPeer(t testing.TB, s *Server, id uint64) *peer { return newPeerOver(t, s, id, Stdio) }

// newPeerOver is newPeer over another carrier.
func newPeerOver(t testing.TB, s *Server, id uint64, carrier Carrier) *peer {
	schemas, err := schemacheck.Load()
	if err != nil {
		t.Fatal(err)
	}
	return newValidated(t, s, id, carrier, schemas)
}

// newValidated is newPeerOver with schemas that were read before.
func newValidated(t testing.TB, s *Server, id uint64, carrier Carrier, schemas schemacheck.Schemas) *peer {
	p := &peer{t: t, port: connection.NewPort(id, "test"), wake: make(chan struct{}, 1), room: 1 << 20, validator: schemas.Watch()}
	p.port.SetOwner(p)
	p.sess = s.Open(p.port, carrier, nil)
	t.Cleanup(p.sess.Closed)
	return p
}

// send sends lines.
func (p *peer) send(lines ...string) {
	p.t.Helper()
	in := []byte(strings.Join(lines, "\n") + "\n")
	for line := range bytes.Lines(in) {
		p.validator.Asked(line)
	}
	for len(in) > 0 {
		used, out, v := p.sess.Feed(in, nil, connection.Instant{})
		p.look(out)
		p.rest = append(p.rest, out...)
		if in = in[used:]; v == connection.Blocked {
			p.pump()
		}
	}
}

// pump waits for a wake and pumps.
func (p *peer) pump() {
	p.t.Helper()
	select {
	case <-p.wake:
	case <-time.After(10 * time.Second):
		buf := make([]byte, 1<<20)
		p.t.Fatalf("nothing comes; so far: %v %s\n%s", p.last, p.rest, buf[:runtime.Stack(buf, true)])
	}
	p.port.Rearm()
	for more := true; more; {
		before := len(p.rest)
		p.rest, more = p.sess.Pump(p.rest, p.room, connection.Instant{})
		p.look(p.rest[before:])
	}
}

// look compares what the server sent with its schemas.
func (p *peer) look(out []byte) {
	p.t.Helper()
	p.line = append(p.line, out...)
	for {
		line, rest, ok := bytes.Cut(p.line, []byte("\n"))
		if !ok {
			return
		}
		if err := p.validator.Sent(line); err != nil {
			p.t.Fatal(err)
		}
		p.line = rest
	}
}

// hear returns the next n lines, short: the number of a request and its result or error code, or
// the name and stream_seq of an event.
func (p *peer) hear(n int) string {
	p.t.Helper()
	var out []string
	for len(out) < n {
		end := bytes.IndexByte(p.rest, '\n')
		if end < 0 {
			p.pump()
			continue
		}
		out = append(out, short(string(p.rest[:end])))
		p.last = out
		p.rest = p.rest[end+1:]
	}
	return strings.Join(out, " ")
}

// until returns the lines up to the answer of request n.
func (p *peer) until(n int) string {
	p.t.Helper()
	var out []byte
	for {
		line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
		if !ok {
			p.pump()
			continue
		}
		p.rest = rest
		out = append(append(out, line...), '\n')
		if strings.HasPrefix(short(string(line)), fmt.Sprintf("1%02x:", n)) {
			return string(out)
		}
	}
}

var (
	shortEvent = regexp.MustCompile(`"event":"([A-Za-z]+)".*"stream_seq":(\d+)`)
	shortID    = regexp.MustCompile(`"request_id":(?:null|"[-0-9]+?0*([0-9a-f]+)")`)
	shortCode  = regexp.MustCompile(`"ok":(?:true|false.*"code":"([A-Z0-9-]+)")`)
)

func short(line string) string {
	if m := shortEvent.FindStringSubmatch(line); m != nil {
		return m[1] + m[2]
	}
	id, code := shortID.FindStringSubmatch(line), shortCode.FindStringSubmatch(line)
	if id == nil || code == nil {
		return line
	}
	if code[1] == "" {
		code[1] = "ok"
	}
	return id[1] + ":" + code[1]
}

const pid = "cd6389d6-5643-5997-9b3b-0ca9b25a1497"

func ask(n int, command, payload string) string {
	if command != "OpenProject" {
		payload = `"project_id":"` + pid + `",` + payload
	}
	return fmt.Sprintf(`{"ipc_version":"1.0","type":"request","request_id":"00000000-0000-4000-8000-0000000001%02x","sent_at":"2026-01-15T00:00Z","command":"%s","payload":{%s}}`, n, command, strings.TrimSuffix(payload, ","))
}

func subscribeTo(n int, fields string) string {
	return fmt.Sprintf(`{"ipc_version":"1.0","type":"subscribe","request_id":"00000000-0000-4000-8000-0000000001%02x","sent_at":"2026-01-15T00:00Z","project_id":"%s"%s}`, n, pid, fields)
}

// newRoot returns a project's folder.
func newRoot(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module x\n", "a.txt": "a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (p *peer) want(n int, want string) {
	p.t.Helper()
	if got := p.hear(n); got != want {
		p.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

const emptySet = `"diffs":["NO_CHANGES_REQUIRED"]`

// TestTwoConnections: who gets which events, and a request that both send (exacta §2.4, §4.0.4).
func TestTwoConnections(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	one, two := newPeer(t, s, 1), newPeer(t, s, 2)
	one.room = 1 // an event at a time: the order is the same
	one.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	one.want(2, "LogEntry1 101:ok")
	two.send(ask(2, "ApplyDiffSet", emptySet))
	two.want(2, "LogEntry2 102:ok")
	one.want(1, "LogEntry2")
	two.send(ask(2, "ApplyDiffSet", emptySet), ask(2, "ApplyDiffSet", `"diffs":["x"]`))
	two.want(2, "102:ok 102:IPC-006")

	two.send(subscribeTo(3, `,"after_stream_seq":1`))
	two.want(2, "103:ok LogEntry2")
	one.send(ask(4, "ApplyDiffSet", emptySet))
	one.want(2, "LogEntry3 104:ok")
	two.want(1, "LogEntry3")
	two.send(subscribeTo(5, `,"mode":"none"`))
	two.want(1, "105:ok")
	one.send(ask(6, "ApplyDiffSet", emptySet))
	one.want(2, "LogEntry4 106:ok")
	two.send(ask(7, "ApplyDiffSet", emptySet))
	two.want(2, "LogEntry5 107:ok")

	// A window of one event: the next one waits for its ack.
	two.send(subscribeTo(8, `,"after_stream_seq":2,"window":1`))
	two.want(2, "108:ok LogEntry3")
	two.send(`{"ipc_version":"1.0","type":"ack","project_id":"` + pid + `","stream_seq":3}`)
	two.want(1, "LogEntry4")
	two.send(`{"ipc_version":"1.0","type":"ack","project_id":"`+pid+`","stream_seq":4}`, ask(9, "CloseProject", ""))
	two.want(2, "LogEntry5 109:ok")
	one.want(1, "LogEntry5")
	one.send(ask(10, "Build", ""))
	one.want(1, "10a:ST-003")

	// Opened again, the counter goes on; other roots must not overlap.
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sub", "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	one.send(ask(11, "OpenProject", `"path":"`+dir+`"`))
	one.want(2, "LogEntry6 10b:ok")
	one.send(ask(12, "OpenProject", `"path":"`+dir+`/sub"`))
	one.want(1, "10c:FS-005")
	one.send(ask(13, "OpenProject", `"path":"`+dir+`/a.txt"`))
	one.want(2, "LogEntry7 10d:ok")
}

// TestCorrelation follows one correlation only (exacta §3.5).
func TestCorrelation(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	one := newPeer(t, s, 1)
	one.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	one.want(2, "LogEntry1 101:ok")
	one.send(ask(2, "ExtractIntent", `"user_input":"append \"x\" to a.txt"`))
	one.want(4, "StateChanged2 StateChanged3 LogEntry4 102:ok")
	two := newPeer(t, s, 2)
	flow := codec.NewScope("t1", "p1").Next(codec.Correlation).String()
	two.send(subscribeTo(3, `,"correlation_id":"`+flow+`","after_seq":1`), subscribeTo(4, `,"correlation_id":"`+flow+`","after_seq":4`))
	two.want(4, "103:ok 104:IPC-007 StateChanged3 LogEntry4")
	one.send(ask(5, "ApplyDiffSet", emptySet))
	one.want(2, "LogEntry5 105:ok")
	two.send(subscribeTo(6, `,"correlation_id":"`+flow+`","after_seq":2`))
	two.want(2, "106:ok LogEntry4")
}

// TestTooManyRequests: 64 requests of a connection may be unanswered; those that control what runs
// are not counted (exacta §4.0.1).
func TestTooManyRequests(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.sess.(*session).count(DefaultMaxInFlight)
	p.send(ask(2, "ApplyDiffSet", emptySet), ask(3, "Pause", `"execution_id":"`+pid+`"`))
	p.want(2, "102:RES-004 103:ST-001") // the refusal does not wait
}

// TestLimits of payloads, at the limit and one above.
func TestLimits(t *testing.T) {
	f := func(c codec.Command, object, field string) {
		t.Helper()
		p := payload{object: []byte(object)}
		p.args(c, new(exactaArgs))
		if p.field != field {
			t.Errorf("%s %.60s: %q is wrong, want %q", c, object, p.field, field)
		}
	}
	text := func(n int) string { return strings.Repeat("x", n) }
	f(codec.OpenProject, `{"path":"/`+text(maxPath-1)+`"}`, "")
	f(codec.OpenProject, `{"path":"/`+text(maxPath)+`"}`, "path")
	f(codec.OpenProject, `{"path":""}`, "path")
	f(codec.ExtractIntent, `{"user_input":"`+text(maxInput)+`"}`, "")
	f(codec.ExtractIntent, `{"user_input":"`+text(maxInput+1)+`"}`, "user_input")
	f(codec.ApplyDiffSet, `{"diffs":["a"`+strings.Repeat(`,"a"`, maxDiffs-1)+`]}`, "")
	f(codec.ApplyDiffSet, `{"diffs":["a"`+strings.Repeat(`,"a"`, maxDiffs)+`]}`, "diffs")
	f(codec.Build, `{"timeout_seconds":3600,"configuration":"Release"}`, "")
	f(codec.Build, `{"timeout_seconds":3601}`, "timeout_seconds")
	f(codec.Build, `{"timeout_seconds":1.0}`, "timeout_seconds")
	f(codec.Build, `{"configuration":null}`, "configuration")
}

// TestSums: equal JSON has an equal fingerprint, however it is written, without the members of the
// envelope.
func TestSums(t *testing.T) {
	var s sums
	seeds := &newServer(t).replays.Seeds
	of := func(payload string) projects.Sum {
		var scanner codec.Scanner
		var m codec.Message
		if r := scanner.Scan([]byte(strings.Replace(ask(1, "Pause", ""), `{"project_id":"`+pid+`"}`, payload, 1)), &m); r.Code != "" {
			t.Fatalf("%s: %s %s", payload, r.Code, r.Detail)
		}
		return s.of(&m, seeds)
	}
	f := func(a, b string, equal bool) {
		t.Helper()
		if (of(a) == of(b)) != equal {
			t.Errorf("%s and %s: %v", a, b, !equal)
		}
	}
	f(`{"a":1,"b":"x"}`, `{ "b" : "\u0078", "a":1.0 }`, true)
	f(`{"a":1,"b":"x"}`, `{"a":1,"b":"y"}`, false)
	f(`{"a":1,"timeout_ms":5,"sent_at":"x"}`, `{"\u0072equest_id":"`+pid+`","a":1,"ipc_version":"1.0"}`, true)
	f(`{"a":{"timeout_ms":5}}`, `{"a":{"timeout_ms":6}}`, false)
	f(`{}`, `{"timeout_ms":5}`, true)
	// The first is written as most programs write it.
	f(`{"project_id":"x","execution_id":"y"}`, `{"execution_id" :"\u0079","project_id":"x"}`, true)
	f(`{"project_id":"x","plan_id":"'<>~"}`, `{"sent_at":"","plan_id":"'<>~","timeout_ms":5,"project_id":"x"}`, true)
	f(`{"intent_id":"y","timeout_ms":7,"project_id":"x"}`, `{"\u0069ntent_id":"y","project_id":"x"}`, true)
	f(`{"project_id":"x"}`, "{\t\"project_id\":\"x\"}", true)
	f(`{"project_id":"x","execution_id":"y"}`, `{"project_id":"x","plan_id":"y"}`, false)
	f(`{"project_id":"x","execution_id":"y"}`, `{"project_id":"x","execution_id":"Y"}`, false)
	f(`{"project_id":"x","execution_id":"y"}`, `{"project_id":"x","execution_id":"y","z":""}`, false)
}

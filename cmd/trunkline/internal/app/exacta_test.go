package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// projectPeer is a client of projects.
type projectPeer struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
	id string // of the project
	n  int    // requests so far
}

func (i *instance) dialProjects(network, addr string) *projectPeer {
	i.t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = c.Close() })
	patience := time.Minute
	if rounds.Long() {
		patience *= 10
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	return &projectPeer{t: i.t, Conn: c, in: bufio.NewReader(c), n: rand.IntN(1 << 40)}
}

// answered is a line of a server.
type answered struct {
	Type, Event string
	OK          bool
	Result      map[string]any
	Error       struct{ Code string }
	Payload     struct {
		To    string
		Order int
	}
}

func (p *projectPeer) next() (a answered) {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &a)
	}
	if err != nil {
		p.t.Fatalf("%q: %v", line, err)
	}
	return a
}

// until reads events up to one for which f reports true.
func (p *projectPeer) until(f func(a *answered) bool) {
	p.t.Helper()
	for {
		if a := p.next(); f(&a) {
			return
		}
	}
}

// ask sends a request and returns its answer. Events are dropped.
func (p *projectPeer) ask(command, payload string) (a answered) {
	p.t.Helper()
	if p.n++; p.id != "" {
		payload = `"project_id":"` + p.id + `",` + payload
	}
	_, err := fmt.Fprintf(p, `{"ipc_version":"1.0","type":"request","request_id":"00000000-0000-4000-8000-%012x","sent_at":"2026-01-15T00:00Z","command":"%s","payload":{%s}}`+"\n",
		p.n, command, strings.TrimSuffix(payload, ","))
	if err != nil {
		p.t.Fatal(err)
	}
	p.until(func(got *answered) bool { a = *got; return a.Type == "response" })
	return a
}

// must is ask for a request that has to go well.
func (p *projectPeer) must(command, payload string) map[string]any {
	p.t.Helper()
	a := p.ask(command, payload)
	if !a.OK {
		p.t.Fatalf("%s: %+v", command, a)
	}
	return a.Result
}

func (p *projectPeer) open(dir string) map[string]any {
	p.t.Helper()
	p.id = ""
	r := p.must("OpenProject", `"path":"`+dir+`"`)
	p.id = r["project_id"].(string)
	return r
}

// field names a member of a result.
func field(name string, v any) string { return fmt.Sprintf(`"%s":"%s"`, name, v) }

// awaitMetric waits until the admin address shows a line.
func (i *instance) awaitMetric(line string) {
	i.t.Helper()
	body := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, body = i.get("/metrics"); strings.Contains(body, "\n"+line+"\n") {
			return
		}
	}
	i.t.Fatalf("no %s in\n%s", line, body)
}

// newProject returns a project whose build waits for the file "go".
func newProject(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Makefile": "all:\n\twhile [ ! -e go ]; do sleep 0.02; done\n", "README.md": "# Demo\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestProjectsPauseInADrain: a server that stops finishes the step at hand and saves the rest,
// which the next one goes on with (exacta §2.1, §5.6).
func TestProjectsPauseInADrain(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	dir := newProject(t)
	first := start(t, "exacta.listen_addr=127.0.0.1:0,unix://"+filepath.Join(t.TempDir(), "s"), "exacta.loops=1")
	p := first.dialProjects("tcp", first.addr("exacta"))
	p.open(dir)
	intent := p.must("ExtractIntent", `"user_input":"create file a.txt; build; create file b.txt"`)["intent"].(map[string]any)
	plan := field("plan_id", p.must("GeneratePlan", field("intent_id", intent["id"]))["plan_id"])
	p.must("ApprovePlan", plan)
	execution := p.must("ExecutePlan", plan)["execution_id"]
	p.until(func(a *answered) bool { return a.Event == "StepStarted" && a.Payload.Order == 2 })
	first.stop()
	first.await("msg=draining")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}

	second := start(t, "exacta.listen_addr=127.0.0.1:0", "exacta.loops=1")
	p = second.dialProjects("tcp", second.addr("exacta"))
	if r := p.open(dir); r["state"] != "Paused" || r["active_execution_id"] != execution {
		t.Fatalf("the next server has %v", r)
	}
	p.must("Resume", field("execution_id", execution))
	p.until(func(a *answered) bool { return a.Payload.To == "Completed" })
	second.awaitMetric(`trunkline_exacta_steps_total{result="done"} 1`)
	second.awaitMetric(`trunkline_exacta_transitions_total{state="Completed"} 1`)
	for _, name := range []string{"a.txt", "b.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestProjectsOverAllListeners: one server of projects is behind all addresses, with the rules of
// each.
func TestProjectsOverAllListeners(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	i := start(t, "exacta.listen_addr=127.0.0.1:0,unix://"+socket, "exacta.loops=1", "exacta.auth_token_file="+token, "exacta.max_connections=3")
	if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	dir := newProject(t)
	unix, tcp := i.dialProjects("unix", socket), i.dialProjects("tcp", i.addr("exacta"))
	if a := func() answered {
		_, _ = io.WriteString(tcp, `{"type":"auth","token":"0123456789abcdef"}`+"\n")
		return tcp.next()
	}(); a.Type != "ack" || !a.OK {
		t.Fatalf("%+v", a)
	}
	unix.open(dir)
	tcp.id = unix.id
	const set = `"diffs":["NO_CHANGES_REQUIRED"]`
	if a := tcp.ask("ApplyDiffSet", set); a.Error.Code != "CFG-002" {
		t.Errorf("over TCP: %+v", a)
	}
	unix.must("ApplyDiffSet", set)
	bad := i.dialProjects("tcp", i.addr("exacta"))
	if a := bad.ask("Pause", ""); a.Error.Code != "SEC-002" {
		t.Errorf("without a token: %+v", a)
	}
	if rest, err := io.ReadAll(bad.in); len(rest) > 0 || err != nil {
		t.Errorf("behind the refusal: %q, %v", rest, err)
	}
	i.awaitMetric(`trunkline_exacta_sessions{carrier="tcp"} 1`)
	third := i.dialProjects("unix", socket)
	if a := third.ask("Pause", ""); a.Error.Code != "IPC-009" {
		t.Errorf("%+v", a)
	}
	if a := i.dialProjects("unix", socket).next(); a.Error.Code != "RES-004" {
		t.Errorf("one too many: %+v", a)
	}
	for _, want := range []string{
		`trunkline_exacta_sessions{carrier="unix"} 2`, `trunkline_exacta_connections_refused_total 1`,
		`trunkline_exacta_requests_total{code="",command="OpenProject"} 1`, `trunkline_exacta_requests_total{code="CFG-002",command="ApplyDiffSet"} 1`,
		`trunkline_exacta_requests_total{code="SEC-002",command=""} 1`, `trunkline_exacta_projects{state="Idle"} 1`, `trunkline_exacta_events_total 2`,
	} {
		i.awaitMetric(want)
	}
}

// subscribe follows the project from its first event on up to last, and returns the sum of the
// events, which come in order. It begins to read behind wait.
func (p *projectPeer) subscribe(last int, wait func()) (sum uint64, err error) {
	h := fnv.New64a()
	if _, err = fmt.Fprintf(p, `{"ipc_version":"1.0","type":"subscribe","request_id":"00000000-0000-4000-8000-%012x","sent_at":"2026-01-15T00:00Z","project_id":"%s","after_stream_seq":0}`+"\n",
		p.n, p.id); err != nil {
		return 0, err
	}
	wait()
	for n := 0; n <= last; n++ { // the first line is the answer
		line, err := p.in.ReadSlice('\n')
		if err == nil && n > 0 && !bytes.Contains(line, fmt.Appendf(nil, `"stream_seq":%d,`, n)) {
			err = fmt.Errorf("event %d is %s", n, line)
		}
		if err != nil {
			return 0, err
		}
		if n > 0 {
			_, _ = h.Write(line)
		}
	}
	return h.Sum64(), nil
}

// TestSubscribersOnLoops: all get the same events in the same order, those that are slow too
// (exacta §10).
func TestSubscribersOnLoops(t *testing.T) {
	subscribers, events := 40, 3000
	if rounds.Long() {
		subscribers, events = 1000, 10_000
	}
	socket := filepath.Join(t.TempDir(), "s")
	i := start(t, "exacta.listen_addr=127.0.0.1:0,unix://"+socket, "exacta.loops=1")
	dir := newProject(t)
	p := i.dialProjects("unix", socket)
	p.open(dir)
	got, failed := make([]uint64, subscribers), make([]error, subscribers)
	var all, slow sync.WaitGroup
	slow.Add(1)
	for n := range subscribers {
		network, addr := "unix", socket
		if n%2 == 0 {
			network, addr = "tcp", i.addr("exacta")
		}
		s := i.dialProjects(network, addr)
		s.id = p.id
		all.Go(func() {
			wait := func() {}
			if n%8 == 0 {
				wait = slow.Wait
			}
			got[n], failed[n] = s.subscribe(events, wait)
		})
	}
	for range events - 1 {
		p.open(dir) // one event each
	}
	slow.Done()
	all.Wait()
	for n := range subscribers {
		if failed[n] != nil || got[n] != got[0] {
			t.Fatalf("subscriber %d: %v", n, failed[n])
		}
	}
}

package main

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"trunkline/engine/exacta/schema/validate"
)

// cmdTalk holds a conversation with a server of projects: talk FILE. {DIR} is the folder p, {P} the
// id of its project, {X} the last execution_id of an answer. … in an expected text stands for any
// text. Lines of the file:
//
//	start [args]       starts trunkline exacta serve, with a fixed clock and a seed without args
//	> text             sends a line
//	>N Command {…}     sends a request with the id number N and the project_id
//	< text             the next line is this one
//	<N {…}             the next line that is no LogEntry is the answer N with this result
//	<N CODE detail     the same with an error; detail is how technical_detail begins
//	<! CODE detail     the same with the request_id null
//	<* Event {…}       the same, an event with this payload
//	eof [code]         ends stdin: nothing more comes, and the program ends with the code
//	finish             the same, and any lines may come
//	kill, term         kills the program; sends it SIGINT
//	write, file PATH "text" · rm, gone PATH · until Event {…} drops lines up to an event
//	zip PATH ENTRY text has an entry of an archive
func cmdTalk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: talk file")
	}
	dir, err := filepath.EvalSymlinks(ts.MkAbs("p"))
	ts.Check(err)
	t := &talk{ts: ts, dir: dir, seqs: make(map[string]int), streams: make(map[string]int)}
	defer t.kill()
	for i, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		t.at = args[0] + ":" + strconv.Itoa(i+1) + ": " + line
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			t.do(t.expand(line))
		}
	}
}

// talkProject is {P}: the first project of the seed t1.
const talkProject = "cd6389d6-5643-5997-9b3b-0ca9b25a1497"

// talk is one conversation.
type talk struct {
	ts      *testscript.TestScript
	dir, at string
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	seqs    map[string]int // of correlations
	streams map[string]int // of projects

	execution string // the last execution_id of an answer
	validator *validate.Validator
}

func (t *talk) fatalf(format string, args ...any) {
	t.ts.Fatalf("%s\n%s", t.at, fmt.Sprintf(format, args...))
}

func (t *talk) expand(line string) string {
	return strings.NewReplacer("{DIR}", t.dir, "{P}", talkProject, "{X}", t.execution).Replace(line)
}

func (t *talk) do(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	switch {
	case verb == "start":
		t.start(strings.Fields(rest))
	case verb == ">":
		t.send(rest)
	case verb[0] == '>':
		command, payload, _ := strings.Cut(rest, " ")
		t.send(request(verb[1:], command, payload))
	case verb == "<":
		if got := t.next(); !matches(rest, got) {
			t.fatalf("got  %s", got)
		}
	case verb == "<*":
		t.event(rest)
	case verb[0] == '<':
		t.answer(verb[1:], rest)
	case verb == "until":
		name, payload, _ := strings.Cut(rest, " ")
		for m := t.read(); m.Event != name || !matches(payload, string(m.Payload)); m = t.read() {
			continue
		}
	case verb == "eof":
		t.end(rest)
	case verb == "zip":
		t.zip(rest)
	case verb == "finish":
		t.finish()
	case verb == "kill":
		t.kill()
	case verb == "term":
		t.check(t.cmd.Process.Signal(os.Interrupt))
	default:
		t.files(verb, rest)
	}
}

// request returns the line of a request. What is no object stays as it is.
func request(n, command, payload string) string {
	if payload == "" {
		payload = "{}"
	}
	if inside, ok := strings.CutPrefix(payload, "{"); ok && command != "OpenProject" {
		payload = `{"project_id":"` + talkProject + `",` + inside
		if inside == "}" {
			payload = `{"project_id":"` + talkProject + `"}`
		}
	}
	return `{"ipc_version":"1.0","type":"request","request_id":"` + talkID(n) + `","sent_at":"2026-01-15T00:00:00Z","command":"` + command + `","payload":` + payload + "}"
}

func talkID(n string) string {
	return "00000000-0000-4000-8000-" + strings.Repeat("0", 12-len(n)) + n
}

func (t *talk) start(args []string) {
	if len(args) == 0 {
		args = []string{"--clock", "fixed:2026-01-15T00:00:00.000Z", "--ids", "seed:t1"}
	}
	var program string
	for _, dir := range filepath.SplitList(t.ts.Getenv("PATH")) {
		if name := filepath.Join(dir, "trunkline"); program == "" {
			if _, err := os.Stat(name); err == nil {
				program = name
			}
		}
	}
	t.cmd = exec.Command(program, append([]string{"exacta", "serve"}, args...)...)
	t.cmd.Stderr = os.Stderr
	t.cmd.Env = append(os.Environ(), "HOME="+t.ts.Getenv("WORK"))
	var err error
	t.in, err = t.cmd.StdinPipe()
	t.check(err)
	out, err := t.cmd.StdoutPipe()
	t.check(err)
	t.check(t.cmd.Start())
	t.lines = make(chan string, 1<<16)
	lines := t.lines
	go func() {
		defer close(lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.validator, err = validate.New()
	t.check(err)
	clear(t.seqs)
	clear(t.streams)
}

func (t *talk) check(err error) {
	if err != nil {
		t.fatalf("%v", err)
	}
}

func (t *talk) send(line string) {
	line = strings.NewReplacer(`\xff`, "\xff", "<9MiB>", strings.Repeat("x", 9<<20), "<deep>", strings.Repeat(`{"a":`, 32)+"1"+strings.Repeat("}", 32)).Replace(line)
	t.validator.Asked([]byte(line))
	_, err := io.WriteString(t.in, line+"\n")
	t.check(err)
}

func (t *talk) next() string {
	select {
	case line, ok := <-t.lines:
		if !ok {
			t.fatalf("the program has ended")
		}
		t.invariants(line)
		return line
	case <-time.After(waitFor):
		t.fatalf("nothing comes")
		return ""
	}
}

// sent is a line of a server.
type sent struct {
	Type, Event string
	Request     *string `json:"request_id"`
	Correlation string  `json:"correlation_id"`
	Project     string  `json:"project_id"`
	Seq         int
	Stream      int `json:"stream_seq"`
	OK          bool
	Payload     json.RawMessage
	Result      json.RawMessage
	Error       *struct {
		Code   string
		Detail string `json:"technical_detail"`
	}
	line string
}

// invariants checks what holds for every line: the order of keys, its schemas, and counters without
// a gap.
func (t *talk) invariants(line string) {
	t.check(t.validator.Sent([]byte(line)))
	if !forms.MatchString(line) {
		t.fatalf("the keys are not in their order: %s", line)
	}
	var m sent
	t.check(json.Unmarshal([]byte(line), &m))
	if m.Type != "event" {
		return
	}
	if last, again := t.seqs[m.Correlation]; again && m.Seq > last+1 || !again && m.Seq != 1 {
		t.fatalf("a gap in seq: %s", line)
	}
	if last, again := t.streams[m.Project]; again && m.Stream > last+1 {
		t.fatalf("a gap in stream_seq: %s", line)
	}
	t.seqs[m.Correlation] = max(t.seqs[m.Correlation], m.Seq)
	t.streams[m.Project] = max(t.streams[m.Project], m.Stream)
}

const (
	oneID    = `"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"`
	oneTime  = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
	oneError = `\{"code":"[A-Z]+-\d{3}","category":"[A-Za-z]+","severity":"(?:fatal|error|warning)","message":"[^"]*(?:\\.[^"]*)*","technical_detail":"[^"]*(?:\\.[^"]*)*","recovery_path":"[A-Z][a-z]+","retryable":(?:true|false)\}`
)

var executionID = regexp.MustCompile(`execution_id":"([^"]+)"`)

var forms = regexp.MustCompile(`^\{"ipc_version":"1\.0","type":(?:` +
	`"response","request_id":(?:null|` + oneID + `),"correlation_id":` + oneID + `,"sent_at":` + oneTime + `,"ok":(?:true,"result":\{.*\},"error":null|false,"result":null,"error":` + oneError + `)\}|` +
	`"ack","request_id":` + oneID + `,"sent_at":` + oneTime + `,"ok":(?:true,"result":\{.*\},"error":null|false,"result":null,"error":` + oneError + `)\}|` +
	`"event","event":"[A-Za-z]+","event_id":` + oneID + `,"sent_at":` + oneTime + `,"request_id":(?:null|` + oneID + `),"correlation_id":` + oneID + `,"seq":\d+,"project_id":` + oneID + `,"stream_seq":\d+,"payload":\{.*\}\})$`)

// read returns the next line that is no LogEntry.
func (t *talk) read() *sent {
	for {
		m := &sent{line: t.next()}
		t.check(json.Unmarshal([]byte(m.line), m))
		if m.Event != "LogEntry" {
			return m
		}
	}
}

func (t *talk) event(want string) {
	name, payload, _ := strings.Cut(want, " ")
	if m := t.read(); m.Event != name || !matches(payload, string(m.Payload)) {
		t.fatalf("got  %s", m.line)
	}
}

func (t *talk) answer(n, want string) {
	m := t.read()
	id := "null"
	if m.Request != nil {
		id = *m.Request
	}
	wantID := "null"
	if n != "!" {
		wantID = talkID(n)
	}
	if m.Type == "event" || !strings.EqualFold(id, wantID) {
		t.fatalf("got  %s", m.line)
	}
	code, detail, _ := strings.Cut(want, " ")
	if found := executionID.FindSubmatch(m.Result); found != nil {
		t.execution = string(found[1])
	}
	switch {
	case strings.HasPrefix(want, "{"):
		if !m.OK || !matches(want, string(m.Result)) {
			t.fatalf("got  %s", m.line)
		}
	case m.OK || m.Error.Code != code || !matches(detail+"…", m.Error.Detail):
		t.fatalf("got  %s", m.line)
	}
}

// matches reports whether got is want, where … is any text. No want is any text too.
func matches(want, got string) bool {
	if want == "" {
		return true
	}
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^(?s:" + strings.Join(parts, ".*") + ")$").MatchString(got)
}

func (t *talk) end(code string) {
	t.check(t.in.Close())
	for line := range t.lines {
		if !strings.Contains(line, `"event":"LogEntry"`) {
			t.fatalf("at the end: %s", line)
		}
	}
	_ = t.cmd.Wait()
	want, _ := strconv.Atoi(code)
	if got := t.cmd.ProcessState.ExitCode(); got != want {
		t.fatalf("exit code %d", got)
	}
	t.cmd = nil
}

func (t *talk) finish() {
	t.check(t.in.Close())
	for range t.lines {
		continue
	}
	t.check(t.cmd.Wait())
	t.cmd = nil
}

func (t *talk) kill() {
	if t.cmd != nil {
		_ = t.cmd.Process.Kill()
		_ = t.cmd.Wait()
		t.cmd = nil
	}
}

func (t *talk) zip(rest string) {
	path, rest, _ := strings.Cut(rest, " ")
	name, want, _ := strings.Cut(rest, " ")
	r, err := zip.OpenReader(filepath.Join(t.dir, path))
	t.check(err)
	defer r.Close()
	f, err := r.Open(name)
	t.check(err)
	got, err := io.ReadAll(f)
	t.check(err)
	if !matches(want, strings.TrimSuffix(string(got), "\n")) {
		t.fatalf("the entry has %s", got)
	}
}

func (t *talk) files(verb, rest string) {
	name, text, _ := strings.Cut(rest, " ")
	path := filepath.Join(t.dir, name)
	got, err := os.ReadFile(path)
	if text != "" {
		quoted, bad := strconv.Unquote(text)
		t.check(bad)
		text = quoted
	}
	switch verb {
	case "write":
		t.check(os.MkdirAll(filepath.Dir(path), 0o755))
		t.check(os.WriteFile(path, []byte(text), 0o644))
	case "rm":
		t.check(os.Remove(path))
	case "file":
		if t.check(err); string(got) != text {
			t.fatalf("the file has %q", got)
		}
	case "gone":
		if err == nil {
			t.fatalf("the file is there")
		}
	default:
		t.fatalf("no such line")
	}
}

package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
)

// outcome is what a command left behind.
type outcome struct {
	exit           int
	stdout, stderr string
	object         map[string]any // nil if stdout is empty
}

// finish checks what holds for every run: stdout is empty or one compact JSON object and one line
// end.
func finish(t testing.TB, exit int, stdout, stderr *bytes.Buffer) outcome {
	t.Helper()
	o := outcome{exit: exit, stdout: stdout.String(), stderr: stderr.String()}
	if o.stdout == "" {
		return o
	}
	line, ok := strings.CutSuffix(o.stdout, "\n")
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(line)); err != nil || !ok || want.String() != line {
		t.Fatalf("stdout is not one compact line of JSON: %q (%v)", o.stdout, err)
	}
	if err := json.Unmarshal([]byte(line), &o.object); err != nil || o.object == nil {
		t.Fatalf("stdout is not one JSON object: %q (%v)", o.stdout, err)
	}
	return o
}

func command(t testing.TB, name, stdin string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit := Command(name, strings.NewReader(stdin), &stdout, &stderr, testOptions())
	return finish(t, exit, &stdout, &stderr)
}

// wantError checks an error object; field "" means none.
func (o outcome) wantError(t *testing.T, exit int, code, field string) {
	t.Helper()
	if o.exit != exit || o.object["error"] != true || o.object["code"] != code {
		t.Errorf("exit %d, %s; want exit %d and code %s", o.exit, o.stdout, exit, code)
	}
	if text, _ := o.object["message"].(string); text == "" || code == "parse_error" && !strings.HasPrefix(text, "Invalid JSON: ") {
		t.Errorf("message %q of code %s", text, code)
	}
	if got, _ := o.object["field"].(string); field != "" && got != field {
		t.Errorf("field %q, want %q", got, field)
	}
}

// want checks a success with one member of the reply.
func (o outcome) want(t *testing.T, key string, value any) {
	t.Helper()
	if o.exit != 0 || o.object["error"] == true || o.object[key] != value || o.stderr != "" {
		t.Errorf("exit %d, %s%s; want exit 0 and %s = %v", o.exit, o.stdout, o.stderr, key, value)
	}
}

func TestBadInputOfProcess(t *testing.T) {
	f := func(stdin, code, field string) {
		t.Helper()
		command(t, "process", stdin).wantError(t, 1, code, field)
	}
	f("", "parse_error", "")
	f("{not json", "parse_error", "")
	f(`{"raw_input":"a"} {}`, "parse_error", "")
	f("\ufeff\ufeff"+`{"raw_input":"a"}`, "parse_error", "")
	f(`{"raw_input":NaN}`, "parse_error", "")
	f("{\"raw_input\":\"\xff\"}", "parse_error", "")
	f(`[1]`, "invalid_envelope", "")
	f(`"x"`, "invalid_envelope", "")
	f(`null`, "invalid_envelope", "")
	f(`{}`, "invalid_envelope", "")
	f(`{"foo":1}`, "invalid_envelope", "")
	f(`{"raw_input":"a","iteration":"3"}`, "invalid_envelope", "iteration")
	f(`{"raw_input":"a","iteration":2.5}`, "invalid_envelope", "iteration")
}

func TestOneCommandIntoTheNext(t *testing.T) {
	created := command(t, "create", `{"raw_input":"hi","user_id":"u","session_id":"s","stage_order":["a","b"]}`)
	created.want(t, "current_stage", "start")
	command(t, "process", created.stdout).want(t, "current_stage", "a")
	may := command(t, "can-continue", created.stdout)
	if want := `{"can_continue":true,"terminal_reason":null,"iteration":0,"llm_call_count":0,"agent_hop_count":0}` + "\n"; may.exit != 0 || may.stdout != want {
		t.Errorf("can-continue: exit %d, %s", may.exit, may.stdout)
	}
	command(t, "result", created.stdout).want(t, "response", nil)
	command(t, "validate", created.stdout).want(t, "valid", true)
	command(t, "validate", "{not json").want(t, "valid", false)
	command(t, "validate", "").want(t, "valid", false)
}

func TestOutputIsCompact(t *testing.T) {
	o := command(t, "process", " {\n \"raw_input\" : \"<a> & \\\"b \\n\",\r\n\t\"metadata\": {\n \"x\": [1, 2] } }\n")
	o.want(t, "current_stage", "perception")
	if !strings.Contains(o.stdout, `<a> & \"b \n`) || !strings.Contains(o.stdout, `{"x":[1,2]}`) {
		t.Error(o.stdout)
	}
}

func TestOverBounds(t *testing.T) {
	o := command(t, "process", `{"raw_input":"a","llm_call_count":10}`)
	o.wantError(t, 1, "bounds_exceeded", "")
	if o.object["message"] != "Cannot continue: max_llm_calls_exceeded" || o.object["terminated"] != true {
		t.Error(o.stdout)
	}
	// The reply is an envelope still: the leftovers of the error fall away on the next pass, and it
	// stays as it is.
	again := command(t, "process", o.stdout)
	if again.exit != 1 || again.stdout != o.stdout {
		t.Errorf("the same again: exit %d, %s, want %s", again.exit, again.stdout, o.stdout)
	}
}

func TestOverBoundsWithMembersInTheWay(t *testing.T) {
	o := command(t, "process", `{"raw_input":"a","llm_call_count":10,"message":"mine","c\u006fde":7,"error":false,"trace":1}`)
	o.wantError(t, 1, "bounds_exceeded", "")
	for _, key := range []string{`"message":`, `"code":`, `"error":`} {
		if n := strings.Count(o.stdout, key); n != 1 {
			t.Errorf("%d times %s in %s", n, key, o.stdout)
		}
	}
	if o.object["trace"] == nil {
		t.Error(o.stdout)
	}
}

func TestVersionReadsNothing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	exit := Command("version", iotest.ErrReader(errors.New("read")), &stdout, &stderr, Options{Version: Build{Server: "v9"}})
	if want := `{"version":"1.0.0","build_time":"unknown","go_version":"unknown","server_version":"v9"}` + "\n"; exit != 0 || stdout.String() != want {
		t.Errorf("exit %d, %s", exit, stdout.String())
	}
}

func TestVersionShowsWhatIsKnownBesides(t *testing.T) {
	got := string(Build{Server: "v9", BuildTime: "b", Go: "g", Revision: `"r"`, Modified: true, Arch: "a"}.append(nil))
	want := `{"version":"1.0.0","build_time":"b","go_version":"g","server_version":"v9","revision":"\"r\"","arch":"a","modified":true}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNamesAreCommands(t *testing.T) {
	for _, name := range Names() {
		if verbOf(name) == nil || !strings.Contains(usage, "\n  "+name+" ") {
			t.Errorf("%s is no command or has no usage", name)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	for _, name := range []string{"frobnicate", "", "Process", "can_continue"} {
		o := command(t, name, "{}")
		if o.exit != 1 || o.stdout != "" || !strings.HasPrefix(o.stderr, "Unknown command: "+name+"\n") || !strings.Contains(o.stderr, "Usage") {
			t.Errorf("%q: %+v", name, o)
		}
	}
}

func TestInputSize(t *testing.T) {
	f := func(n int, code string) {
		t.Helper()
		opt := testOptions()
		opt.MaxBodyBytes = 100
		r := strings.NewReader(`{"raw_input":"` + strings.Repeat("x", n-16) + `"}`)
		var stdout, stderr bytes.Buffer
		o := finish(t, Command("process", r, &stdout, &stderr, opt), &stdout, &stderr)
		if code == "" {
			o.want(t, "current_stage", "perception")
		} else {
			o.wantError(t, 1, code, "")
		}
	}
	f(99, "")
	f(100, "")
	f(101, "too_large")
	f(10000, "too_large")
}

func TestReadError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	r := io.MultiReader(strings.NewReader(`{"raw_input"`), iotest.ErrReader(errors.New("gone")))
	o := finish(t, Command("process", r, &stdout, &stderr, testOptions()), &stdout, &stderr)
	o.wantError(t, 1, "read_error", "")
}

func TestPanicIsAnswered(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o := finish(t, Command("create", strings.NewReader(`{"raw_input":"x"}`), &stdout, &stderr, Options{MaxBodyBytes: defaultMaxBodyBytes}), &stdout, &stderr)
	o.wantError(t, 1, "internal", "")
	if !strings.Contains(o.stderr, "panic") || strings.Contains(o.stdout, "goroutine") {
		t.Errorf("%+v", o)
	}
}

// failing is a stdout that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestStdoutThatFails(t *testing.T) {
	var stderr bytes.Buffer
	if exit := Command("version", nil, failing{}, &stderr, testOptions()); exit != 1 || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("exit %d, %s", exit, stderr.String())
	}
	if exit := Bridge(strings.NewReader(`{"command":"version"}`), failing{}, &stderr, testOptions()); exit != 1 {
		t.Errorf("bridge: exit %d", exit)
	}
}

// TestStdoutWithoutReader runs the command as a process: a signal must not end it, exit status 1
// must.
func TestStdoutWithoutReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=process")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(`{"raw_input":"hi"}`), w, &stderr
	err = cmd.Run()
	w.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), "cannot write to standard output") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

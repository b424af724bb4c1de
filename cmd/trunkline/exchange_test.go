package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// outcome is what one run of the program left behind.
type outcome struct {
	code        int
	out, errOut string
	object      map[string]any // the one line on stdout
}

func (s outcome) str(key string) string { v, _ := s.object[key].(string); return v }

// ask runs the program with args on stdin's text. Its stdout must be nothing, or one compact object
// in one line.
func ask(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	s := outcome{code: run(args, strings.NewReader(stdin), &out, &errOut)}
	s.out, s.errOut = out.String(), errOut.String()
	if s.out == "" {
		return s
	}
	line, whole := strings.CutSuffix(s.out, "\n")
	if err := json.Unmarshal([]byte(line), &s.object); err != nil || !whole || strings.Contains(line, "\n") {
		t.Fatalf("%q on %q: stdout is not one object in one line: %q (%v)", args, stdin, s.out, err)
	}
	return s
}

// TestRefusals holds the rows of envelope §8 for the command line.
func TestRefusals(t *testing.T) {
	f := func(name, in, code, field string) {
		t.Helper()
		s := ask(t, in, name)
		if s.code != 1 || s.object["error"] != true || s.str("code") != code || s.str("field") != field || s.str("message") == "" {
			t.Errorf("%s on %q: exit %d, %s, want %s %q", name, in, s.code, s.out, code, field)
		}
		if code == "parse_error" && !strings.HasPrefix(s.str("message"), "Invalid JSON: ") {
			t.Errorf("%s on %q: message %q", name, in, s.str("message"))
		}
	}
	for _, name := range []string{"process", "create", "can-continue", "result"} {
		f(name, "", "parse_error", "")
		f(name, " \n", "parse_error", "")
		f(name, "{not json", "parse_error", "")
		f(name, `{"raw_input":"a"} {}`, "parse_error", "")
		f(name, "\xef\xbb\xbf\xef\xbb\xbf{}", "parse_error", "")
		f(name, `{"iteration":NaN}`, "parse_error", "")
		f(name, "{\"raw_input\":\"\xff\"}", "parse_error", "")
		f(name, `[1]`, "invalid_envelope", "")
		f(name, `"x"`, "invalid_envelope", "")
		f(name, `null`, "invalid_envelope", "")
	}
	f("process", `{}`, "invalid_envelope", "")
	f("process", `{"foo":1}`, "invalid_envelope", "")
	over := func(member, field string) {
		t.Helper()
		f("process", `{"envelope_id":"e","raw_input":"hi",`+member+`}`, "invalid_envelope", field)
	}
	for _, v := range []string{`"3"`, `2.5`, `true`, `-1`, `2147483648`} {
		over(`"iteration":`+v, "iteration")
	}
	over(`"max_llm_calls":0`, "max_llm_calls")
	over(`"outputs":[]`, "outputs")
	over(`"outputs":{"plan":"x"}`, "outputs.plan")
	over(`"stage_order":["a","a"]`, "stage_order")
	over(`"stage_order":["a",""]`, "stage_order")
	over(`"stage_order":["a",1]`, "stage_order")
	over(`"received_at":"yesterday"`, "received_at")
	over(`"received_at":12`, "received_at")
	over(`"received_at":"2025-13-01T00:00:00Z"`, "received_at")
}

// TestAccepted holds the rows of envelope §8 that are no refusals.
func TestAccepted(t *testing.T) {
	f := func(member, want string) {
		t.Helper()
		s := ask(t, `{"envelope_id":"e","raw_input":"hi",`+member+`}`, "process")
		if s.code != 0 || !strings.Contains(s.out, want) || s.errOut != "" {
			t.Errorf("%s: exit %d, %s%s, want %s", member, s.code, s.out, s.errOut, want)
		}
	}
	f(`"received_at":"2025-12-10T10:00:00.123456"`, `"received_at":"2025-12-10T10:00:00.123456"`)
	f(`"all_goals":null`, `"all_goals":[]`)
	f(`"metadata":null`, `"metadata":{}`)
	f(`"terminal_reason":"whatever"`, `"terminal_reason":"whatever"`)
	f(`"terminal_reason":"whatever"`, `"terminated":true`)
	f(`"raw_input":"<&>"`, `"raw_input":"<&>"`)
	if s := ask(t, `{not json`, "validate"); s.code != 0 || s.object["valid"] != false {
		t.Errorf("validate: exit %d, %s", s.code, s.out)
	}
}

func TestBoundsAreAnAnswerAndAFailure(t *testing.T) {
	s := ask(t, `{"envelope_id":"e","raw_input":"hi","llm_call_count":10}`, "process")
	if s.code != 1 || s.object["error"] != true || s.str("code") != "bounds_exceeded" || s.str("envelope_id") != "e" ||
		s.str("message") != "Cannot continue: max_llm_calls_exceeded" || s.str("terminal_reason") != "max_llm_calls_exceeded" {
		t.Errorf("exit %d, %s", s.code, s.out)
	}
}

// TestBridge is the form without arguments (envelope §2.2).
func TestBridge(t *testing.T) {
	f := func(in string, code int, want string) {
		t.Helper()
		s := ask(t, in)
		if s.code != code || !regexp.MustCompile(want).MatchString(s.out+s.errOut) {
			t.Errorf("%s: exit %d, %s%s, want %d and %s", in, s.code, s.out, s.errOut, code, want)
		}
	}
	const yes = `^\{"can_continue":true,"terminal_reason":null,"iteration":0,"llm_call_count":0,"agent_hop_count":0\}\n$`
	f(`{"command":"can_continue","envelope":{"envelope_id":"e"}}`, 0, yes)
	f(`{"command":"can-continue","envelope_id":"e"}`, 0, yes)
	f(`{"command":"create","raw_input":"hi"}`, 0, `"current_stage":"start"`)
	f(`{"command":"get_result","envelope":{"envelope_id":"e"}}`, 0, `"envelope_id":"e"`)
	f(`{"command":"process","envelope":{"foo":1}}`, 0, `"code":"invalid_envelope"`)
	f(`{"command":"process","envelope":{"envelope_id":"e","llm_call_count":10}}`, 0, `"code":"bounds_exceeded"`)
	f(`{"command":"frobnicate"}`, 0, `"code":"unknown_command"`)
	f(`{"command":"version"}`, 0, `"version":"1\.0\.0"`)
	f(`{"command":5}`, 1, `Usage`)
	f(`{"envelope_id":"e"}`, 1, `Usage`)
	f(``, 1, `Usage`)
}

func TestBridgeLeavesStdoutAloneWithoutACommand(t *testing.T) {
	if s := ask(t, ""); s.out != "" || s.code != 1 {
		t.Errorf("exit %d, stdout %q", s.code, s.out)
	}
}

func TestSettingsOfTheCommands(t *testing.T) {
	f := func(in string, code int, want string, args ...string) {
		t.Helper()
		s := ask(t, in, args...)
		if s.code != code || !strings.Contains(s.out+s.errOut, want) {
			t.Errorf("%q: exit %d, %s%s, want %d and %s", args, s.code, s.out, s.errOut, code, want)
		}
	}
	const in = `{"envelope_id":"e"}`
	f(in, 0, `"current_stage":"perception"`, "process", "--set", "http.max_body_bytes=19")
	f(in, 1, `"code":"too_large"`, "process", "--set=http.max_body_bytes=18")
	f(in, 0, `"current_stage":"perception"`, "process", "--json", "--set=http.max_body_bytes=19")
	f(in, 0, `"current_stage":"a"`, "process", "--set=http.default_stage_order=a,b")
	f(in, 1, "cannot use http.max_body_bytes", "process", "--set=http.max_body_bytes=0")
	f(in, 1, "this command takes", "process", "--set=kernel.loops=1")
	f(in, 1, `cannot use argument "x"`, "process", "x")
	f(in, 1, "unknown flag: --nope", "version", "--nope")
	f(in, 1, "flag needs an argument: --set", "process", "--set")
	t.Setenv("TRUNKLINE_HTTP_MAX_BODY_BYTES", "18")
	f(in, 1, `"code":"too_large"`, "process")
	f(in, 0, `"valid":true`, "validate", "--set", "http.max_body_bytes=19")
	f(`{"command":"can-continue"}`, 1, `"code":"too_large"`)
}

// failing is a stdin that breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestStdinThatBreaks(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := run([]string{"process"}, failing{}, &out, &errOut); code != 1 || !strings.Contains(out.String(), `"code":"read_error"`) {
		t.Errorf("exit %d, %s%s", code, out.String(), errOut.String())
	}
}

func TestAPersonAtATerminalGetsHelp(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	defer tty.Close()
	var out, errOut bytes.Buffer
	if code := run([]string{}, tty, &out, &errOut); code != 0 || !strings.Contains(out.String(), "Available Commands:") || errOut.Len() != 0 {
		t.Errorf("exit %d, %s%s", code, out.String(), errOut.String())
	}
}

func TestEveryCommandOfTheExchangeIsAVerb(t *testing.T) {
	for name, short := range exchangeVerbs {
		cmd, _, err := newRootCmd().Find([]string{name})
		if err != nil || cmd.Name() != name || cmd.Short != short {
			t.Errorf("%s: %v, %v", name, cmd.Name(), err)
		}
	}
}

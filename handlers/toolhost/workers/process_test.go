package workers

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	good       = `OK {"n":1} ""`
	parseError = `TOOL_ERROR  "toolhost invalid response JSON" parse_error ""`
	timedOut   = `TOOL_ERROR  "toolhost timed out for AID.T.v1" timeout `
)

func TestServe(t *testing.T) {
	r := newRig(t, nil, "good")
	for range 50 {
		r.want(good)
	}
	if n := r.started(); n != 1 {
		t.Errorf("%d processes for calls in a row, want 1", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.ended(1)[0]; got != "closed 0" {
		t.Errorf("ended as %s", got)
	}
	r.want(`TOOL_ERROR  "the tool is closed" exception "the tool is closed"`)
}

// TestRequestLine: exactly what toolhost §4.9 states, with the whole state.
func TestRequestLine(t *testing.T) {
	f := func(stateless bool, input, want string) {
		t.Helper()
		r := newRig(t, func(c *ProcessConfig) { c.Stateless = stateless }, "echo")
		var s sessionstate.State
		s.Set(6, sessionstate.Artifact{Type: "t\n", Provenance: "p", Content: `{"a":1}`, Size: 7})
		if got := r.call(10*time.Second, input, &s); string(got.Output) != want {
			t.Errorf("request %s (%s), want %s", got.Output, short(got), want)
		}
	}
	f(false, `{"x": "é\u0000"}`, `{"aid":"AID.T.v1","input_json":"{\"x\": \"é\\u0000\"}","ds_state":{"slots":{"6":{"type":"t\n","provenance":"p","content_json":"{\"a\":1}","size_bytes":7}}}}`)
	f(true, `{}`, `{"aid":"AID.T.v1","input_json":"{}","ds_state":{"slots":{}}}`)
}

// TestNothingLeaksBetweenCalls: the worker remembers; what it is sent does not depend on that.
func TestNothingLeaksBetweenCalls(t *testing.T) {
	r := newRig(t, nil, "leak")
	for i, content := range []string{"alice", "bob", ""} {
		var s sessionstate.State
		want := `"ds_state":{"slots":{}}`
		if content != "" {
			s.Set(0, sessionstate.Artifact{Content: content})
			want = `"ds_state":{"slots":{"0":{"type":"","provenance":"","content_json":"` + content + `","size_bytes":0}}}`
		}
		got := r.call(10*time.Second, "{}", &s)
		if !strings.HasPrefix(string(got.Output), strconv.Itoa(i+1)+" ") || !strings.Contains(string(got.Output), want) {
			t.Errorf("call %d: %s, want %s", i, got.Output, want)
		}
		if a, ok := s.Get(1); !ok || a.Content != "seen"+strconv.Itoa(i+1) {
			t.Errorf("call %d: slot 1 is %+v", i, a)
		}
	}
	if n := r.started(); n != 1 {
		t.Errorf("%d processes, want one that could leak", n)
	}
}

// TestBadWorkers is toolhost §3.5 and §8: what is no answer, what it comes to, and how the worker
// ends.
func TestBadWorkers(t *testing.T) {
	f := func(want, ended string, behaviour ...string) {
		t.Run(behaviour[0], func(t *testing.T) {
			r := newRig(t, nil, behaviour...)
			r.want(want)
			if got := r.ended(1)[0]; got != ended {
				t.Errorf("ended as %q, want %q", got, ended)
			}
			r.want(want) // another worker, the same answer
			if n := r.started(); n != 2 {
				t.Errorf("%d processes, want 2", n)
			}
		})
	}
	f(`TOOL_ERROR  "toolhost exit 3: out of luck" crash "out of luck"`, "exited 3", "crash")
	f(`TOOL_ERROR  "toolhost exit 143: " crash ""`, "exited 143", "abort")
	f(`TOOL_ERROR  "toolhost exit 7: cannot start " crash "cannot start "`, "exited 7", "early-exit")
	f(`TOOL_ERROR  "toolhost exit 9: " crash ""`, "exited 9", "close-exit")
	f(`TOOL_ERROR  "toolhost exit 137: " crash ""`, "closed stdout 137", "close")
	f(parseError, "garbage 137", "garbage")
	f(parseError, "oversize 137", "flood")
	f(parseError, "oversize 137", "long", strconv.Itoa(2<<20))
	f(parseError, "oversize 137", "long", strconv.Itoa(maxReply+1))
	f(parseError, "garbage 137", "raw", "\n")
	f(parseError, "garbage 137", "raw", "[]\n")
	f(parseError, "unsolicited output 137", "twice")
	f(parseError, "unsolicited output 137", "loud-start")
	f(`TOOL_ERROR  "toolhost exit 6: " crash ""`, "exited 6", "orphan")
	f(good, "exited 0", "reply-exit")
}

// TestExitAfterEachReply: a worker that ends without having taken the next request is no reason for
// that to fail.
func TestExitAfterEachReply(t *testing.T) {
	r := newRig(t, nil, "reply-exit")
	for range 40 {
		r.want(good)
	}
}

// TestNoNewPrivileges: a worker gets no more rights by a program that it starts.
func TestNoNewPrivileges(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a thing of Linux")
	}
	r := newRig(t, func(c *ProcessConfig) {
		c.Command = []string{"/bin/sh", "-c", `read x; set -- $(grep NoNewPrivs /proc/self/status); echo "{\"status\":\"OK\",\"output_json\":\"$2\"}"`}
		c.Oneshot = true
	})
	r.want(`OK 1 ""`)
}

func TestTimeout(t *testing.T) {
	f := func(detail string, behaviour ...string) {
		t.Run(behaviour[0], func(t *testing.T) {
			r := newRig(t, nil, behaviour...)
			if got := short(r.call(300*time.Millisecond, "{}", nil)); got != timedOut+detail {
				t.Errorf("%s, want %s", got, timedOut+detail)
			}
			if got := r.ended(1)[0]; got != "timeout 137" {
				t.Errorf("ended as %q", got)
			}
		})
	}
	f(`"still [1m here "`, "hang")
	f(`""`, "raw", `{"status":"OK"`) // no end of the line
	f(`""`, "grandchild")
}

func TestSlowStart(t *testing.T) { newRig(t, nil, "slowstart").want(good) }

// TestLongReply: the limit is for the line without its end.
func TestLongReply(t *testing.T) {
	r := newRig(t, nil, "long", strconv.Itoa(maxReply))
	for range 2 {
		got := r.call(20*time.Second, "{}", nil)
		if want := maxReply - len(`{"status":"OK","output_json":""}`); got.Status() != tool.OK || len(got.Output) != want {
			t.Errorf("%v, %d bytes, want %d", got.Status(), len(got.Output), want)
		}
	}
	if n := r.started(); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// TestLongRequest: more than a pipe holds.
func TestLongRequest(t *testing.T) {
	for _, n := range []int{atOnce - 200, atOnce, 100 << 10, 1 << 19} {
		r := newRig(t, nil, "echo")
		input := `{"x":"` + strings.Repeat("y", n) + `"}`
		for range 2 {
			if got := r.call(20*time.Second, input, nil); !strings.Contains(string(got.Output), strings.Repeat("y", n)) {
				t.Errorf("%d bytes: %.200s", n, short(got))
			}
		}
		if n := r.started(); n != 1 {
			t.Errorf("%d processes", n)
		}
	}
}

// TestReplyBeforeTheRequestIsRead: that is no reply, whatever it states, be the request in the pipe
// or half of it still here.
func TestReplyBeforeTheRequestIsRead(t *testing.T) {
	for _, size := range []int{1, 1 << 20} {
		r := newRig(t, nil, "loud-start")
		if got := short(r.call(20*time.Second, `{"x":"`+strings.Repeat("y", size)+`"}`, nil)); got != parseError {
			t.Errorf("%s", got)
		}
		if got := r.ended(1)[0]; got != "unsolicited output 137" {
			t.Errorf("ended as %q", got)
		}
	}
}

// TestUnsolicitedOutput: what a worker states between calls is no one's answer.
func TestUnsolicitedOutput(t *testing.T) {
	r := newRig(t, nil, "later")
	r.want(good)
	time.Sleep(200 * time.Millisecond)
	r.want(good)
	if got := r.ended(1)[0]; got != "unsolicited output 137" {
		t.Errorf("ended as %q", got)
	}
	if n := r.started(); n != 2 {
		t.Errorf("%d processes, want 2", n)
	}
}

func TestExitBetweenCalls(t *testing.T) {
	r := newRig(t, nil, "idle-exit")
	r.want(good)
	if got := r.ended(1)[0]; got != "exited 4" {
		t.Errorf("ended as %q", got)
	}
	r.want(good)
}

// TestStderrOfOneCall: what a worker wrote during a call is not shown to the next caller.
func TestStderrOfOneCall(t *testing.T) {
	r := newRig(t, nil, "stderr")
	r.want(good)
	r.want(`TOOL_ERROR  "toolhost exit 5: secret of 2" crash "secret of 2"`)
}

// TestGroupDies: what a worker started ends with it.
func TestGroupDies(t *testing.T) {
	for _, kind := range []string{"grandchild", "orphan", "zombies"} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, nil, kind)
			r.call(500*time.Millisecond, "{}", nil)
			// The rig looks for what is left.
		})
	}
}

// TestDaemon: a process that left the group holds the pipes open; no one waits for it.
func TestDaemon(t *testing.T) {
	file := t.TempDir() + "/pid"
	r := newRig(t, nil, "daemon", file)
	r.want(`TOOL_ERROR  "toolhost exit 6: " crash ""`)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestOneshot(t *testing.T) {
	f := func(want, ended string, args ...string) {
		t.Helper()
		r := newRig(t, func(c *ProcessConfig) { c.Oneshot = true }, append([]string{"oneshot"}, args...)...)
		for range 2 {
			r.want(want)
		}
		for _, got := range r.ended(2) {
			if got != ended && ended != "" { // it may be done before it is killed
				t.Errorf("%v: ended as %q, want %q", args, got, ended)
			}
		}
	}
	f(`OK {"aid":"AID.T.v1","input_json":"{}","ds_state":{"slots":{}}} ""`, "exited 0", "echo")
	f(`OK  ""`, "exited 0", "print", `{"status":"OK"}`, "0")
	f(`OK  ""`, "exited 0", "print", `{"status":"OK"}`+"\r\n", "0")
	f(`TOOL_ERROR  "toolhost exit 3: words" crash "words"`, "exited 3", "print", okReply, "3")
	f(`TOOL_ERROR  "toolhost invalid response JSON" parse_error "words"`, "exited 0", "print", ``, "0")
	f(`TOOL_ERROR  "toolhost invalid response JSON" parse_error "words"`, "exited 0", "print", okReply+okReply, "0")
	f(parseError, "", "long", strconv.Itoa(maxReply+1))
	f(parseError, "oversize 137", "flood")
	f(`TOOL_ERROR  "toolhost exit 6: " crash ""`, "exited 6", "daemon")

	r := newRig(t, func(c *ProcessConfig) { c.Oneshot = true }, "oneshot", "hang")
	if got := short(r.call(200*time.Millisecond, "{}", nil)); got != timedOut+`""` {
		t.Errorf("%s", got)
	}
}

// TestPrograms: they take a request in their own ways, byte by byte or what there is, and answer in
// one or in pieces.
func TestPrograms(t *testing.T) {
	f := func(command ...string) {
		t.Helper()
		if _, err := exec.LookPath(command[0]); err != nil {
			return
		}
		r := newRig(t, func(c *ProcessConfig) { c.Command, c.Pool.Max = command, 1 })
		for _, n := range []int{1, 5000, 100_000, 1} {
			for range 3 {
				if got := short(r.call(20*time.Second, `{"x":"`+strings.Repeat("y", n)+`"}`, nil)); got != `OK {} ""` {
					t.Errorf("%s: %s", command[0], got)
				}
			}
		}
		if n := r.started(); n != 1 {
			t.Errorf("%s: %d processes", command[0], n)
		}
	}
	const answer = `{"status":"OK","output_json":"{}"}`
	f("sh", "-c", `while read -r line; do echo '`+answer+`'; done`)
	f("sh", "-c", `while read -r line; do printf '{"status":"OK",'; sleep 0.001; echo '"output_json":"{}"}'; done`)
	f("sed", "-u", `s/.*/`+answer+`/`)
	f("python3", "-c", "import sys\nfor line in sys.stdin: print('"+answer+"', flush=True)")
	f("perl", "-e", `$| = 1; while (<STDIN>) { print '`+answer+`', "\n" }`)
}

// TestWhyNoReply: an output that is no reply is shown with the reason, the beginning of a long one,
// and what stderr leaves room for.
func TestWhyNoReply(t *testing.T) {
	f := func(want string, oneshot bool, args ...string) {
		t.Helper()
		r := newRig(t, func(c *ProcessConfig) { c.Oneshot = oneshot }, args...)
		d := r.call(10*time.Second, "{}", nil).Dispatch()
		if d == nil || d.Type != tool.ParseError || d.Detail != want {
			t.Errorf("%v: %+v, want %s", args, d, want)
		}
	}
	f("invalid JSON: unexpected character 'd' at offset 0: debug", false, "raw", "debug\n")
	f(`more than the one line of a reply: debug {"status":"OK"} `, false, "raw", "debug\n{\"status\":\"OK\"}\n")
	f(`output_json: must be a string: {"status":"OK","output_json":{"a":1}}`, false, "raw", `{"status":"OK","output_json":{"a":1}}`+"\n")
	f(`error: must be a string: {"error":5}`, false, "raw", `{"error":5}`+"\n")
	f(`neither status nor error in it: {"ok":true}`, false, "raw", `{"ok":true}`+"\n")
	f(`duplicate key: status: {"status":"OK","status":"OK"}`, false, "raw", `{"status":"OK","status":"OK"}`+"\n")
	f(`ds_state: must be an object: {"status":"OK","ds_state":[]}`, false, "raw", `{"status":"OK","ds_state":[]}`+"\n")
	f(`ds_state: bad slot "8": {"status":"OK","ds_state":{"slots":{"8":{}}}}`, false, "raw", `{"status":"OK","ds_state":{"slots":{"8":{}}}}`+"\n")
	f("not a JSON object: [1]", false, "raw", "[1]\n")
	f("empty reply", false, "raw", "\n")
	f("not a JSON object: "+strings.Repeat("1", maxShown), false, "raw", strings.Repeat("1", maxShown)+"\n")
	f("not a JSON object: "+strings.Repeat("1", maxShown)+"…", false, "raw", strings.Repeat("1", maxShown+1)+"\n")
	f("longer than a reply may be: "+strings.Repeat("x", maxShown)+"…", false, "flood")
	f("empty reply; stderr: words", true, "oneshot", "print", "", "0")
	f(`not a JSON object: 7; stderr: words`, true, "oneshot", "print", "7", "0")
	long := explain("why", []byte("text"), strings.Repeat("x", 3*tool.MaxDetail)+"end")
	if len(long) != tool.MaxDetail || !strings.HasPrefix(long, "why: text; stderr: xxx") || !strings.HasSuffix(long, "xend") {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

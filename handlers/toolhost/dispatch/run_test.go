package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// TestRealProgram calls the program as the Python layer does.
func TestRealProgram(t *testing.T) {
	c := Config{Root: root(t), Env: []string{"PATH=" + os.Getenv("PATH")}}
	f := func(aid string, inputs any, output string) {
		t.Helper()
		if got, err := c.Run(t.Context(), aid, inputs); err != nil || got != output {
			t.Errorf("%s %v: %q, %v, want %q", aid, inputs, got, err, output)
		}
	}
	f("AID.NOOP.v1", nil, "{}")
	f("AID.ASK_SUP.v1", map[string]any{"q": "<é>\n\u2028", "n": 1}, `{"n":1,"q":"<é>\n\u2028"}`)
	f("AID.ASK_SUP.v1", json.RawMessage(`{ "z": 1.50, "a": 12345678901234567890 }`), `{"z":1.50,"a":12345678901234567890}`)
	f("AID.ASK_SUP.v1", struct {
		Path string `json:"path"`
	}{"x"}, `{"path":"x"}`)
	f("AID.EMBED.TEXT.v1", map[string]any{"text": "hi", "dim": 4}, `{"provider":"hash","dim":4,"embedding":[-0.170019,0.094569,-0.782131,0.591964]}`)

	var r *ToolResult
	for aid, text := range map[string]string{"AID.NOPE.v1": "MISSING_TOOL: AID.NOPE.v1", "AID.FILE.READ.v1": "missing path"} {
		_, err := c.Run(t.Context(), aid, nil)
		if !errors.As(err, &r) || r.Status != tool.ToolError || r.Text != text || r.Output != "{}" || r.AID != aid {
			t.Errorf("%s: %v", aid, err)
		}
	}
	var d *tool.DispatchError
	if _, err := c.Run(t.Context(), "--nope", nil); !errors.As(err, &d) || d.Type != tool.Crash || !strings.Contains(d.Detail, "Usage") {
		t.Errorf("a usage error is %v", err)
	}
}

// TestDefaults: the zero Config takes the environment's names.
func TestDefaults(t *testing.T) {
	t.Setenv(rootName, root(t))
	if got, err := Run(t.Context(), "AID.NOOP.v1", nil); err != nil || got != "{}" {
		t.Errorf("%q, %v", got, err)
	}
}

// fake makes a root whose program is a shell script.
func fake(t *testing.T, script string) Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The write end of a program that is being started by another goroutine may still be open in a child: see syscall.ForkLock.
	syscall.ForkLock.RLock()
	err := os.WriteFile(filepath.Join(dir, "build", "machina_cli"), []byte("#!/bin/sh\n"+script+"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Root: dir, Timeout: time.Minute}
}

func TestWhatTheProgramIsGiven(t *testing.T) {
	c := fake(t, `printf '%s|' "$@" >args; pwd >dir; cat >stdin; echo '{"status":"OK","output_json":"{\"a\":1}"}'`)
	if got, err := c.Run(t.Context(), "AID.X.v1", map[string]string{"k": "\"v\"\n"}); err != nil || got != `{"a":1}` {
		t.Fatalf("%q, %v", got, err)
	}
	f := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(c.Root, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	f("args", "tool_exec|AID.X.v1|")
	f("dir", c.Root+"\n")
	f("stdin", `{"input_json":"{\"k\":\"\\\"v\\\"\\n\"}","ds_state":{"slots":{}}}`+"\n")
}

func TestResults(t *testing.T) {
	f := func(reply string, status tool.Status, output, text string) {
		t.Helper()
		var r *ToolResult
		got, err := fake(t, "cat >/dev/null; cat <<'E'\n"+reply+"\nE").Run(t.Context(), "AID.X.v1", nil)
		switch {
		case status == tool.OK && (err != nil || got != output):
			t.Errorf("%s: %q, %v", reply, got, err)
		case status != tool.OK && (!errors.As(err, &r) || got != "" || r.Status != status || r.Output != output || r.Text != text):
			t.Errorf("%s: %q, %v", reply, got, err)
		}
	}
	f(`{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"slots":{}}}`, tool.OK, "{}", "")
	f(`{"status":"OK"}`, tool.OK, "{}", "")
	f(`{"ok":false,"status":"OK","output_json":"{\"a\":1}"}`, tool.OK, `{"a":1}`, "") // status counts, not ok
	f(`{"status":"INVALID_PICK","output_json":"{\"a\":1}","error":"e"}`, tool.InvalidPick, `{"a":1}`, "e")
	f(`{"status":"BREAKER_TRIP","error":"e"}`, tool.BreakerTrip, "{}", "e")
	f(`{"status":"SPLENDID","error":"\u00e9"}`, tool.ToolError, "{}", "é")
	f(`{"ok":false,"error":"no status"}`, tool.ToolError, "{}", "no status")
}

func TestWorkerFailureOfTheServer(t *testing.T) {
	c := fake(t, `echo '{"status":"TOOL_ERROR","error":"toolhost exit 3: ","dispatch_error":{"error":true,"aid":"A","type":"crash","detail":"d"}}'`)
	var r *ToolResult
	if _, err := c.Run(t.Context(), "A", nil); !errors.As(err, &r) || r.Dispatch == nil || *r.Dispatch != (tool.DispatchError{AID: "A", Type: tool.Crash, Detail: "d"}) {
		t.Errorf("%v", err)
	}
}

// fails expects a dispatch error whose detail contains a text.
func fails(t *testing.T, c Config, kind tool.DispatchType, detail string) {
	t.Helper()
	var d *tool.DispatchError
	got, err := c.Run(t.Context(), "AID.X.v1", nil)
	if !errors.As(err, &d) || got != "" || d.Type != kind || d.AID != "AID.X.v1" || !strings.Contains(d.Detail, detail) {
		t.Errorf("%q, %v, want %s with %q", got, err, kind, detail)
	}
}

func TestParseErrors(t *testing.T) {
	f := func(script, detail string) {
		t.Helper()
		fails(t, fake(t, script), tool.ParseError, detail)
	}
	f("exit 0", "output is empty")
	f("echo; echo ' '", "output is empty")
	f("echo hello", "output is not a reply: hello")
	f("echo '[]'", "not a reply")
	f("echo '{}'", "not a reply")
	f(`echo '{"status":5}'`, "not a reply")
	f(`echo '{"status":"OK","output_json":{}}'`, "not a reply")
	f(`echo '{"status":"OK"}'; echo log`, "not a reply")
	f(`echo log; echo '{"status":"OK"}'`, "not a reply")
	f(`printf '{"status":"OK","error":"\377"}'`, "not a reply")
}

func TestCrashes(t *testing.T) {
	f := func(script, detail string) {
		t.Helper()
		fails(t, fake(t, script), tool.Crash, detail)
	}
	f("exit 5", "rc=5")
	f("kill -9 $$", "rc=137")
	f(`echo '{"status":"OK"}'; echo why >&2; exit 3`, "{\"status\":\"OK\"}\nwhy")
	f("echo why >&2; exit 1", "why")
	f("echo only; exit 1", "only")
	f("exec <&-; exit 1", "rc=1") // it does not read its stdin
	long := fake(t, "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' y >&2; exit 1")
	fails(t, long, tool.Crash, strings.Repeat("x", maxDetail)+"\n"+strings.Repeat("y", maxDetail))
}

func TestNotFound(t *testing.T) {
	fails(t, Config{Root: t.TempDir()}, tool.NotFound, "machina_cli")
	fails(t, Config{Root: filepath.Join(t.TempDir(), "nowhere")}, tool.NotFound, "")
	c := fake(t, "exit 0")
	if err := os.Chmod(filepath.Join(c.Root, "build", "machina_cli"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, c, tool.NotFound, "permission denied")
	c.Binary = "build/machina_cli/x"
	fails(t, c, tool.NotFound, "not a directory")
}

func TestExceptions(t *testing.T) {
	c := fake(t, `echo '{"status":"OK"}'`)
	f := func(aid string, inputs any, detail string) {
		t.Helper()
		var d *tool.DispatchError
		if _, err := c.Run(t.Context(), aid, inputs); !errors.As(err, &d) || d.Type != tool.Exception || !strings.Contains(d.Detail, detail) {
			t.Errorf("%q %v: %v", aid, inputs, err)
		}
	}
	f("AID.X.v1", []int{1}, "not a JSON object")
	f("AID.X.v1", "{}", "not a JSON object")
	f("AID.X.v1", make(chan int), "cannot encode inputs")
	f("AID.X.v1", json.RawMessage(`{"a"}`), "cannot encode inputs")
	f("AID\x00.X", nil, "invalid argument")
}

// TestOutputIsCut: MaxOutput bytes count, and one more breaks the reply; the program is not kept waiting.
func TestOutputIsCut(t *testing.T) {
	f := func(size int) (string, error) {
		filler := size - len(`{"status":"OK","output_json":""}`)
		return fake(t, `printf '{"status":"OK","output_json":"'; head -c `+strconv.Itoa(filler)+` /dev/zero | tr '\0' x; printf '"}'`).Run(t.Context(), "AID.X.v1", nil)
	}
	if got, err := f(MaxOutput); err != nil || len(got) != MaxOutput-len(`{"status":"OK","output_json":""}`) {
		t.Errorf("at the limit: %d bytes, %v", len(got), err)
	}
	var d *tool.DispatchError
	if _, err := f(MaxOutput + 1); !errors.As(err, &d) || d.Type != tool.ParseError {
		t.Errorf("above the limit: %v", err)
	}
	if got, err := fake(t, `printf '{"status":"OK"}'; head -c 3000000 /dev/zero | tr '\0' ' '`).Run(t.Context(), "A", nil); err != nil || got != "{}" {
		t.Errorf("spaces behind the reply: %.100q, %v", got, err)
	}
}

// ended waits until no process of that number runs; one that only waits to be reaped does not.
func ended(t *testing.T, c Config, file string) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(c.Root, file))
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(pid)))
	for range 1000 {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(n) + "/stat")
		if _, rest, _ := strings.Cut(string(stat), ") "); n > 0 && (syscall.Kill(n, 0) != nil || strings.HasPrefix(rest, "Z")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still runs", n)
}

func TestNothingIsLeftBehind(t *testing.T) {
	const leave = "echo $$ >self; sleep 300 & echo $! >other; "
	f := func(script string, timeout time.Duration) error {
		t.Helper()
		c := fake(t, leave+script)
		c.Timeout = timeout
		_, err := c.Run(t.Context(), "AID.X.v1", nil)
		ended(t, c, "self")
		ended(t, c, "other")
		return err
	}
	var d *tool.DispatchError
	if err := f(`echo '{"status":"OK"}'`, time.Minute); err != nil { // although the other one holds the pipe
		t.Error(err)
	}
	if err := f("exit 4", time.Minute); !errors.As(err, &d) || d.Type != tool.Crash {
		t.Error(err)
	}
	if err := f("sleep 300", time.Second); !errors.As(err, &d) || d.Type != tool.Timeout || d.Detail != "timed out after 1s" {
		t.Error(err)
	}
	if err := f("exec >&- 2>&-; sleep 300", time.Second); !errors.As(err, &d) || d.Type != tool.Timeout {
		t.Error(err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	f := func(cause error, kind tool.DispatchType, ctx context.Context, after func()) {
		t.Helper()
		c := fake(t, "echo $$ >self; sleep 300")
		if after != nil {
			go func() {
				for pid := ""; !strings.HasSuffix(pid, "\n"); { // the file is there before its content is
					time.Sleep(time.Millisecond)
					text, _ := os.ReadFile(filepath.Join(c.Root, "self"))
					pid = string(text)
				}
				after()
			}()
		}
		var d *tool.DispatchError
		if _, err := c.Run(ctx, "AID.X.v1", nil); !errors.As(err, &d) || d.Type != kind || !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
		if after != nil {
			ended(t, c, "self")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	f(context.Canceled, tool.Exception, ctx, cancel)
	f(context.Canceled, tool.Exception, ctx, nil)
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	f(context.DeadlineExceeded, tool.Timeout, ctx, nil)
}

func TestTimeoutOfTheEnvironment(t *testing.T) {
	f := func(c Config, text string, want time.Duration) {
		t.Helper()
		t.Setenv(timeoutName, text)
		if got := c.timeout(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	f(Config{}, "", DefaultTimeout)
	f(Config{}, "7", 7*time.Second)
	for _, text := range []string{"0", "-1", "7.5", "7s", "99999999999999999999", "9223372037"} {
		f(Config{}, text, DefaultTimeout)
	}
	f(Config{Timeout: time.Millisecond}, "7", time.Millisecond)
}

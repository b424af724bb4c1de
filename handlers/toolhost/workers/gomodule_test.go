//go:build !race

package workers

// Not with the race detector: compiling a module of that size takes more than a minute then. The
// modules by hand take the same way.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// TestGoModule runs a real program (toolhost §4.9 "wasm").
func TestGoModule(t *testing.T) {
	if !rounds.Long() {
		t.Skip("compiles the standard library for WebAssembly: make test-long")
	}
	module := filepath.Join(t.TempDir(), "tool.wasm")
	build := exec.Command("go", "build", "-o", module, "./testdata/wasmtool")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w, call := newModule(t, func(c *ProcessConfig) { c.Module, c.Pool.Min = module, 1 }, "")
	if err := w.Warm(); err != nil {
		t.Fatal(err)
	}
	f := func(do, want string) {
		t.Helper()
		if got := short(call(20*time.Second, `{"do":"`+do+`"}`)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", do, got, want)
		}
	}
	f("echo", `OK {"aid":"AID.T.v1","input_json":"{\"do\":\"echo\"}","ds_state":{"slots":{}}}`)
	f("echo", `OK `) // each call has an instance of its own
	f("system", `OK true true 0 ""`)
	f("exit", `TOOL_ERROR  "toolhost exit 3: bye" crash "bye"`)
	f("garbage", parseError)
	f("flood", `TOOL_ERROR  "toolhost invalid response JSON" parse_error`)
	f("memory", `TOOL_ERROR  "toolhost exit 2: `)
	if got := short(call(300*time.Millisecond, `{"do":"sleep"}`)); !strings.HasPrefix(got, timedOut) {
		t.Errorf("%s", got)
	}
}

package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// Modules by hand: a header, and sections of a number, a length and a content each.
const (
	wasmHead   = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00" // one type, of functions from nothing to nothing
	wasmStart  = "\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06_start\x00\x00"
	wasmNoop   = wasmHead + wasmStart + "\x0a\x04\x01\x02\x00\x0b"
	wasmLoop   = wasmHead + wasmStart + "\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b"
	wasmTrap   = wasmHead + wasmStart + "\x0a\x05\x01\x03\x00\x00\x0b"
	wasmLarge  = wasmHead + "\x03\x02\x01\x00\x05\x04\x01\x00\x81\x08\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x04\x01\x02\x00\x0b" // 1025 pages
	wasmImport = wasmHead + "\x02\x09\x01\x03env\x01f\x00\x00" + "\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x01" + "\x0a\x04\x01\x02\x00\x0b"
)

// newModule returns the tool of a module, and how it is called.
func newModule(t testing.TB, set func(*ProcessConfig), code string) (w *Process, call func(timeout time.Duration, input string) tool.Result) {
	t.Helper()
	cfg := ProcessConfig{Module: filepath.Join(t.TempDir(), "m.wasm"), Pool: tool.Pool{Idle: time.Minute}}
	if code != "" {
		if err := os.WriteFile(cfg.Module, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if set != nil {
		set(&cfg)
	}
	w = NewProcess(cfg)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, func(timeout time.Duration, input string) tool.Result {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return w.Run(ctx, &tool.Call{AID: "AID.T.v1", Input: []byte(input), State: new(sessionstate.State)})
	}
}

func TestWasmModules(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		_, call := newModule(t, nil, code)
		for range 2 {
			if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s...", got, want)
			}
		}
	}
	f(wasmNoop, parseError)
	f(wasmTrap, `TOOL_ERROR  "toolhost exit 134: module[] function[_start] failed: wasm error: unreachable`)
	f(wasmImport, `TOOL_ERROR  "toolhost launch failed: not a module that can be run: there is no module[env] to import f of" not_found`)
	f(wasmLarge, `TOOL_ERROR  "toolhost launch failed: not a module that can be run: section memory: min 1025 pages`)
	f(wasmOf{imports: []system{{"fd_write", 3, 1}}}.String(), `TOOL_ERROR  "toolhost launch failed: not a module that can be run: function fd_write of module[wasi_snapshot_preview1] has another type`)
	f(wasmOf{imports: []system{{"fd_writes", 3, 1}}}.String(), `TOOL_ERROR  "toolhost launch failed: not a module that can be run: there is no function fd_writes in module[wasi_snapshot_preview1]`)
	f("nonsense", `TOOL_ERROR  "toolhost launch failed: not a module that can be run: `)
	f("", `TOOL_ERROR  "toolhost launch failed: open `)
}

// TestWasmModulesThatBegin: the start section is code of the module as any other.
func TestWasmModulesThatBegin(t *testing.T) {
	f := func(begin bool, code, want string) {
		t.Helper()
		_, call := newModule(t, nil, wasmOf{code: code, imports: []system{fdWrite, procExit}, data: okData, begin: begin}.String())
		if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s...", got, want)
		}
	}
	exit := func(code int) string { return i32(code) + "\x10\x01" }
	const ok = `OK {"n":1} ""`
	for _, begin := range []bool{false, true} {
		f(begin, write(), ok)
		f(begin, write()+exit(0), ok)
		f(begin, write()+exit(3), `TOOL_ERROR  "toolhost exit 3: " crash ""`)
		f(begin, write()+"\x00", `TOOL_ERROR  "toolhost exit 134: `)
		f(begin, exit(0), parseError)
	}
	// What does not fit is a trap before the first instruction.
	_, call := newModule(t, nil, wasmOf{data: strings.Repeat("x", 1<<16+1)}.String())
	if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, `TOOL_ERROR  "toolhost exit 134: `) {
		t.Errorf("%s", got)
	}
}

func TestWasmModuleHash(t *testing.T) {
	_, call := newModule(t, func(c *ProcessConfig) { c.SHA256 = strings.Repeat("0", 64) }, wasmNoop)
	if got := short(call(20*time.Second, "{}")); got != `TOOL_ERROR  "toolhost launch failed: hash mismatch" not_found "hash mismatch"` {
		t.Errorf("%s", got)
	}
	sum := sha256.Sum256([]byte(wasmNoop))
	_, call = newModule(t, func(c *ProcessConfig) { c.SHA256 = hex.EncodeToString(sum[:]) }, wasmNoop)
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("%s", got)
	}
}

// TestWasmModuleThatAppearsLater: a failure to load is not for ever.
func TestWasmModuleThatAppearsLater(t *testing.T) {
	w, call := newModule(t, nil, "")
	call(20*time.Second, "{}")
	if err := os.WriteFile(w.cfg.Module, []byte(wasmNoop), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("%s", got)
	}
}

func TestWasmCapped(t *testing.T) {
	f := func(n int, end string, ok bool) {
		t.Helper()
		ended := false
		o := capped{full: func() { ended = true }}
		_, err := o.Write(make([]byte, n))
		if err == nil {
			_, err = o.Write([]byte(end))
		}
		if got := err == nil && len(oneLine(o.buf)) <= maxReply; got != ok || ended != (err != nil) {
			t.Errorf("%d bytes and %q: %v, ended %v", n, end, err, ended)
		}
	}
	f(maxReply, "", true)
	f(maxReply, "\n", true)
	f(maxReply, "\r\n", true)
	f(maxReply, "\r\n\n", false)
	f(maxReply+1, "", false)
	f(maxReply+1, "\n", false)
	f(maxReply+3, "", false)
}

// TestWasmModuleIsKilled: what nothing interrupts ends with the process that runs it, and the next
// call has another one, which finds the code compiled.
func TestWasmModuleIsKilled(t *testing.T) {
	for name, code := range map[string]string{
		"a loop": wasmLoop,
		"fills":  wasmOf{code: strings.Repeat(fill(wholeMemory), 1000), pages: wasmPages}.String(),
	} {
		ended := make(chan string, 4)
		w, call := newModule(t, func(c *ProcessConfig) {
			c.Pool.Min, c.Pool.Max = 1, 1
			c.Exited = func(_, code int, reason string) { ended <- reason }
		}, code)
		if err := w.Warm(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := short(call(500*time.Millisecond, "{}")); !strings.HasPrefix(got, timedOut) {
				t.Errorf("%s: %s", name, got)
			}
			if got := <-ended; got != reasonTimeout {
				t.Errorf("%s: ended by %s", name, got)
			}
		}
		// One file, and not one for each child.
		if kept, err := filepath.Glob(filepath.Join(w.module.folder.path, "*", "*")); err != nil || len(kept) != 1 {
			t.Errorf("%s: compiled code %q, %v", name, kept, err)
		}
		if info, err := os.Stat(w.module.folder.path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestWasmEndsWithTheTool: what runs is ended, and the compiled code is removed.
func TestWasmEndsWithTheTool(t *testing.T) {
	w, call := newModule(t, func(c *ProcessConfig) { c.Pool.Min = 1 }, wasmLoop)
	if err := w.Warm(); err != nil {
		t.Fatal(err)
	}
	folder := w.module.folder.path
	done := make(chan string)
	go func() { done <- short(call(time.Minute, "{}")) }()
	busy := func() bool {
		w.pool.mu.Lock()
		defer w.pool.mu.Unlock()
		return len(w.pool.idle) == 0 && len(w.pool.all) == 1
	}
	for !busy() {
		time.Sleep(time.Millisecond)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != `TOOL_ERROR  "toolhost exit 137: " crash ""` {
		t.Errorf("%s", got)
	}
	if got := short(call(20*time.Second, "{}")); !strings.Contains(got, "the tool is closed") {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(folder); folder == "" || !os.IsNotExist(err) {
		t.Errorf("%q is left: %v", folder, err)
	}
}

func TestWasmOneLine(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := string(oneLine([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f("{}", "{}")
	f("{}\r\n", "{}")
	f("{\n\"a\":1\r\n}\n", "{ \"a\":1  }")
	f("{\"a\n\":1}", "not JSON: {\"a \":1}")
	f("{}\n{}\n", "not JSON: {} {}")
}

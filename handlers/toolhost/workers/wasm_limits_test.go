package workers

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWasmStack: what calls itself for ever is ended.
func TestWasmStack(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory for the stack is over the limit of the process")
	}
	_, call := newModule(t, nil, wasmOf{code: "\x10\x00"}.String())
	if got := short(call(20*time.Second, "{}")); !strings.Contains(got, "toolhost exit 134: ") || !strings.Contains(got, "stack overflow") {
		t.Errorf("%.200s", got)
	}
}

// TestWasmModuleThatIsNoFile: it does not keep the tool from finding one later.
func TestWasmModuleThatIsNoFile(t *testing.T) {
	w, call := newModule(t, nil, "")
	if err := syscall.Mkfifo(w.cfg.Module, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Second, "{}")); !strings.Contains(got, `not a regular file" not_found`) {
		t.Errorf("%s", got)
	}
	if err := os.Remove(w.cfg.Module); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.cfg.Module, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Second, "{}")); !strings.Contains(got, `not a regular file" not_found`) {
		t.Errorf("%s", got)
	}
	if err := os.Remove(w.cfg.Module); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.cfg.Module, []byte(wasmNoop), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("%s", got)
	}
}

func TestWasmModuleSize(t *testing.T) {
	f := func(size int64, want string) {
		t.Helper()
		w, call := newModule(t, nil, wasmNoop)
		head := "\x00" + leb(int(size)-len(wasmNoop)-5) + "\x00" // the rest is a section that is not read
		file, err := os.OpenFile(w.cfg.Module, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.WriteString(head)
		}
		if err == nil {
			err = file.Truncate(size)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		if got := short(call(20*time.Second, "{}")); !strings.Contains(got, want) {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
	f(maxModuleBytes, parseError)
	f(maxModuleBytes+1, "16777217 bytes, at most 16777216")
}

// TestWasmCompileTime: a module that takes longer is refused without another attempt, until its
// file changes.
func TestWasmCompileTime(t *testing.T) {
	w, call := newModule(t, nil, wasmNoop)
	w.compileTime = time.Nanosecond
	const refused = `TOOL_ERROR  "toolhost launch failed: not a module that can be run: it was not compiled within 1ns" not_found`
	if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, refused) {
		t.Errorf("%s", got)
	}
	w.compileTime = defaultCompileTime
	if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, refused) {
		t.Errorf("tried again: %s", got)
	}
	if err := os.WriteFile(w.cfg.Module, []byte(wasmTrap), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, `TOOL_ERROR  "toolhost exit 134: `) {
		t.Errorf("not tried again: %s", got)
	}
}

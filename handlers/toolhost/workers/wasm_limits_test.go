package workers

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// gone waits until no instance runs whose call was answered.
func gone(t *testing.T, w *Wasm) {
	t.Helper()
	for range 3000 {
		if w.Abandoned() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d instances did not end", w.Abandoned())
}

// TestWasmModuleThatCannotBeInterrupted: the call is answered, the instance keeps its place, and Close does not wait for it.
func TestWasmModuleThatCannotBeInterrupted(t *testing.T) {
	w, call := newModule(t, func(c *WasmConfig) { c.Instances = 1 }, wasmOf{code: strings.Repeat(fill(1<<20), 12_000), pages: 16}.String())
	if err := w.Warm(); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Millisecond, "{}")); got != timedOut+`""` {
		t.Errorf("%s", got)
	}
	if n := w.Abandoned(); n != 1 {
		t.Errorf("%d instances run that nobody waits for, want 1", n)
	}
	// That no place is free is the module's doing.
	if got := short(call(20*time.Millisecond, "{}")); got != timedOut+`"no instance has ended before the deadline, though all were interrupted"` {
		t.Errorf("%s", got)
	}
	if n := w.Abandoned(); n != 1 || len(w.slots) != 1 {
		t.Errorf("%d instances run that nobody waits for, in %d places, want 1", n, len(w.slots))
	}
	w.grace = time.Millisecond
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "cannot end all instances: 1 of ") {
		t.Errorf("%v", err)
	}
	gone(t, w)
	w.grace = closeGrace
}

// TestWasmCallsIntoTheSystemAreInterrupted: each of them may take a long time, and nothing of the module's own lies between.
func TestWasmCallsIntoTheSystemAreInterrupted(t *testing.T) {
	code := strings.Repeat(i32(0)+i32(wholeMemory)+"\x10\x00\x1a", 1000) // a minute and more
	w, call := newModule(t, nil, wasmOf{code: code, imports: []system{randomGet}, pages: wasmPages}.String())
	if err := w.Warm(); err != nil {
		t.Fatal(err)
	}
	if got := short(call(50*time.Millisecond, "{}")); got != timedOut+`""` {
		t.Errorf("%s", got)
	}
	gone(t, w)
}

// TestWasmCompilingOutlivesItsCaller: the breaker is to hear of that, and the next call finds what was compiled.
func TestWasmCompilingOutlivesItsCaller(t *testing.T) {
	w, call := newModule(t, nil, wasmNoop)
	if got := short(call(0, "{}")); got != timedOut+`"the module was not compiled before the deadline"` {
		t.Errorf("%s", got)
	}
	if err := w.Warm(); err != nil {
		t.Fatal(err)
	}
	if got := short(call(5*time.Second, "{}")); got != parseError {
		t.Errorf("%s", got)
	}
}

// TestWasmTables: none has more entries than it may, whatever it says.
func TestWasmTables(t *testing.T) {
	f := func(table string, by int, want int) {
		t.Helper()
		_, call := newModule(t, nil, wasmOf{
			code: grow(by) + i32(want) + "\x47" + trapIf + write(), imports: []system{fdWrite}, table: table, data: okData,
		}.String())
		if got := short(call(5*time.Second, "{}")); got != `OK {"n":1} ""` {
			t.Errorf("table %q grows by %d: %s", table, by, got)
		}
	}
	for _, table := range []string{"\x70\x00\x01", "\x70\x01\x01" + leb(1<<27)} {
		f(table, 40_000_000, -1)
		f(table, maxTableEntries, -1)
		f(table, maxTableEntries-1, 1)
	}
	f("\x70\x01\x01\x02", 2, -1)
	f("\x70\x01\x01\x02", 1, 1)
}

// TestWasmStack: the interpreter and the compiler end what calls itself for ever.
func TestWasmStack(t *testing.T) {
	f := func(code string) {
		t.Helper()
		_, call := newModule(t, nil, wasmOf{code: code}.String())
		if got := short(call(20*time.Second, "{}")); !strings.Contains(got, "toolhost exit 134: ") || !strings.Contains(got, "stack overflow") {
			t.Errorf("%.200s", got)
		}
	}
	f("\x10\x00")
	f("\x10\x00" + costly)
	// As much of the interpreter's stack as there can be.
	f(strings.Repeat(i32(0), maxValues-1) + "\x10\x00" + strings.Repeat("\x1a", maxValues-1) + costly)
}

// costly is code that takes half a minute to compile.
var costly = strings.Repeat("\x03\x40", 20_000) + strings.Repeat("\x0b", 20_000)

// TestWasmCostlyModules: what takes too long to compile is interpreted, and what takes too much memory then is refused.
func TestWasmCostlyModules(t *testing.T) {
	w := wasmOf{code: costly + write(), imports: []system{fdWrite}, data: okData}
	_, call := newModule(t, nil, w.String())
	if got := short(call(10*time.Second, "{}")); got != `OK {"n":1} ""` {
		t.Errorf("%s", got)
	}
	w.copies = 70
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, call = newModule(t, nil, w.String())
	if got := short(call(10*time.Second, "{}")); !strings.Contains(got, "its functions are too many and too complex\" not_found") {
		t.Errorf("%s", got)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 100<<20 {
		t.Errorf("%d bytes allocated for a module that was refused", after.TotalAlloc-before.TotalAlloc)
	}
}

// TestWasmModuleThatIsNoFile: it does not keep the tool from finding one later.
func TestWasmModuleThatIsNoFile(t *testing.T) {
	w, call := newModule(t, nil, "")
	if err := syscall.Mkfifo(w.cfg.Module, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := short(call(5*time.Second, "{}")); !strings.Contains(got, `not a regular file" not_found`) {
		t.Errorf("%s", got)
	}
	if err := os.Remove(w.cfg.Module); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.cfg.Module, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := short(call(5*time.Second, "{}")); !strings.Contains(got, `not a regular file" not_found`) {
		t.Errorf("%s", got)
	}
	if err := os.Remove(w.cfg.Module); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.cfg.Module, []byte(wasmNoop), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := short(call(5*time.Second, "{}")); got != parseError {
		t.Errorf("%s", got)
	}
}

func TestWasmModuleSize(t *testing.T) {
	f := func(size int64, want string) {
		t.Helper()
		w, call := newModule(t, nil, wasmNoop)
		head := "\x00" + leb(int(size)-len(wasmNoop)-5) + "\x00" // the rest is a section that nobody reads
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
		if got := short(call(10*time.Second, "{}")); !strings.Contains(got, want) {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
	f(MaxModuleBytes, parseError)
	f(MaxModuleBytes+1, "16777217 bytes, at most 16777216")
}

// TestWasmFault: a panic of the runtime is the call's, not the process's.
func TestWasmFault(t *testing.T) {
	i := &instance{done: make(chan struct{})}
	i.run(t.Context(), &module{}, "AID.T.v1", nil)
	r := i.result(t.Context(), &tool.Call{AID: "AID.T.v1"}, false)
	if d := r.Dispatch(); d == nil || d.Type != tool.Exception || !strings.HasPrefix(r.ErrorText(), "cannot run a module: ") {
		t.Errorf("%s", short(r))
	}
}

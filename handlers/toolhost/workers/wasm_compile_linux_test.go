package workers

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// wasmSlow takes a while to compile, and answers.
func wasmSlow() string {
	return wasmOf{code: write() + strings.Repeat(fill(0), 1000), imports: []system{fdWrite}, data: okData, copies: 30}.String()
}

const notStarted = timedOut + `"not started before the deadline"`

// TestWasmCompilePlaces: as many modules are compiled at a time as there are places, and compiled
// code needs none.
func TestWasmCompilePlaces(t *testing.T) {
	w, call := newModule(t, nil, wasmNoop) // what it answers ends its child
	for range maxCompiles {
		w.spawner.compiling <- struct{}{}
	}
	if got := short(call(100*time.Millisecond, "{}")); got != notStarted {
		t.Errorf("without a place: %s", got)
	}
	<-w.spawner.compiling
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("with the last place: %s", got)
	}
	if n := len(w.spawner.compiling); n != maxCompiles-1 {
		t.Errorf("%d places are taken, want %d", n, maxCompiles-1)
	}
	w.spawner.compiling <- struct{}{}
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("compiled code, without a place: %s", got)
	}
}

// TestWasmMemory: a module has 64 MiB, from the beginning or later.
func TestWasmMemory(t *testing.T) {
	f := func(pages, more int, ok bool) {
		t.Helper()
		code := i32(more) + "\x40\x00" + i32(-1) + "\x46" + trapIf + write() // a trap if the memory does not grow
		_, call := newModule(t, nil, wasmOf{code: code, pages: pages, imports: []system{fdWrite}, data: okData}.String())
		if got := short(call(20*time.Second, "{}")); (got == `OK {"n":1} ""`) != ok {
			t.Errorf("%d pages and %d: %s", pages, more, got)
		}
	}
	f(wasmPages, 0, true)
	f(wasmPages+1, 0, false)
	f(1, wasmPages-1, true)
	f(1, wasmPages, false)
	f(wasmPages, 1, false)
}

// TestWasmCodeSize: code of the largest size is kept; of more than that the module is refused, once
// and for all.
func TestWasmCodeSize(t *testing.T) {
	code := wasmOf{code: write(), imports: []system{fdWrite}, data: okData, copies: 100}.String()
	w, call := newModule(t, nil, code)
	if got := short(call(20*time.Second, "{}")); got != `OK {"n":1} ""` {
		t.Fatal(got)
	}
	kept, err := filepath.Glob(filepath.Join(w.module.folder.path, "*", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	info, err := os.Stat(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	at, call := newModule(t, nil, code)
	at.cfg.Limits.FileSize = info.Size()
	if got := short(call(20*time.Second, "{}")); got != `OK {"n":1} ""` {
		t.Errorf("%d bytes: %s", info.Size(), got)
	}
	over, call := newModule(t, nil, code)
	over.cfg.Limits.FileSize = info.Size() - 1
	const refused = `TOOL_ERROR  "toolhost launch failed: not a module that can be run: its compiled code is larger than it may be" not_found `
	for range 2 {
		if got := short(call(20*time.Second, "{}")); !strings.HasPrefix(got, refused) {
			t.Errorf("%d bytes: %s", info.Size(), got)
		}
		over.cfg.Limits.FileSize = info.Size() // not looked at again
	}
}

// TestWasmCompileMemory: a module whose compilation needs too much memory is refused, and not tried
// again.
func TestWasmCompileMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the memory of the race detector is over the limit")
	}
	w, call := newModule(t, nil, wasmNoop)
	w.cfg.Limits.Data = 256 << 20
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("a small module: %s", got)
	}
	w, call = newModule(t, nil, wasmOf{code: strings.Repeat(fill(0), 200_000)}.String())
	w.cfg.Limits.Data = 256 << 20
	const refused = `TOOL_ERROR  "toolhost launch failed: not a module that can be run: it was not compiled within 268435456 bytes of memory" not_found `
	for range 2 {
		if got := short(call(time.Minute, "{}")); !strings.HasPrefix(got, refused) {
			t.Errorf("%.300s", got)
		}
		w.cfg.Limits.Data = maxModuleMemory // not looked at again
	}
	if err := os.WriteFile(w.cfg.Module, []byte(wasmNoop), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := short(call(20*time.Second, "{}")); got != parseError {
		t.Errorf("another file: %s", got)
	}
}

// TestWasmFullDisk: where compiled code cannot be written, the module runs all the same.
func TestWasmFullDisk(t *testing.T) {
	w, call := newModule(t, nil, wasmOf{code: write(), imports: []system{fdWrite}, data: okData}.String())
	if err := os.WriteFile(w.module.codePath()+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.module.folder.path += "/file" // nothing can be made in it
	for range 2 {
		if got := short(call(20*time.Second, "{}")); got != `OK {"n":1} ""` {
			t.Errorf("%s", got)
		}
	}
	if _, compiled, err := w.module.verdict(w.cfg.Module); compiled || err != nil {
		t.Errorf("taken for kept: %v, %v", compiled, err)
	}
	w.module.folder.path = filepath.Dir(w.module.folder.path)
}

// compiling is a tool whose child was stopped while it compiled, for a call that has ended.
func compiling(t *testing.T) (w *Process, call func(time.Duration, string) tool.Result, child int) {
	t.Helper()
	w, call = newModule(t, nil, wasmSlow())
	w.compileTime = time.Hour // it compiles at a low priority beside other tests
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan tool.Result, 1)
	go func() {
		done <- w.Run(ctx, &tool.Call{AID: "AID.T.v1", Input: []byte("{}"), State: new(sessionstate.State)})
	}()
	until(t, "a child", func() bool {
		for _, child = range childrenOf(w.cfg.Module) {
			return syscall.Kill(child, syscall.SIGSTOP) == nil
		}
		return false
	})
	cancel()
	if got := short(<-done); got != notStarted {
		t.Fatalf("%s", got)
	}
	return w, call, child
}

// TestWasmCompilesOn: what a call does not wait for goes on with less of the processors, and the
// next call has use for the code.
func TestWasmCompilesOn(t *testing.T) {
	usual, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, call, child := compiling(t)
	until(t, "a lower priority", func() bool {
		nice, err := syscall.Getpriority(syscall.PRIO_PROCESS, child)
		return err == nil && 20-nice == lateNice // as the system call returns it
	})
	if n := len(w.spawner.compiling); n != 1 {
		t.Errorf("%d places are taken, want 1", n)
	}
	if err := syscall.Kill(child, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "its end", func() bool { return w.Workers() == 0 && len(childrenOf(w.cfg.Module)) == 0 })
	for range maxCompiles {
		w.spawner.compiling <- struct{}{} // nothing is compiled any more
	}
	if got := short(call(20*time.Second, "{}")); got != `OK {"n":1} ""` {
		t.Errorf("%s", got)
	}
	for _, pid := range childrenOf(w.cfg.Module) {
		if nice, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid); nice != usual {
			t.Errorf("the next one has priority %d, %v, want %d", 20-nice, err, 20-usual)
		}
	}
}

// TestWasmCompileEndsWithTheTool: it does not go on then.
func TestWasmCompileEndsWithTheTool(t *testing.T) {
	w, _, child := compiling(t)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left := childrenOf(w.cfg.Module); len(left) > 0 {
		t.Errorf("%d of %v is left", child, left)
	}
}

// TestWasmCloseDuringAStart: whenever the tool is closed, nothing of it is there afterwards.
func TestWasmCloseDuringAStart(t *testing.T) {
	spawner := NewSpawner() // one that goes on: its end would end every child
	defer spawner.Close()
	file := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(file, []byte(wasmLoop), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for i := range 40 {
		w := NewProcess(ProcessConfig{Module: file, Spawner: spawner, Pool: tool.Pool{Max: 3, Idle: time.Minute}})
		done := make(chan struct{})
		for range 3 {
			go func() {
				defer func() { done <- struct{}{} }()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				w.Run(ctx, &tool.Call{AID: "AID.T.v1", Input: []byte("{}"), State: new(sessionstate.State)})
			}()
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if left := childrenOf(file); len(left) > 0 {
			t.Fatalf("closed after %d ms: %v are left", i, left)
		}
		for range 3 {
			<-done
		}
		if left := codeFolders(t); len(left) > 0 {
			t.Fatalf("closed after %d ms: %v is left", i, left)
		}
	}
}

// TestWasmFoldersOfTheKilled: what a server that was killed leaves behind the next one removes, and
// nothing else.
func TestWasmFoldersOfTheKilled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	file := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(file, []byte(wasmNoop), 0o600); err != nil {
		t.Fatal(err)
	}
	others := []string{filepath.Join(dir, "other"), filepath.Join(dir, folderPrefix+"file")}
	if err := os.Mkdir(others[0], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(others[1], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Args[0], asWorker, "module-server", file)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(line, err)
	}
	next := func() *Process { return NewProcess(ProcessConfig{Module: file}) }
	w := next()
	live := codeFolders(t)
	if len(live) != 1 {
		t.Errorf("beside a live server: %v", live)
	}
	_ = w.Close()
	_ = server.Process.Kill()
	_ = server.Wait()
	if left := codeFolders(t); len(left) != 1 || left[0] != live[0] {
		t.Errorf("after the kill: %v", left)
	}
	w = next()
	if left := codeFolders(t); len(left) != 0 {
		t.Errorf("beside the next server: %v", left)
	}
	_ = w.Close()
	for _, path := range others {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// codeFolders returns the directories of compiled code.
func codeFolders(t *testing.T) (dirs []string) {
	t.Helper()
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), folderPrefix) {
			dirs = append(dirs, e.Name())
		}
	}
	return dirs
}

// childrenOf returns the processes that were started for a module.
func childrenOf(file string) (pids []int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		text, _ := os.ReadFile(line)
		if args := strings.Split(string(text), "\x00"); len(args) > 4 && args[4] == file {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// until waits for what must come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for", what)
		}
	}
}

package workers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

func TestPoolMax(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 3 }, "slow")
	var calls sync.WaitGroup
	for range 24 {
		calls.Go(func() { r.want(good) })
	}
	calls.Wait()
	if n := r.started(); n < 1 || n > 3 {
		t.Errorf("%d processes, want at most 3", n)
	}
}

// TestWaitingForAWorker: the deadline bounds it, and the breaker does not hear of it.
func TestWaitingForAWorker(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 1 }, "hang")
	var first sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	first.Go(func() { r.Run(ctx, &tool.Call{AID: "AID.T.v1", Input: []byte("{}"), State: new(sessionstate.State)}) })
	for !r.spoke() {
		time.Sleep(time.Millisecond)
	}
	if got := short(r.call(50*time.Millisecond, "{}", nil)); got != timedOut+`"no worker free before the deadline" waited` {
		t.Errorf("%s", got)
	}
	cancel() // not a deadline: ends the call all the same
	first.Wait()
	if got := r.ended(1)[0]; got != "timeout 137" {
		t.Errorf("ended as %q", got)
	}
}

func TestMaxWaiting(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 1 }, "good")
	p := &r.pool
	held, err := p.take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range maxWaiting {
		waiting.Go(func() {
			if _, err := p.take(ctx); err != errNoWorker {
				t.Errorf("%v", err)
			}
		})
	}
	for n := 0; n < maxWaiting; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n = len(p.waiting)
		p.mu.Unlock()
	}
	if _, err := p.take(context.Background()); err != errNoWorker {
		t.Errorf("one more than may wait: %v", err)
	}
	cancel()
	waiting.Wait()
	p.put(held)
	r.want(good)
}

// TestCloseWhileBusy: calls that run or wait come back, and nothing is left.
func TestCloseWhileBusy(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 1 }, "hang")
	results := make(chan string, 2)
	for range 2 {
		go func() { results <- short(r.call(time.Minute, "{}", nil)) }()
	}
	for n := 0; n == 0; time.Sleep(time.Millisecond) {
		r.pool.mu.Lock()
		n = len(r.pool.waiting)
		r.pool.mu.Unlock()
	}
	for r.started() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	seen := []string{<-results, <-results}
	all := strings.Join(seen, "\n")
	if !strings.Contains(all, `"toolhost exit 137: `) || !strings.Contains(all, "the tool is closed") {
		t.Errorf("%s", all)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestMaxRequests(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool.Max, c.Pool.MaxRequests = 1, 3 }, "good")
	for range 7 {
		r.want(good)
	}
	if n := r.started(); n != 3 {
		t.Errorf("%d processes for 7 calls of 3 each", n)
	}
	for _, got := range r.ended(2) {
		if got != "max_requests 0" {
			t.Errorf("ended as %q", got)
		}
	}
}

func TestIdleStop(t *testing.T) {
	f := func(idle time.Duration, ended string, behaviour string) {
		t.Helper()
		r := newRig(t, func(c *ProcessConfig) { c.Pool.Idle = idle }, behaviour)
		if got := r.call(10*time.Second, "{}", nil); got.Status() != tool.OK {
			t.Errorf("%s", short(got))
		}
		if got := r.ended(1)[0]; got != ended {
			t.Errorf("ended as %q, want %q", got, ended)
		}
	}
	f(0, "idle 0", "good")
	f(20*time.Millisecond, "idle 0", "good")
	f(20*time.Millisecond, "idle 137", "ignore-end")
}

func TestMin(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.Pool = tool.Pool{Min: 2, Max: 3, Idle: 10 * time.Millisecond} }, "slow")
	if err := r.Warm(); err != nil {
		t.Fatal(err)
	}
	if n := r.started(); n != 2 {
		t.Errorf("%d processes after Warm", n)
	}
	var calls sync.WaitGroup
	for range 9 {
		calls.Go(func() { r.want(good) })
	}
	calls.Wait()
	for r.Workers() > 2 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(60 * time.Millisecond)
	if n := r.Workers(); n != 2 {
		t.Errorf("%d workers are kept, want 2", n)
	}
}

func TestNotFound(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/nonexistent\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(set func(*ProcessConfig), detail string) {
		t.Helper()
		r := newRig(t, set, "good")
		want := fmt.Sprintf(`TOOL_ERROR  %q not_found %q`, "toolhost launch failed: "+detail, detail)
		r.want(want)
		if n := r.Workers(); n != 0 {
			t.Errorf("%d places taken", n)
		}
	}
	f(func(c *ProcessConfig) { c.Command = []string{dir + "/none"} }, "stat "+dir+"/none: no such file or directory")
	f(func(c *ProcessConfig) { c.Command = []string{plain} }, "exec "+plain+": permission denied")
	f(func(c *ProcessConfig) { c.Command = []string{dir} }, "exec "+dir+": permission denied")
	f(func(c *ProcessConfig) { c.Command = []string{"no-such-program"} }, "executable not found in PATH: no-such-program")
	f(func(c *ProcessConfig) { c.Command, c.Env = []string{"sh"}, []string{"PATH=bin:."} }, "executable not found in PATH: sh")
	f(func(c *ProcessConfig) { c.Command = nil }, "executable not found in PATH: ")
	f(func(c *ProcessConfig) { c.SHA256 = strings.Repeat("0", 64) }, "hash mismatch")

	if err := os.Chmod(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	f(func(c *ProcessConfig) { c.Command = []string{plain} }, "fork/exec "+plain+": no such file or directory")
	r := newRig(t, func(c *ProcessConfig) { c.Dir = dir + "/none" }, "good")
	if got := r.call(time.Second, "{}", nil); got.Dispatch() == nil || got.Dispatch().Type != tool.NotFound {
		t.Errorf("%s", short(got))
	}
}

// TestHash: of what is run, at each start.
func TestHash(t *testing.T) {
	script := filepath.Join(t.TempDir(), "tool.sh")
	write := func(text string) string {
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	sum := write("#!/bin/sh\nread x; echo '{\"status\":\"OK\"}'\n")
	r := newRig(t, func(c *ProcessConfig) { c.Command, c.SHA256, c.Oneshot = []string{script}, sum, true }, "good")
	r.want(`OK  ""`)
	write("#!/bin/sh\necho '{\"status\":\"OK\",\"output_json\":\"{}\"}'\n")
	r.want(`TOOL_ERROR  "toolhost launch failed: hash mismatch" not_found "hash mismatch"`)
}

// TestSurroundings: what a worker is given and what not.
func TestSurroundings(t *testing.T) {
	t.Setenv("MACHINA_API_TOKEN", "secret")
	t.Setenv("LD_LIBRARY_PATH", "/nowhere")
	t.Setenv("MACHINA_ROOT", "/the-root")
	t.Setenv("SOMETHING", "else")
	dir := t.TempDir()
	r := newRig(t, func(c *ProcessConfig) {
		c.Dir = dir
		c.Env = procgroup.Environ(os.LookupEnv, []string{"A=b", "LD_PRELOAD=x", "MACHINA_OPERATOR_TOKEN=x", "HOME=/h"})
		c.Limits = workerexec.Limits{CPU: 30, FileSize: 10 << 20, OpenFiles: 64}
	}, "env")
	out := string(r.call(10*time.Second, "{}", nil).Output)
	fields := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"dir " + dir + " ", "pgid true", "MACHINA_ROOT=/the-root", "A=b", "HOME=/h",
		"Max open files 64 64", "Max file size 10485760 10485760", "Max cpu time unlimited"} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in %s", want, fields)
		}
	}
	for _, no := range []string{"TOKEN", "LD_", "SOMETHING"} {
		if strings.Contains(fields, no) {
			t.Errorf("%q in %s", no, fields)
		}
	}
}

// TestLimitsHoldFromTheStart: a shell, because the race detector needs more address space than a
// worker gets.
func TestLimitsHoldFromTheStart(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) {
		c.Command = []string{"sh", "-c", `read x; echo "{\"status\":\"OK\",\"output_json\":\"$(ulimit -v) $(ulimit -t) $(ulimit -n)\"}"`}
		c.Oneshot, c.Limits = true, workerexec.Limits{AddressSpace: 1 << 30, CPU: 7, OpenFiles: 63}
	})
	for range 10 {
		r.want(`OK 1048576 7 63 ""`)
	}
	spin := newRig(t, func(c *ProcessConfig) { c.Oneshot, c.Limits = true, workerexec.Limits{CPU: 1} }, "oneshot", "spin")
	if got := spin.call(20*time.Second, "{}", nil); got.Dispatch() == nil || got.Dispatch().Type != tool.Crash {
		t.Errorf("out of CPU time: %s", short(got))
	}
}

// TestWorkersDieWithTheServer: even if no one could show them.
func TestWorkersDieWithTheServer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(self, asWorker, "server")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if len(groupOf(pid)) == 0 {
		t.Error("no worker")
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	if left := groupOf(pid); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

// TestNoDescriptorLeaks: of workers that end in all kinds of ways.
func TestNoDescriptorLeaks(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	before := count()
	for _, kind := range []string{"good", "crash", "garbage", "twice"} {
		r := newRig(t, nil, kind)
		for range 5 {
			r.call(10*time.Second, "{}", nil)
		}
		r.finish()
	}
	if after := count(); after > before+1 {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

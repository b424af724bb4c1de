package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
)

// serveProjects starts the program as a server of projects at a socket, and waits for it.
func (s *projectServer) serveProjects(sock string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], "exacta", "serve", "--unix", sock)
	cmd.Args[0] = "trunkline" // see TestMain
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(waitFor); s.run("status").code != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("it does not answer")
		}
	}
	return cmd
}

// TestRunGoesOnAfterARestart: the server is killed in the middle of an execution and started again.
// What runs is resumed and followed to its end, and watch shows the events of both servers.
func TestRunGoesOnAfterARestart(t *testing.T) {
	needMake(t)
	sock := filepath.Join(t.TempDir(), "s")
	s := &projectServer{t: t, dir: t.TempDir(), addr: "unix://" + sock}
	for name, text := range demo() {
		s.write(name, text)
	}
	s.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
	s.write("Makefile", "all:\n\t@touch started; n=0; while test -e slow && test $$n -lt 600; do sleep 0.1; n=$$((n+1)); done\n")
	s.write("slow", "")
	first := s.serveProjects(sock)
	seen := newLines()
	go func() { // until its time is over
		run([]string{"exacta", "watch", "--after", "0", "--addr", s.addr, "--project", s.dir, "--timeout", waitFor.String()}, strings.NewReader(""), seen, seen)
	}()
	plan := s.planned(`Append "1" to README.md; build; create file z.txt`)
	ended := make(chan ran, 1)
	go func() { ended <- s.run("run", "--approve", plan) }()
	s.await("started")
	_ = first.Process.Kill()
	_ = first.Wait()
	if err := os.Remove(filepath.Join(s.dir, "slow")); err != nil {
		t.Fatal(err)
	}
	s.serveProjects(sock)
	got := <-ended
	wantRun(t, got, 0, "step 3: Create z.txt\n", "the server was started again, and its events are numbered from 1; the project is Paused\n")
	s.read("z.txt")
	for deadline := time.Now().Add(waitFor); !strings.Contains(seen.String(), "Executing -> Completed (ExecutionComplete)"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("watch shows\n%s", seen)
		}
	}
	for _, want := range []string{"step 1: Modify README.md", "connecting again", "the server was started again", " -> Paused (SessionRestored)"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("watch does not show %q:\n%s", want, seen)
		}
	}
}

// TestPointsOnATerminal: plans with long paths, and rollback points, fit 80 columns.
func TestPointsOnATerminal(t *testing.T) {
	s := startProjects(t, demo())
	deep := "engine/protocols/exacta/workspace/snapshots/regression_of_the_snapshot_test.txt"
	s.write(deep, "1\n")
	s.executed(`Append "x" to ` + deep)
	s.planned(`Append "y" to ` + deep)
	for _, verb := range [][]string{{"show", "--addr", s.addr}, {"rollback", "--list"}, {"status", "--addr", s.addr}} {
		cmd := exec.Command(os.Args[0], append(append([]string{"exacta"}, verb...), "--project", s.dir)...)
		cmd.Args[0] = "trunkline" // see TestMain
		cmd.Env = []string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
		r := onTerminal(t, 80, 60, cmd)
		r.wantEnd(0)
		if n := r.State().Overflow; n > 0 && verb[0] != "show" {
			t.Errorf("%s: %d characters beyond the edge:\n%s", verb, n, r.All())
		}
		for line := range strings.Lines(r.All()) {
			if strings.HasPrefix(line, "1 ") && len(line) > 81 {
				t.Errorf("%s: %q", verb, line)
			}
		}
	}
}

// TestTerminalsGetNothingToObey: text of other clients in what call, sub and their errors print.
func TestTerminalsGetNothingToObey(t *testing.T) {
	addr := ipctest.Start(t).Addr
	conn, err := ipcclient.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hostile := "a\x07b\x1b]0;t\u009b2J\u202etxet"
	start := func(args ...string) *ptyRun {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Args[0] = "trunkline" // see TestMain
		cmd.Env = []string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
		return onTerminal(t, 200, 60, cmd)
	}
	check := func(r *ptyRun) {
		t.Helper()
		if text := r.All(); strings.ContainsAny(text, "\x07\x1b\u009b\u202e") || !strings.Contains(text, `\u202etxet`) || !strings.Contains(text, `\u009b2J`) {
			t.Errorf("shown: %q", text)
		}
	}
	r := start("call", "kernel.Ping", `{"payload":"`+strings.ReplaceAll(strings.ReplaceAll(hostile, "\x07", `\u0007`), "\x1b", `\u001b`)+`"}`, "--addr", addr)
	r.wantEnd(0)
	check(r)
	r = start("sub", ">", "--count", "1", "--addr", addr)
	r.wantShown("subscribed to")
	payload, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Publish(t.Context(), ipcclient.Publish{EventType: "x", Payload: string(payload), Source: hostile}); err != nil {
		t.Fatal(err)
	}
	r.wantEnd(0)
	check(r)
	r = start("call", "kernel.GetProcess", `{"pid":"\u009b2J\u202etxet"}`, "--addr", addr)
	r.wantEnd(3)
	check(r)
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// TestInsistsOnTheEnd: a second signal ends the program at once, and with it all of a build that
// hangs (exacta §2.1).
func TestInsistsOnTheEnd(t *testing.T) {
	needMake(t)
	sock := filepath.Join(t.TempDir(), "s")
	s := &projectServer{t: t, dir: t.TempDir(), addr: "unix://" + sock}
	s.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
	s.write("Makefile", "all:\n\t@sh -c 'echo $$$$ > new; mv new started; n=0; while test $$n -lt 600; do sleep 0.1; n=$$((n+1)); done' & wait\n")
	cmd := exec.Command(os.Args[0], "exacta", "serve", "--unix", sock)
	cmd.Args[0] = "trunkline" // see TestMain
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(waitFor); s.run("status").code != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not answer")
		}
	}
	plan := s.planned("build")
	wantRun(t, s.run("approve", plan), 0, "", "")
	wantRun(t, s.call("ExecutePlan", `{"project_id":"`+s.id()+`","plan_id":"`+plan+`"}`), 0, "", "")
	s.await("started")
	for alive := true; alive; {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
			alive = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInsisted {
		t.Errorf("exit code %d", code)
	}
	built := "/proc/" + strings.TrimSpace(s.read("started")) + "/cmdline" // empty once it has ended
	for deadline := time.Now().Add(waitFor); ; time.Sleep(10 * time.Millisecond) {
		if text, _ := os.ReadFile(built); len(text) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the build goes on")
		}
	}
}

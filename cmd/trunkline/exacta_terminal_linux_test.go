package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onTerminal runs a command on the project on a terminal.
func (s *projectServer) onTerminal(env string, args ...string) *ptyRun {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"exacta"}, append(args, "--addr", s.addr, "--project", s.dir)...)...)
	cmd.Args[0] = "trunkline" // see TestMain
	cmd.Env = []string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), env}
	return onTerminal(s.t, 100, 40, cmd)
}

// slowProject is one whose build waits until the file slow is gone.
func slowProject(t *testing.T) *projectServer {
	t.Helper()
	needMake(t)
	s := startProjects(t, demo())
	s.write(".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
	s.write("Makefile", "all:\n\t@touch started; n=0; while test -e slow && test $$n -lt 600; do sleep 0.1; n=$$((n+1)); done\n")
	s.write("slow", "")
	return s
}

func (s *projectServer) remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// TestPlanOnATerminal: colours, and nothing that a file could make a terminal do.
func TestPlanOnATerminal(t *testing.T) {
	s := startProjects(t, demo())
	s.write("README.md", "safe\n\x1b]0;title\x07\rtext\u202etxet\n\u009b2J\n")
	r := s.onTerminal("X=", "plan", `Append "Bye." to README.md`)
	r.wantEnd(0)
	for _, want := range []string{"\n--- a/README.md\n", "\n safe\n", "\n" + ` \x1b]0;title\a\rtext\u202etxet` + "\n", "\n" + ` \u009b2J` + "\n", "\n+Bye.\n", "\napprove it with: trunkline exacta approve "} {
		if !strings.Contains(r.All(), want) {
			t.Errorf("no %q:\n%s", want, r.All())
		}
	}
	if r.State().Attributes == 0 {
		t.Error("no colours")
	}
	r = s.onTerminal("NO_COLOR=1", "show")
	r.wantEnd(0)
	if r.State().Attributes != 0 {
		t.Error("colours")
	}
	r = s.onTerminal("X=", "show", "--json")
	r.wantEnd(0)
	for _, want := range []string{`\u001b]0;title\u0007`, `text\u202etxet`, `\u009b2J`} {
		if !strings.Contains(r.All(), want) {
			t.Errorf("no %q:\n%s", want, r.All())
		}
	}
	if got := s.run("show").stdout; !strings.Contains(got, "\n \x1b]0;title\x07\rtext") {
		t.Errorf("what is no terminal does not get the diff as it is: %q", got)
	}
}

// TestRunOnATerminal: the plan is shown and asked for, a bar stands below the lines while it runs,
// and nothing of it is left.
func TestRunOnATerminal(t *testing.T) {
	s := slowProject(t)
	s.planned(`Append "1" to README.md; build; create file z.txt`)
	r := s.onTerminal("X=", "run", "--approve")
	r.wantShown("+1", "Approve this plan? [y/N]")
	r.press("n\n")
	r.wantEnd(1)
	wantRun(t, s.run("run"), 30, "", "is pending")

	r = s.onTerminal("X=", "run", "--approve")
	r.wantShown("Approve this plan? [y/N]")
	r.press("y\n")
	r.wantShown("step 1: Modify README.md: append text", "step 2: Build (Debug)", "\napply     [========                ]  33%")
	s.remove("slow")
	r.wantEnd(0)
	shown := r.All()
	if !strings.Contains(shown, "step 3: Create z.txt\n  done in ") || !strings.Contains(shown, "\ncompleted ") || strings.Contains(shown, "apply ") {
		t.Errorf("not as it should be:\n%s", shown)
	}
	if at := r.State(); at.Attributes == 0 || at.Overflow != 0 {
		t.Errorf("%+v", at)
	}
}

// TestInterrupts: ^C ends an activity of the server, but no execution.
func TestInterrupts(t *testing.T) {
	s := slowProject(t)
	r := s.onTerminal("X=", "build")
	s.await("started")
	r.press("\x03")
	r.wantEnd(130)
	r.wantShown("trunkline: interrupted")
	_, events, _ := strings.Cut(s.run("status").stdout, "events     ")
	if got := s.run("watch", "--after", "0", "--count", strings.TrimSpace(events)).stdout; !strings.Contains(got, "ErrorRaised    IPC-010: The request was cancelled.") {
		t.Errorf("the build was not cancelled:\n%s", got)
	}
	s.remove("started")

	s.planned(`Append "1" to README.md; build`)
	r = s.onTerminal("X=", "approve")
	r.wantShown("Approve this plan? [y/N]")
	r.press("\x03")
	r.wantEnd(130)

	r = s.onTerminal("X=", "run", "--approve")
	r.wantShown("Approve this plan? [y/N]")
	r.press("y\n")
	s.await("started")
	r.wantShown("step 2")
	r.press("\x03")
	r.wantEnd(130)
	r.wantShown("trunkline: interrupted; the execution goes on")
	wantRun(t, s.run("status"), 0, "state      Executing\n", "")
	wantRun(t, s.run("cancel"), 0, "Cancelling -> Idle (RollbackComplete)\ncancelled ", "")
	if got := s.read("README.md"); got != demo()["README.md"] {
		t.Errorf("README.md: %q", got)
	}
}

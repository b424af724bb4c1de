package procgroup

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// start runs a script of the shell that prints the number of a process which it has started.
func start(t *testing.T, script string) (c *Child, grandchild string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	Isolate(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &Child{Cmd: cmd}, strings.TrimSpace(line)
}

// gone waits until a process does not run any more; one that only waits for its parent counts.
func gone(pid string) bool {
	for range 400 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestKillEndsTheGroup(t *testing.T) {
	c, grandchild := start(t, "sleep 600 & echo $!; wait")
	c.Kill()
	c.Reap()
	if !gone(grandchild) {
		t.Error("what it started lives on")
	}
	if c.Cmd.ProcessState.Success() {
		t.Error("it ended by itself")
	}
	c.Kill() // its number may be somebody else's by now
}

func TestReapEndsWhatIsLeft(t *testing.T) {
	c, grandchild := start(t, "sleep 600 & echo $!; exit 7")
	c.Reap()
	if !gone(grandchild) {
		t.Error("what it left behind lives on")
	}
	if code := c.Cmd.ProcessState.ExitCode(); code != 7 {
		t.Error(fmt.Sprint("exit code ", code))
	}
}

package procgroup

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"
)

// start runs a script of the shell that prints the number of a process which it has started.
func start(t *testing.T, script string) (p *Process, grandchild string) {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err = Start("/bin/sh", []string{"sh", "-c", script}, &os.ProcAttr{Files: []*os.File{nil, w, nil}})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.TrimSpace(line)
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
	p, grandchild := start(t, "sleep 600 & echo $!; wait")
	p.Kill()
	code := p.Wait()
	if !gone(grandchild) {
		t.Error("what it started lives on")
	}
	if code != Killed {
		t.Errorf("exit code %d", code)
	}
	p.Kill() // its number may be that of another process by now
}

func TestWaitEndsWhatIsLeft(t *testing.T) {
	p, grandchild := start(t, "sleep 600 & echo $!; exit 7")
	code := p.Wait()
	if !gone(grandchild) {
		t.Error("what it left behind lives on")
	}
	if code != 7 {
		t.Errorf("exit code %d", code)
	}
}

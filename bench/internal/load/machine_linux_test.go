package load

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestRunOnce(t *testing.T) {
	wall, cpu, err := RunOnce(exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.02"))
	if err != nil || wall < 20*time.Millisecond || cpu <= 0 {
		t.Errorf("%v, %v of CPU, %v", wall, cpu, err)
	}
	if _, _, err := RunOnce(exec.Command("/bin/sh", "-c", "exit 3")); err == nil || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("a program that failed: %v", err)
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.CPUs < 1 || m.OS != "linux" || m.Kernel == "unknown" || m.Load == "unknown" || m.Disk != "" || !strings.HasPrefix(m.Go, "go") && !strings.HasPrefix(m.Go, "devel") {
		t.Errorf("%+v", m)
	}
}

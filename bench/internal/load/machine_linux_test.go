package load

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
)

func TestStarts(t *testing.T) {
	f := func(script, problem string) (s goal.Sample) {
		t.Helper()
		s, err := Starts(func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }, func(out []byte) error {
			if string(out) != "good\n" {
				return errors.New("it is not good")
			}
			return nil
		}, func(n int, _ time.Duration) bool { return n == 3 })
		if (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", script, err, problem)
		}
		return s
	}
	s := f("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.02; echo good", "")
	if s.Requests != 3 || s.P50 < 20_000 || s.CPU <= 0 || s.PerSec > 50 || s.P99 < s.P50 {
		t.Errorf("%+v", s)
	}
	f("exit 3", "status 3")
	f("echo bad", `cannot take the answer "bad\n" of /bin/sh: it is not good`)
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.CPUs < 1 || m.OS != "linux" || m.Kernel == "unknown" || m.Load == "unknown" || m.Disk != "" || !strings.HasPrefix(m.Go, "go") && !strings.HasPrefix(m.Go, "devel") {
		t.Errorf("%+v", m)
	}
}

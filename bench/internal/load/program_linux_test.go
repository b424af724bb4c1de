package load

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	broken := errors.New("broken")
	f := func(want int, complaint string, arg string, failed bool, err error) {
		t.Helper()
		parse := func(args []string) (string, error) {
			if args[0] == "bad" {
				return "", errors.New("cannot run with these flags")
			}
			return args[0], nil
		}
		ran := ""
		var out strings.Builder
		got := status("x", []string{arg}, &out, parse, func(o string) (bool, error) {
			ran = o
			return failed, err
		})
		if got != want || out.String() != complaint || ran != arg && want != exitUsage || want == exitUsage && ran != "" {
			t.Errorf("%s, %v, %v: status %d, %q after running %q", arg, failed, err, got, out.String(), ran)
		}
	}
	f(0, "", "a", false, nil)
	f(1, "", "a", true, nil)
	f(1, "x: broken\n", "a", false, broken)
	f(1, "x: broken\n", "a", true, broken)
	f(2, "cannot run with these flags\n", "bad", false, nil)
}

func TestFaults(t *testing.T) {
	if Faults(nil, nil) || Faults(nil, errors.New("broken")) || !Faults([]string{"a fault"}, nil) {
		t.Error("faults and their absence print the same")
	}
}

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

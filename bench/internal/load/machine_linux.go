package load

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
)

// Machine is goal.Machine.
type Machine = goal.Machine

// ThisMachine looks at the machine as it is now.
func ThisMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, OS: runtime.GOOS, Go: runtime.Version(), Kernel: "unknown", Load: "unknown"}
	m.Date, m.Revision = time.Now().UTC().Format(time.DateOnly), "unknown"
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		m.Revision = strings.TrimSpace(string(out)) + changed()
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &m.Load) // what is not a number there is shown as it is
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, after, _ := strings.Cut(string(b), "model name")
		name, _, _ := strings.Cut(after, "\n")
		m.Model = strings.Trim(name, "\t :")
	}
	return m
}

// changed is what ends the revision of sources that differ from it. What runs leave there, the
// files of figures and the pages made of them, is no source.
func changed() string {
	out, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":/",
		":(top,exclude)bench/data", ":(top,exclude)docs/charts", ":(top,exclude)BENCHMARKS.md").Output()
	if err != nil || len(out) > 0 {
		return "-dirty"
	}
	return ""
}

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

// measured are the files that figures depend on, as git wants them named: not what is made of the
// figures, so that those of one part do not make the next part's dirty.
var measured = []string{":(top)", ":(top,exclude)bench/data", ":(top,exclude)BENCHMARKS.md", ":(top,exclude)docs/charts"}

// ThisMachine looks at the machine as it is now.
func ThisMachine() goal.Machine {
	m := goal.Machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, OS: runtime.GOOS, Go: runtime.Version(), Kernel: "unknown", Load: "unknown"}
	m.Date, m.Revision = time.Now().UTC().Format(time.DateOnly), "unknown"
	if out, err := exec.Command("git", "describe", "--always", "--exclude=*").Output(); err == nil {
		m.Revision = strings.TrimSpace(string(out))
		if changed, err := exec.Command("git", append([]string{"status", "--porcelain", "--untracked-files=no", "--"}, measured...)...).Output(); err != nil || len(changed) > 0 {
			m.Revision += "-dirty"
		}
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

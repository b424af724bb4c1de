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

// Report is what the reports of all commands begin with; goals, and what else a command finds, come
// beside it. Its JSON form is what -json writes.
type Report struct {
	Machine  Machine        `json:"machine"`
	Settings Settings       `json:"settings"`
	Cells    []goal.Summary `json:"cells,omitempty"`
}

// Settings are the flags that figures depend on.
type Settings struct {
	Rounds  int     `json:"rounds"`
	Window  float64 `json:"window_seconds"`
	Rows    int     `json:"rows,omitempty"`
	Loops   int     `json:"loops,omitempty"` // event loops of the server
	Workers int     `json:"load_workers"`
	Spin    bool    `json:"load_polls"`
	Pinned  bool    `json:"pinned"`
}

// Machine is where, when and on which revision a run took place, for its report. What cannot be
// read is "unknown".
type Machine struct {
	Date     string `json:"date"`     // of the run, in UTC
	Revision string `json:"revision"` // of the sources in the working directory, with "-dirty" if they were changed since; what is generated of figures does not count
	CPUs     int    `json:"cpus"`
	Arch     string `json:"arch"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Load     string `json:"load_average"`         // of the last minute
	Disk     string `json:"filesystem,omitempty"` // under the stores, where there are any
}

// measured are the files that figures depend on, as git wants them named: not what is made of the
// figures, so that those of one part do not make the next part's dirty.
var measured = []string{":(top)", ":(top,exclude)bench/data", ":(top,exclude)BENCHMARKS.md", ":(top,exclude)docs/charts"}

// ThisMachine looks at the machine as it is now.
func ThisMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Arch: runtime.GOARCH, OS: runtime.GOOS, Go: runtime.Version(), Kernel: "unknown", Load: "unknown"}
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
	return m
}

package load

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
)

// cpu returns the user and system time that all threads of a process have used so far. It reads
// schedstat, which counts nanoseconds, because the ticks of /proc/PID/stat are 10 ms and a cell
// lasts seconds.
func cpu(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("cannot read the CPU time of process %d: no threads", pid)
	}
	var total int64
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that ended; Go servers keep theirs
		}
		var ns int64
		if _, err := fmt.Sscan(string(b), &ns); err != nil {
			return 0, fmt.Errorf("cannot read %s: %w", name, err)
		}
		total += ns
	}
	return time.Duration(total), nil
}

// Memory is the resident memory of a process in bytes.
type Memory struct {
	RSS  int64 // now
	Peak int64 // highest since the process started
}

// memoryOf reads the resident memory of a process.
func memoryOf(pid int) (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
	}
	return Memory{RSS: kibibytes(b, "VmRSS:"), Peak: kibibytes(b, "VmHWM:")}, nil
}

// kibibytes returns the bytes of the line of a status file that begins with name, 0 if there is
// none.
func kibibytes(status []byte, name string) (n int64) {
	_, line, _ := bytes.Cut(status, []byte(name))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	_, _ = fmt.Sscan(string(line), &n) // a line without a number is 0
	return n << 10
}

// Starts runs a program to its end again and again, one after the other, until that was enough, and
// has what it printed checked. Rate and CPU time of the sample are of the medians.
func Starts(command func() *exec.Cmd, check func(out []byte) error,
	enough func(n int, passed time.Duration) bool) (s goal.Sample, err error) {
	var wall, cpu []float64
	for begin := time.Now(); !enough(len(wall), time.Since(begin)); {
		var out bytes.Buffer
		cmd := command()
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return s, fmt.Errorf("cannot run %s: %w: %s", cmd.Path, err, out.Bytes())
		}
		wall = append(wall, goal.Micros(time.Since(start)))
		cpu = append(cpu, float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
		if err := check(out.Bytes()); err != nil {
			return s, fmt.Errorf("cannot take the answer %q of %s: %w", out.Bytes(), cmd.Path, err)
		}
	}
	half := goal.Median(wall)
	return goal.Sample{Requests: uint64(len(wall)), PerSec: 1e6 / half, CPU: goal.Median(cpu),
		P50: half, P99: goal.Quantile(wall, 0.99), P999: goal.Quantile(wall, 0.999)}, nil
}

// listening is the process in what ss prints of a listener.
var listening = regexp.MustCompile(`pid=(\d+)`)

// ListenerPID returns the process of this machine that listens on the port of addr, an IP
// host:port, and 0 if there is none, it is another user's, or ss is not installed. It does not
// compare hosts beyond asking that this one is a loopback address: one port is seldom two servers'.
func ListenerPID(addr string) int {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return 0
	}
	out, _ := exec.Command("ss", "-Htlnp", "sport", "=", strconv.Itoa(int(at.Port()))).Output() // empty without it
	pid := 0
	if m := listening.FindSubmatch(out); m != nil {
		pid, _ = strconv.Atoi(string(m[1])) // digits by the pattern
	}
	return pid
}

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

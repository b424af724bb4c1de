package load

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
)

// Rig is what a run stands on: a folder that goes with it, the binary of the server under test, and
// the processes started so far. It is not safe for concurrent use.
type Rig struct {
	Dir    string
	Binary string // trunkline; empty where the run has none
	CPUs   []int  // pin the servers to these CPUs; empty: anywhere

	servers []*Server
}

// NewRig makes a rig whose folder is in parent, or with the system's temporary files if that is
// empty. name begins the folder's.
func NewRig(parent, name string) (*Rig, error) {
	dir, err := os.MkdirTemp(parent, name)
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the run: %w", err)
	}
	return &Rig{Dir: dir}, nil
}

// exitInterrupted is what a shell reports of a program that SIGINT ended.
const exitInterrupted = 130

// GoesWithSignal ends the program on SIGINT or SIGTERM without leaving the folder behind. The
// processes go with the program.
func (r *Rig) GoesWithSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		_ = os.RemoveAll(r.Dir) // in a directory for what may stay behind
		os.Exit(exitInterrupted)
	}()
}

// FindServer looks for the server's binary in path, or builds it if path is empty.
func (r *Rig) FindServer(path string) (err error) {
	r.Binary, err = FindBinary(path, "./cmd/trunkline", r.Dir)
	return err
}

// Divide pins the servers to one half of the CPUs that this process may use and returns the other,
// for the load, so that neither takes the other's time. With one there is nothing to divide and
// both are empty.
func (r *Rig) Divide() (loads []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("cannot read the CPU affinity: %w", err)
	}
	var all []int
	for c := 0; len(all) < set.Count(); c++ {
		if set.IsSet(c) {
			all = append(all, c)
		}
	}
	half := len(all) / 2
	if r.CPUs = all[:half]; half > 0 {
		loads = all[half:]
	}
	return loads, nil
}

// Start starts a process that Close ends.
func (r *Rig) Start(c Command) (*Server, error) {
	c.CPUs, c.TempDir = r.CPUs, r.Dir
	s, err := StartServer(c)
	if err != nil {
		return nil, err
	}
	r.servers = append(slices.DeleteFunc(r.servers, func(s *Server) bool { return !s.Alive() }), s)
	return s, nil
}

// Trunkline starts the server under test (see the function Trunkline).
func (r *Rig) Trunkline(settings ...string) (*Server, error) {
	return r.Start(Trunkline(r.Binary, settings...))
}

// Self is this program.
const Self = "/proc/self/exe"

// Peer starts a program that reports where it listens as the peers do (PeerListening). An empty
// path is this program itself.
func (r *Rig) Peer(name, path string, args ...string) (*Server, error) {
	return r.Start(Command{Name: name, Path: cmp.Or(path, Self), Args: args, Listening: PeerListening})
}

// Redis starts a redis-server on a free port, with a folder of its own and the settings in args.
func (r *Rig) Redis(name, path string, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp(r.Dir, "redis-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for redis: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for redis: %w", err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	args = append([]string{"--port", strconv.Itoa(addr.Port), "--bind", "127.0.0.1", "--dir", dir}, args...)
	s, err := r.Start(Command{Name: name, Path: path, Args: args, Listening: redisReady})
	if err == nil {
		s.Addr = addr.String()
	}
	return s, err
}

// StopAll ends every process that runs.
func (r *Rig) StopAll() {
	for _, s := range r.servers {
		s.Stop()
	}
	r.servers = nil
}

// Close ends every process that runs and removes the folder.
func (r *Rig) Close() {
	r.StopAll()
	_ = os.RemoveAll(r.Dir) // in a directory for what may stay behind
}

// DirectoryBytes adds up the files below dir; ones that go meanwhile count nothing.
func DirectoryBytes(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

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
var measured = []string{":(top)", ":(top,exclude)bench/data", ":(top,exclude)BENCHMARKS.md",
	":(top,exclude)docs/charts"}

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

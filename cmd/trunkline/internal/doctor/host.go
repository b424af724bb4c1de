package doctor

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
)

// openFiles compares the limit of open files with what the connections of the settings need. A
// server raises its own limit to the hard one.
func openFiles(_ context.Context, s *subject) []Finding {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return []Finding{skip("RLIMIT_NOFILE", "cannot read the limit of open files: %v", err)}
	}
	return []Finding{rateFiles(uint64(l.Max), s.cfg.Files())}
}

// rateFiles compares a limit of open files with what is wanted.
func rateFiles(limit, wanted uint64) Finding {
	if limit < wanted {
		return warn("RLIMIT_NOFILE", "raise the hard limit ('ulimit -Hn', LimitNOFILE= of a unit), or lower the max_connections of the sections",
			"%d files may be open, all connections of the settings take %d", limit, wanted)
	}
	return ok("RLIMIT_NOFILE", "%d files may be open, all connections of the settings take %d", limit, wanted)
}

// Bounds of a sane clock. A certificate or a token of today is not valid by one beyond them.
const (
	firstYear = 2025
	lastYear  = 2100
	// clockJump is by how much the clock of the wall may move against the monotonic one during a
	// run.
	clockJump = 500 * time.Millisecond
)

func clock(_ context.Context, s *subject) []Finding {
	now := time.Now()
	return []Finding{rateClock(now.Sub(s.began), now.Round(0).Sub(s.began.Round(0)), now.UTC())}
}

// rateClock compares how long a run took by two clocks, and looks at the date.
func rateClock(monotonic, wall time.Duration, now time.Time) Finding {
	const fix = "run a time service, such as chrony or systemd-timesyncd"
	date := now.Format(time.RFC3339)
	moved := (wall - monotonic).Abs()
	switch year := now.Year(); {
	case year < firstYear || year > lastYear:
		return fail("", fix, "it is %s by the clock of this machine", date)
	case moved > clockJump:
		return warn("", fix, "the clock moved by %s while the checks took %s", shortly(moved), shortly(monotonic))
	}
	return ok("", "%s; it moved by %s while the checks took %s", date, moved.Round(time.Millisecond), shortly(monotonic))
}

// cgroupValues returns the contents of a file of this process's control group and of those above
// it. ok is false without control groups of version 2.
func (s *subject) cgroupValues(name string) (values []string, ok bool) {
	text, err := os.ReadFile(s.path("/proc/self/cgroup"))
	if err != nil {
		return nil, false
	}
	for line := range strings.Lines(string(text)) {
		group, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		if _, err := os.Stat(s.path("/sys/fs/cgroup/cgroup.controllers")); err != nil {
			return nil, false
		}
		for at := path.Clean("/" + group); ; at = path.Dir(at) {
			if text, err := os.ReadFile(s.path(path.Join("/sys/fs/cgroup", at, name))); err == nil {
				values = append(values, strings.TrimSpace(string(text)))
			}
			if at == "/" {
				return values, true
			}
		}
	}
	return nil, false
}

// cgroupCPU compares the processors that the control group allows with GOMAXPROCS.
func cgroupCPU(_ context.Context, s *subject) []Finding {
	values, found := s.cgroupValues("cpu.max")
	limit, whence := float64(runtime.NumCPU()), "this machine has"
	if found {
		for _, v := range values {
			if cpus, ok := cpuLimit(v); ok && cpus < limit {
				limit, whence = cpus, "the control group allows"
			}
		}
	}
	text := s.Getenv("GOMAXPROCS")
	n, err := strconv.Atoi(text)
	seen := fmt.Sprintf("%s %.4g processors, GOMAXPROCS is %s", whence, limit, orUnset(text))
	if err == nil && n > 0 && float64(n) > math.Max(math.Ceil(limit), 1) {
		return []Finding{warn("GOMAXPROCS", "unset GOMAXPROCS: the runtime follows the limit", "%s: threads wait for each other", seen)}
	}
	return []Finding{ok("GOMAXPROCS", "%s", seen)}
}

// cpuLimit reads a cpu.max: "QUOTA PERIOD", or "max PERIOD" for none.
func cpuLimit(text string) (cpus float64, ok bool) {
	quota, period, _ := strings.Cut(text, " ")
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return q / p, true
}

func orUnset(text string) string {
	if text == "" {
		return "not set"
	}
	return text
}

// memoryShare is the part of a limit of memory that GOMEMLIMIT should leave to the heap, in
// percent.
const memoryShare = 90

// processBytes is about what a process takes in memory: 545 MB were measured for 900,000.
const processBytes = 600

// cgroupMemory compares the memory that there is with GOMEMLIMIT and with what the limits of the
// settings allow.
func cgroupMemory(_ context.Context, s *subject) []Finding {
	total := s.machineMemory()
	limit, grouped := total, false
	if values, found := s.cgroupValues("memory.max"); found {
		for _, v := range values {
			if n, err := strconv.ParseUint(v, 10, 64); err == nil && (limit == 0 || n < limit) {
				limit, grouped = n, true
			}
		}
	}
	if limit == 0 {
		return []Finding{skip("memory", "the memory of this machine is not known")}
	}
	whence := "this machine has"
	if grouped {
		whence = "the control group allows"
	}
	return []Finding{rateGoLimit(whence, limit, grouped, s.Getenv("GOMEMLIMIT")), rateBudget(whence, limit, allowedBytes(s.cfg))}
}

// machineMemory returns the memory of the machine in bytes, 0 if it is not known.
func (s *subject) machineMemory() uint64 {
	text, err := os.ReadFile(s.path("/proc/meminfo"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemTotal:" {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// rateGoLimit compares GOMEMLIMIT with the memory that there is.
func rateGoLimit(whence string, limit uint64, grouped bool, text string) Finding {
	const subject = "GOMEMLIMIT"
	advice := fmt.Sprintf("set GOMEMLIMIT=%dMiB: the heap is collected before the system ends the process", limit/100*memoryShare>>20)
	seen := fmt.Sprintf("%s %s, GOMEMLIMIT is %s", whence, cli.Bytes(limit), orUnset(text))
	set, ok1 := goBytes(text)
	switch {
	case text != "" && text != "off" && !ok1:
		return fail(subject, "the runtime does not start with it; write it as 900MiB", "%s, which is no size", seen)
	case text != "" && ok1 && set > limit:
		return warn(subject, advice, "%s, which is more", seen)
	case grouped && !ok1:
		return warn(subject, advice, "%s", seen)
	}
	return ok(subject, "%s", seen)
}

// goBytes reads a size as the Go runtime does: bytes with an optional unit.
func goBytes(text string) (n uint64, ok bool) {
	shift := 0
	for unit, s := range map[string]int{"TiB": 40, "GiB": 30, "MiB": 20, "KiB": 10} {
		if rest, found := strings.CutSuffix(text, unit); found {
			text, shift = rest, s
		}
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "B"), 10, 63)
	return n << shift, err == nil && n <= math.MaxInt64>>shift
}

// allowedBytes is about the most memory that the limits of the settings allow.
func allowedBytes(c *config.Config) uint64 {
	k := &c.Kernel
	n := uint64(k.MaxProcesses)*processBytes + uint64(k.MaxEnvelopeBytes) + uint64(k.MaxSessionBytes) +
		uint64(k.StreamBufferTotalBytes) + uint64(k.SubscriptionNameBytes) + uint64(k.MaxIdempotencyBytes)
	if len(c.Toolhost.ListenAddr) > 0 {
		n += uint64(c.Toolhost.UnfinishedLinesBytes)
	}
	if c.Threads.KeySources() > 0 || c.Dev() {
		n += uint64(c.Threads.HotBytes)
	}
	return n
}

// rateBudget compares the memory that there is with what is allowed.
func rateBudget(whence string, limit, allowed uint64) Finding {
	seen := fmt.Sprintf("%s %s, the limits of the settings allow about %s", whence, cli.Bytes(limit), cli.Bytes(allowed))
	if allowed > limit {
		return warn("memory", "lower kernel.max_processes, kernel.max_session_bytes, kernel.max_envelope_bytes or kernel.stream_buffer_total_bytes", "%s", seen)
	}
	return ok("memory", "%s", seen)
}

// hugeProcesses is from how many processes on a server asks for huge pages.
const hugeProcesses = 65536

// hugePages compares kernel.huge_pages with what the system gives.
func hugePages(_ context.Context, s *subject) []Finding {
	const key, file = "kernel.huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"
	k := &s.cfg.Kernel
	switch {
	case !k.HugePages:
		return []Finding{skip(key, "huge pages are not asked for")}
	case k.MaxProcesses <= hugeProcesses:
		return []Finding{skip(key, "kernel.max_processes is %d: tables are too small for huge pages", k.MaxProcesses)}
	}
	text, err := os.ReadFile(s.path(file))
	if err != nil {
		return []Finding{skip(key, "the system has no transparent huge pages")}
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, found := strings.Cut(rest, "]")
	switch {
	case !found:
		return []Finding{skip(key, "%s has %q", file, strings.TrimSpace(string(text)))}
	case mode == "never":
		return []Finding{warn(key, "write madvise into "+file+", or set kernel.huge_pages=false", "the system gives none (%s is never)", file)}
	}
	return []Finding{ok(key, "the system gives them (%s is %s)", file, mode)}
}

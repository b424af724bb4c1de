package doctor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// is compares a finding without a report.
func is(t *testing.T, got Finding, result Result, evidence string) {
	t.Helper()
	if got.Result != result || !strings.Contains(got.Evidence, evidence) {
		t.Errorf("%+v, want %s with %q", got, result, evidence)
	}
}

func TestOpenFiles(t *testing.T) {
	is(t, rateFiles(1000, 1000), OK, "1000 files may be open")
	is(t, rateFiles(999, 1000), Warning, "all connections of the settings take 1000")
	r := newRig(t)
	c, err := load("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0,127.0.0.1:0", "--set", "kernel.max_connections=10", "--set", "http.max_connections=3")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Files(); got != 2*10+2*3+512 {
		t.Errorf("%d files are wanted", got)
	}
	got := r.run("--set", "kernel.max_connections=2147483647")
	r.want(got, "files", "RLIMIT_NOFILE", Warning, "all connections of the settings take 4294967806")
	r.want(r.run("--set", "kernel.max_connections=1"), "files", "RLIMIT_NOFILE", OK, "")
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	is(t, rateClock(time.Second, time.Second, now), OK, "2026-11-25T00:00:00Z; it moved by 0s")
	is(t, rateClock(time.Second, time.Second+clockJump, now), OK, "")
	is(t, rateClock(time.Second, time.Second+clockJump+1, now), Warning, "the clock moved by 500ms")
	is(t, rateClock(time.Second, time.Second-clockJump-1, now), Warning, "the clock moved by 500ms")
	is(t, rateClock(0, 0, time.Unix(0, 0).UTC()), Failed, "it is 1970-01-01T00:00:00Z")
	is(t, rateClock(0, 0, now.AddDate(lastYear-2026, 0, 0)), OK, "")
	is(t, rateClock(0, 0, now.AddDate(lastYear-2025, 0, 0)), Failed, "it is 2101")
}

// grouped puts the process into a control group.
func (r *rig) grouped(files map[string]string) {
	r.t.Helper()
	r.file("proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n")
	r.file("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
	for name, text := range files {
		r.file("sys/fs/cgroup/"+name, text+"\n")
	}
}

func TestProcessors(t *testing.T) {
	r := newRig(t)
	r.want(r.run(), "cgroup.cpu", "GOMAXPROCS", OK, "this machine has")
	r.grouped(map[string]string{"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"})
	r.want(r.run(), "cgroup.cpu", "GOMAXPROCS", OK, "the control group allows 0.5 processors, GOMAXPROCS is not set")
	r.env["GOMAXPROCS"] = "1"
	r.want(r.run(), "cgroup.cpu", "GOMAXPROCS", OK, "GOMAXPROCS is 1")
	r.env["GOMAXPROCS"] = "2"
	r.want(r.run(), "cgroup.cpu", "GOMAXPROCS", Warning, "GOMAXPROCS is 2: threads wait")
	f := func(text string, cpus float64, ok bool) {
		t.Helper()
		if got, found := cpuLimit(text); got != cpus || found != ok {
			t.Errorf("%q: %v %v", text, got, found)
		}
	}
	f("150000 100000", 1.5, true)
	f("max 100000", 0, false)
	f("", 0, false)
	f("1", 0, false)
	f("1 0", 0, false)
}

func TestMemory(t *testing.T) {
	r := newRig(t)
	r.want(r.run(), "cgroup.memory", "memory", Skipped, "not known")
	r.file("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\n")
	got := r.run()
	r.want(got, "cgroup.memory", "GOMEMLIMIT", OK, "this machine has 8.6 GB, GOMEMLIMIT is not set")
	r.want(got, "cgroup.memory", "memory", OK, "the limits of the settings allow about")
	r.want(r.run("--set", "kernel.max_session_bytes=9000000000"), "cgroup.memory", "memory", Warning, "this machine has 8.6 GB")
	r.grouped(map[string]string{"a/b/memory.max": "4294967296", "a/memory.max": "1073741824", "memory.max": "max"})
	got = r.run()
	r.want(got, "cgroup.memory", "GOMEMLIMIT", Warning, "the control group allows 1.1 GB, GOMEMLIMIT is not set")
	r.want(got, "cgroup.memory", "memory", Warning, "the control group allows 1.1 GB")
	for text, result := range map[string]Result{"900MiB": OK, "1GiB": OK, "1073741825": Warning, "2GiB": Warning, "off": Warning, "12 apples": Failed} {
		r.env["GOMEMLIMIT"] = text
		r.want(r.run(), "cgroup.memory", "GOMEMLIMIT", result, "GOMEMLIMIT is "+text)
	}
}

func TestBudgetAtItsBound(t *testing.T) {
	is(t, rateBudget("x", 1000, 1000), OK, "")
	is(t, rateBudget("x", 1000, 1001), Warning, "")
}

func TestGoBytes(t *testing.T) {
	f := func(text string, want uint64, ok bool) {
		t.Helper()
		if got, found := goBytes(text); found != ok || ok && got != want {
			t.Errorf("%q: %d %v, want %d %v", text, got, found, want, ok)
		}
	}
	f("1", 1, true)
	f("7B", 7, true)
	f("2KiB", 2048, true)
	f("1TiB", 1<<40, true)
	f("", 0, false)
	f("-1", 0, false)
	f("1MB", 0, false)
	f("9999999TiB", 0, false)
}

func TestHugePages(t *testing.T) {
	r := newRig(t)
	const key = "kernel.huge_pages"
	f := func(enabled string, result Result, evidence string, args ...string) {
		t.Helper()
		if enabled != "" {
			r.file("sys/kernel/mm/transparent_hugepage/enabled", enabled+"\n")
		}
		r.want(r.run(args...), "memory.huge_pages", key, result, evidence)
	}
	f("", Skipped, "the system has no transparent huge pages")
	f("always [madvise] never", OK, "enabled is madvise")
	f("[always] madvise never", OK, "enabled is always")
	f("always madvise [never]", Warning, "the system gives none")
	f("strange", Skipped, `"strange"`)
	f("", Skipped, "are not asked for", "--set", key+"=false")
	f("", Skipped, "tables are too small", "--set", fmt.Sprintf("kernel.max_processes=%d", hugeProcesses))
}

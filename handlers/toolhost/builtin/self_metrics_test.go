package builtin

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
)

func TestSelfMetrics(t *testing.T) {
	b := newBench(t)
	r := b.run("AID.PROC.SELF_METRICS.v1", `{}`, new(sessionstate.State))
	var pid, rss, size, threads, fds int64
	const form = `{"ok":true,"pid":%d,"rss_kb":%d,"vmsize_kb":%d,"threads":%d,"open_fds":%d}`
	if _, err := fmt.Sscanf(string(r.Output), form, &pid, &rss, &size, &threads, &fds); err != nil {
		t.Fatalf("%s: %v", r.Output, err)
	}
	if fmt.Sprintf(form, pid, rss, size, threads, fds) != string(r.Output) || pid != int64(os.Getpid()) {
		t.Errorf("%s", r.Output)
	}
	if runtime.GOOS == "linux" && (rss < 100 || size < rss || threads < 1 || fds < 3) {
		t.Errorf("%s", r.Output)
	}
}

func TestStatusValue(t *testing.T) {
	f := func(status string, want int64) {
		t.Helper()
		if got := statusValue([]byte(status), "VmRSS:"); got != want {
			t.Errorf("%q: got %d, want %d", status, got, want)
		}
	}
	f("", 0)
	f("Name:\tx\nVmRSS:\t  1234 kB\nThreads:\t5\n", 1234)
	f("VmRSS:", 0)
	f("VmRSS: many\n", 0)
	f("VmRSS: -4\n", 0)
	f("xVmRSS: 4\n", 0)
	if got := string(appendMetrics(nil, 7, nil, 0)); got != `{"ok":true,"pid":7,"rss_kb":0,"vmsize_kb":0,"threads":0,"open_fds":0}` {
		t.Errorf("%s", got)
	}
	if readStatus(t.TempDir()+"/nope") != nil || countEntries(t.TempDir()+"/nope") != 0 {
		t.Error("what is not there has values")
	}
}

func TestCountEntries(t *testing.T) {
	b := newBench(t)
	for i := range 600 { // more than are read at once
		b.write(fmt.Sprintf("many/%d", i), "")
	}
	if got := countEntries(b.path("many")); got != 598 { // it takes itself away, for the directory of open files
		t.Errorf("got %d", got)
	}
}

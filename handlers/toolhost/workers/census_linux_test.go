package workers

import (
	"os"
	"strconv"
	"testing"
	"time"

	"trunkline/engine/procgroup"
)

// alive reports that nothing has ended the worker.
func (w *worker) alive() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason == "" && !w.reaped
}

// TestMaxProcesses: at the limit a worker goes on, one process more ends it with its group.
// Processes that nothing has reaped count.
func TestMaxProcesses(t *testing.T) {
	const most = 4
	limited := func(c *ProcessConfig) { c.MaxProcesses, c.Pool.Max = most, 1 }
	r := newRig(t, limited, "family", strconv.Itoa(most-1), "answer")
	r.want(`OK {"n":1} ""`)
	c := &r.spawner.census
	c.look()
	c.mu.Lock()
	for w := range c.most {
		if size := c.sizes[w.proc.Pid]; size != most || !w.alive() {
			t.Errorf("%d processes, alive: %v", size, w.alive())
		}
	}
	if len(c.most) != 1 {
		t.Errorf("%d workers are counted", len(c.most))
	}
	c.mu.Unlock()

	r = newRig(t, limited, "family", strconv.Itoa(most), "hang")
	r.want(`TOOL_ERROR  "toolhost exit 137: more than 4 processes; stderr: words" crash "more than 4 processes; stderr: words"`)
	if got := r.ended(1); got[0] != "too many processes 137" {
		t.Errorf("%q", got)
	}

	r = newRig(t, func(c *ProcessConfig) { limited(c); c.MaxProcesses = 0 }, "family", strconv.Itoa(most), "answer")
	r.want(`OK {"n":1} ""`)
	c = &r.spawner.census
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.most) != 0 {
		t.Errorf("%d workers without a limit are counted", len(c.most))
	}
}

// TestMaxProcessesBetweenCalls: a worker that has too many while nothing asks it is ended, and the
// next call gets another one.
func TestMaxProcessesBetweenCalls(t *testing.T) {
	r := newRig(t, func(c *ProcessConfig) { c.MaxProcesses, c.Pool.Max = 1, 1 }, "family", "1", "answer")
	for i := range 2 {
		if got := short(r.call(10*time.Second, "{}", nil)); got != `OK {"n":1} ""` &&
			got != `TOOL_ERROR  "toolhost exit 137: more than 1 processes; stderr: words" crash "more than 1 processes; stderr: words"` {
			t.Error(got) // the count may come first
		}
		if got := r.ended(i + 1); got[i] != "too many processes 137" {
			t.Errorf("%q", got)
		}
	}
}

// TestNothingRunsUncounted: where processes cannot be counted, what has a limit is not started.
func TestNothingRunsUncounted(t *testing.T) {
	if err := CanCount(); err != nil {
		t.Error(err)
	}
	r := newRig(t, func(c *ProcessConfig) { c.MaxProcesses = 1 }, "good")
	r.spawner.census.close()
	r.want(`TOOL_ERROR  "cannot count processes: the tool is closed" exception "cannot count processes: the tool is closed"`)
	if n := r.started(); n != 0 {
		t.Errorf("%d processes were started", n)
	}
}

// TestCensus: the workers of all tools are counted together, at most so often that it takes a part
// of the time, and not without any.
func TestCensus(t *testing.T) {
	var c census
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	defer c.close()
	due := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.timer != nil
	}
	self := &worker{proc: &procgroup.Process{Process: &os.Process{Pid: os.Getpid()}}, reaped: true} // it is not to be killed, whatever its group
	if c.look(); due() {
		t.Error("nothing to count, and a count is due")
	}
	c.watch(self, 1)
	if !due() {
		t.Error("no count is due")
	}
	c.forget(self)
	if c.look(); due() {
		t.Error("all have ended, and a count is due")
	}
}

func BenchmarkCensus(b *testing.B) {
	var c census
	if err := c.open(); err != nil {
		b.Fatal(err)
	}
	defer c.close()
	for b.Loop() {
		c.look()
	}
}

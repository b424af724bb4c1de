package main

import (
	"os"
	"strings"
	"testing"
)

// liveBench runs bench on a terminal against addr for as long as the test wants it.
func liveBench(t *testing.T, columns int, addr string, args ...string) *ptyRun {
	t.Helper()
	cmd := benchCommand(append([]string{addr, "--method", "GetProcessCounts", "--interval", "100ms", "--warmup", "0s"}, args...)...)
	cmd.Env = []string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	return onTerminal(t, columns, 24, cmd)
}

// TestBenchOnATerminal: the block fits, is painted over in place, and gives way to the summary,
// which fits too.
func TestBenchOnATerminal(t *testing.T) {
	addr, _ := kernelServer(t, nil)
	for _, columns := range []int{60, 80, 120} {
		r := liveBench(t, columns, addr, "--rate", "1000", "--duration", "1h")
		r.wantShown("$ trunkline bench", "asked   constant 1,000/s for 1h", "measuring", "conns   lost 0  late replies 0", "p99", "0 to 1", "kernel.GetProcessCounts")
		if strings.Count(r.All(), "bench   kernel") != 1 {
			t.Errorf("more than one block:\n%s", r.All())
		}
		if r.State().Attributes == 0 {
			t.Error("no colours")
		}
		r.press("\x03")
		r.wantEnd(0)
		shown := r.All()
		for _, want := range []string{"$ trunkline bench", "target    kernel 127.0.0.1:", "requests", "kernel.GetProcessCounts", "The run was ended before its time"} {
			if !strings.Contains(shown, want) {
				t.Errorf("no %q:\n%s", want, shown)
			}
		}
		if n := r.State().Overflow; n > 0 || strings.Contains(shown, "bench   kernel") {
			t.Errorf("%d columns: %d characters beyond the edge:\n%s", columns, n, shown)
		}
	}
}

func TestBenchWithoutColors(t *testing.T) {
	addr, _ := kernelServer(t, nil)
	cmd := benchCommand(addr, "--method", "GetProcessCounts", "--interval", "100ms", "--warmup", "0s", "--count", "300")
	cmd.Env = []string{"TERM=xterm", "NO_COLOR=1"}
	r := onTerminal(t, 80, 24, cmd)
	r.wantEnd(0)
	if at := r.State(); at.Attributes != 0 || at.Overflow != 0 || at.Frames < 3 {
		t.Errorf("%+v", at)
	}
}

// TestBenchInAWindowThatChanges: what does not fit is left out, and comes back.
func TestBenchInAWindowThatChanges(t *testing.T) {
	addr, _ := kernelServer(t, nil)
	r := liveBench(t, 80, addr, "--duration", "1h")
	r.wantShown("measuring", "share", "kernel.GetProcessCounts")
	r.resize(120, 14)
	r.wantGone("kernel.GetProcessCounts")
	r.wantShown("bench   kernel", "latency", "measured")
	before := r.State()
	r.wait("is not painted any more", func(string) bool { return r.State().Frames > before.Frames+5 })
	if n := r.State().Rows - before.Rows; n > 0 {
		t.Errorf("%d rows have scrolled away", n)
	}
	r.resize(120, 24)
	r.wantShown("share", "kernel.GetProcessCounts")
	if n := r.State().Overflow; n > 0 {
		t.Errorf("%d characters beyond the edge:\n%s", n, r.Shown())
	}
	r.resize(60, 24) // a frame may be on its way
	r.wantGone("share")
	r.press("\x03")
	r.wantGone("bench   kernel")
	r.wantEnd(0)
}

// TestBenchWhenTheServerDies: errors and lost connections are seen while the run goes on.
func TestBenchWhenTheServerDies(t *testing.T) {
	addr, stop := kernelServer(t, nil)
	r := liveBench(t, 80, addr, "--duration", "1h", "--timeout", "200ms")
	r.wantShown("measuring", "errors  none")
	stop()
	r.wantShown("lost 8", "cannot connect ", "done 0/s")
	r.resize(80, 60) // room for the summary and its remarks about a busy machine
	r.press("\x03")
	r.wantEnd(0)
	if shown := r.Shown(); !strings.Contains(shown, "connections lost") || !strings.Contains(shown, "cannot connect") {
		t.Errorf("the summary hides it:\n%s", shown)
	}
}

func TestBenchOfNobodyOnATerminal(t *testing.T) {
	addr, stop := kernelServer(t, nil)
	stop()
	r := liveBench(t, 80, addr)
	r.wantEnd(5)
	if shown := r.Shown(); !strings.Contains(shown, "\ntrunkline: cannot connect to "+addr) || !strings.Contains(shown, "\nhint: ") || strings.Contains(shown, "asked") {
		t.Errorf("not only the error:\n%s", shown)
	}
}

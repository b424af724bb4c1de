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

// TestBenchOnATerminal: the line fits, is written over in place, and gives way to the summary,
// which fits too.
func TestBenchOnATerminal(t *testing.T) {
	addr, _ := kernelServer(t, nil)
	for _, columns := range []int{60, 80, 120} {
		r := liveBench(t, columns, addr, "--rate", "1000", "--duration", "1h")
		r.wantShown("$ trunkline bench", "measure ", "s of 1h  done ", "failed 0  lost 0")
		before := r.State()
		r.wait("is not written any more", func(string) bool { return r.State().Frames > before.Frames+5 })
		if strings.Count(r.All(), "measure ") != 1 {
			t.Errorf("more than one line:\n%s", r.All())
		}
		if r.State().Attributes == 0 {
			t.Error("no colours")
		}
		r.press("\x03")
		r.wantEnd(0)
		shown := r.All()
		for _, want := range []string{"$ trunkline bench", "target    kernel 127.0.0.1:", "requests", "kernel.GetProcess",
			"The run was ended before its time"} {
			if !strings.Contains(shown, want) {
				t.Errorf("no %q:\n%s", want, shown)
			}
		}
		if n := r.State().Overflow; n > 0 || strings.Contains(shown, "measure ") {
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
	r := liveBench(t, 60, addr, "--duration", "1h")
	r.wantShown("measure ", "lost 0")
	r.resize(120, 24)
	r.wantShown("in flight ")
	r.resize(30, 24) // a line may be on its way
	r.wantGone("lost")
	r.resize(120, 24)
	r.wantShown("measure ", "in flight ")
	r.press("\x03")
	r.wantGone("measure ")
	r.wantEnd(0)
}

// TestBenchWhenTheServerDies: errors and lost connections are seen while the run goes on.
func TestBenchWhenTheServerDies(t *testing.T) {
	addr, stop := kernelServer(t, nil)
	r := liveBench(t, 80, addr, "--duration", "1h", "--timeout", "200ms")
	r.wantShown("measure ", "failed 0")
	stop()
	r.wantShown("lost 8", "(cannot connect)", "done 0/s")
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
	if shown := r.Shown(); !strings.Contains(shown, "\ntrunkline: cannot connect to "+addr) ||
		!strings.Contains(shown, "\nhint: ") || strings.Contains(shown, "bench   kernel") {
		t.Errorf("not only the error:\n%s", shown)
	}
}

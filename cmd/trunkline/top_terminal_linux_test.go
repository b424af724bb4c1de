package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// liveTop runs top on a terminal until the test ends it.
func liveTop(t *testing.T, columns int, addr string, env ...string) *ptyRun {
	t.Helper()
	cmd := exec.Command(os.Args[0], "top", "--admin", addr, "--interval", "100ms")
	cmd.Args[0] = "trunkline" // see TestMain
	cmd.Env = append([]string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}, env...)
	return onTerminal(t, columns, 24, cmd)
}

// overviews answers /overview: each answer counts more requests than the one before.
func overviews(t *testing.T) (addr string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	start := time.Now()
	return adminFunc(t, func(path string) string {
		n := asked.Add(1)
		return fmt.Sprintf(`{"at":%q,"version":"v1","uptime_seconds":%f,"ready":true,"reasons":[],"connections":{"ipc":3},"store_mode":"memory","latencies":[
			{"protocol":"ipc","method":"kernel.Ping","count":%d,"sum_seconds":1,"p99_seconds":0.001},
			{"protocol":"ipc","method":"kernel.GetProcess","count":7,"p99_seconds":0.002}]}`,
			time.Now().Format(time.RFC3339Nano), time.Since(start).Seconds()+60, 100*n)
	}), asked
}

// TestTopOnATerminal: the screen fits, answers keys, takes another size, and leaves the terminal as
// it was.
func TestTopOnATerminal(t *testing.T) {
	addr, asked := overviews(t)
	for _, columns := range []int{40, 80, 160} {
		r := liveTop(t, columns, addr)
		r.wantShown("top     "+addr, "▼req/s", "kernel.Ping", "q quit")
		if r.State().Attributes == 0 {
			t.Error("no colours")
		}
		r.press(" ")
		r.wantShown("paused")
		r.press("n")
		r.wantGone("▼")
		r.press(" h")
		r.wantShown("every 100ms", "e errors")
		r.resize(100, 30)
		r.wantShown("p99.9", "1.00 ms")
		before := asked.Load()
		r.wait("is not asked any more", func(string) bool { return asked.Load() > before+3 })
		r.press("q")
		r.wantEnd(0)
		if n := r.State().Overflow; n > 0 {
			t.Errorf("%d columns: %d characters beyond the edge", columns, n)
		}
		if strings.Contains(r.Shown(), "req/s") || !strings.Contains(r.Shown(), "$ trunkline") {
			t.Errorf("the screen is not as it was:\n%s", r.Shown())
		}
	}
}

func TestTopWithoutColors(t *testing.T) {
	addr, _ := overviews(t)
	r := liveTop(t, 80, addr, "NO_COLOR=1")
	r.wantShown("kernel.Ping")
	r.press("\x03")
	r.wantEnd(0)
	if n := r.State().Attributes; n != 0 {
		t.Errorf("%d attributes", n)
	}
}

// TestTopOfAServerThatDies: the view stays and shows why nothing comes.
func TestTopOfAServerThatDies(t *testing.T) {
	r := liveTop(t, 80, "127.0.0.1:1")
	r.wantShown("error   cannot reach admin endpoint 127.0.0.1:1")
	r.press("q")
	r.wantEnd(0)
}

package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const traced = "12:00:00 INF serving\n" +
	"gc 7 @2.104s 0%: 0.018+1.3+0.002 ms clock, 0.037+0.33/1.2/0.5+0.004 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n" +
	"gc 8 @2.5s 1%: 0.01+2+0.25 ms clock, 1+2/3/4+5 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)\n" +
	"scvg: 8 MB released\n"

func TestCycles(t *testing.T) {
	near := func(a, b cycle) bool { return a.n == b.n && a.pause == b.pause && math.Abs(a.cpu-b.cpu) < 1e-9 }
	f := func(output string, last int, want ...cycle) {
		t.Helper()
		if got := cycles(output, last); !slices.EqualFunc(got, want, near) {
			t.Errorf("after %d: %+v, want %+v", last, got, want)
		}
	}
	seven, eight := cycle{7, 0.018, 2.071}, cycle{8, 0.25, 15}
	f(traced, 0, seven, eight)
	f(traced, 7, eight)
	f(traced, 8)
	f("gc 9 @2s\ngc x @1s 0%\n", 0)
	f("", 0)
}

func TestCollectedIn(t *testing.T) {
	s := goal.Sample{Requests: 1000, CPU: 1e6} // a second of CPU time
	got := collectedIn("x", []cycle{{1, 0.2, 5}, {2, 0.5, 10}, {3, 0.1, 5}}, s)
	if got.cycles != 3 || got.pause != 0.5 || math.Abs(got.share-0.02) > 1e-9 {
		t.Errorf("%+v, want 3 collections, 0.5 ms, 2 %%", got)
	}
	if got := collectedIn("x", nil, s); got.cycles != 0 || got.pause != 0 || got.share != 0 {
		t.Errorf("%+v of no collections", got)
	}
}

// TestTracerKeepsWhatTheOutputForgets: a server's output is kept for its last lines, and
// collections are counted all the same.
func TestTracerKeepsWhatTheOutputForgets(t *testing.T) {
	const each = "i=$((i+1)); echo gc $i @1s 0%: 0.01+1+0.02 ms clock, 1+1/1/1+1 ms cpu, more; sleep 0.005"
	script := "echo listening x; i=0; while [ $i -lt 60 ]; do " + each + "; done; exec sleep 60"
	s, err := load.StartServer(load.Command{Name: "tracing", Path: "/bin/sh", Args: []string{"-c", script}, Listening: load.PeerListening})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	tr := tracer{server: s}
	until(t, "all collections are counted", func() bool { tr.follow(10 * time.Millisecond); return tr.last == 60 })
	if len(tr.found) != 60 || tr.found[0].n != 1 || tr.found[59] != (cycle{60, 0.02, 5}) {
		t.Errorf("%d collections, the last %+v", len(tr.found), tr.found[len(tr.found)-1])
	}
}

package page

import (
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

func TestPrinted(t *testing.T) {
	run := &figures.Run{
		Machine: figures.Machine{Date: "2026-01-02", Revision: "12ab"},
		Cells:   []goal.Summary{summary("always", "set", 64, 1, 10_400)},
		Goals:   goal.EvaluateAll(goal.Goal{What: "always / memory", Must: 0.6, AtLeast: true, Measured: 0.77, Members: map[string]float64{"set": 0.77}}),
	}
	f := func(set *figures.Set, want ...string) {
		t.Helper()
		got := (&builder{set: set}).printed("store")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s\nlacks %q", got, w)
			}
		}
	}
	runs := map[string]*figures.Run{"store": run}
	outputs := func(o ...figures.Output) map[string][]figures.Output { return map[string][]figures.Output{"store": o} }
	f(&figures.Set{}, "Not measured: `make bench-store`")
	f(&figures.Set{Outputs: outputs(figures.Output{Text: "a"}, figures.Output{Command: "make x", Date: "2026-03-04", Revision: "7", Text: "b"})},
		"`make bench-store`:\n\n```\na\n```\n\n`make x`, 2026-03-04, revision `7`:\n\n```\nb\n```")
	f(&figures.Set{Outputs: outputs(figures.Output{Text: "a"}), Runs: runs}, "`make bench-store`, 2026-01-02, revision `12ab`:\n\n```\na\n```")
	f(&figures.Set{Runs: runs}, "`make bench-store`, 2026-01-02, revision `12ab`:", "10.400", "| always / memory | ≥ 0.6 | **0.770** (set) | holds |")
	if got := (&builder{set: &figures.Set{Outputs: outputs(figures.Output{Text: "a"}), Runs: runs}}).printed("store"); strings.Contains(got, "10.400") {
		t.Errorf("what was printed already is shown twice: %s", got)
	}
}

func TestRuns(t *testing.T) {
	m := figures.Machine{Date: "2026-01-02", Revision: "12ab", CPUs: 2, OS: "linux", Arch: "amd64", Kernel: "6.1", Go: "go1.26", Load: "0.5"}
	b := &builder{set: &figures.Set{
		Runs:    map[string]*figures.Run{"peers": {Machine: m, Settings: figures.Settings{Rounds: 3, Window: 0.6, Loops: 1}}, "scale": {Machine: m}},
		Outputs: map[string][]figures.Output{"soak": {{Text: "PASS"}}},
	}}
	got := b.runs()
	for _, want := range []string{
		"| peers | `make bench-peers` | 2026-01-02 | `12ab` | 2 CPUs, linux/amd64 6.1, go1.26, load average 0.5 | 3 of 0.6 s, loops 1 |\n",
		"load average 0.5 | see there |\n",
		"| a minute of everything | `make soak` | not recorded | not recorded | as printed | as printed |\n",
		"| hostile peers | `make hostile` | not measured |  |  |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}

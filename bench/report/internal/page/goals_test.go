package page

import (
	"strings"
	"testing"
	"testing/fstest"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

// rowOf is the row of the goals table that begins with id.
func rowOf(t *testing.T, set *figures.Set, id string) string {
	t.Helper()
	b := &builder{set: set, notes: fstest.MapFS{}}
	var rows []string
	for line := range strings.Lines(b.goals()) {
		if strings.HasPrefix(line, "| "+id+" |") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return strings.Join(rows, "\n")
}

func evaluatedBy(goals ...goal.Goal) *figures.Set {
	return &figures.Set{Runs: map[string]*figures.Run{"peers": {Goals: goal.EvaluateAll(goals...)}}}
}

func TestGoalRows(t *testing.T) {
	f := func(id, want string, goals ...goal.Goal) {
		t.Helper()
		if got := rowOf(t, evaluatedBy(goals...), id); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want it to end with %s", got, want)
		}
	}
	with := func(g goal.Goal, members map[string]float64) goal.Goal {
		for name, v := range members {
			g.Add(name, v)
		}
		return g
	}
	g1 := goal.Goal{ID: "G1", Must: 3.5, Moonshot: 2.5}
	f("G1", "|  |  | not measured |")
	f("G1", "| ≤ 3.5 (moonshot 2.5) | - | not measured |", g1)
	f("G1", "| ≤ 3.5 (moonshot 2.5) | **3.00** (a) | holds |", with(g1, map[string]float64{"a": 3}))
	f("G1", "| ≤ 3.5 (moonshot 2.5) | **3.60**: a 3.00 · b 3.60 | **missed** |", with(g1, map[string]float64{"a": 3, "b": 3.6}))
	f("G1", "| **2.50** (a) | holds, moonshot reached |", with(g1, map[string]float64{"a": 2.5}))
	f("G4", "| ≥ 0.9 | **0.800**: a 0.800 · b 0.950 | **missed** |", with(goal.Goal{ID: "G4", Must: 0.9, AtLeast: true}, map[string]float64{"a": 0.8, "b": 0.95}))
	f("G8", "|  | **1.10** (a) | reported |", with(goal.Goal{ID: "G8"}, map[string]float64{"a": 1.1}))
	beside := goal.Goal{ID: "G11", Must: 10, AtLeast: true}
	beside.AddCPU("1 connection", 12, 8)
	f("G11", "| ≥ 10 | **12.0** (1 connection, CPU 8.00) | holds |", beside)
	beside.AddCPU("64 connections", 11, 0)
	f("G11", "| **11.0**: 1 connection 12.0, CPU 8.00 · 64 connections 11.0 | holds |", beside)
	f("G11", "|  |  | not measured: no such server was given |")
	f("G11", "| - | not measured: no such server was given |", goal.Goal{ID: "G11", Must: 10, AtLeast: true})
}

// TestGoalOfTwoParts: each part has a row and reports what it is.
func TestGoalOfTwoParts(t *testing.T) {
	a, b := goal.Goal{ID: "G10", What: "bytes per row", Must: 400}, goal.Goal{ID: "G10", What: "bytes per connection", Must: 4096}
	a.Add("x", 442)
	b.Add("x", 2000)
	got := rowOf(t, evaluatedBy(a, b), "G10")
	if want := "| G10 | bytes per row | ≤ 400 | **442** (x) | **missed** |\n| G10 | bytes per connection | ≤ 4,096 | **2,000** (x) | holds |"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestGoalsInOrder(t *testing.T) {
	b := &builder{set: &figures.Set{}}
	table, last := b.goals(), -1
	for _, a := range aims() {
		at := strings.Index(table, "| "+a.id+" | "+a.what)
		if at <= last {
			t.Errorf("%s is not in its place", a.id)
		}
		last = at
	}
}

func benchmark(name string, allocs float64) figures.Benchmark {
	return figures.Benchmark{Name: name, Now: &figures.Side{Allocs: allocs}}
}

// TestAllocations: the goal of the hot methods is evaluated by what their benchmarks counted.
func TestAllocations(t *testing.T) {
	f := func(want string, all ...figures.Benchmark) {
		t.Helper()
		if got := rowOf(t, &figures.Set{Questions: &figures.Questions{Benchmarks: all}}, "G6"); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want it to end with %s", got, want)
		}
	}
	get, create := benchmark("KernelMethod/GetProcess", 0), benchmark("KernelMethod/CreateTerminate", 1)
	f("| not measured |", benchmark("FrameSplit/64", 3), create)
	f("| 0 | **0** (GetProcess) | holds |", get, create)
	f("| 0 | **0**: CheckQuota 0 · GetProcess 0 | holds |", get, benchmark("KernelMethod/CheckQuota", 0))
	f("| 0 | **2**: CheckQuota 2 · GetProcess 0 | **missed** |", get, benchmark("KernelMethod/CheckQuota", 2))
	f("| not measured |", figures.Benchmark{Name: "KernelMethod/GetProcess"}) // gone since the baseline
}

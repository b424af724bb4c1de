package cluster

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"trunkline/fuzz/rounds"
)

// simulate runs a world and checks what came of it.
func simulate(t *testing.T, seed uint64, b bug, trace func(string)) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed, b, trace)
		w.run()
	})
	w.stats.undecided += w.procs.check() // not in the bubble: its time would be over at once
	return w
}

// TestSimulation: whatever goes wrong in a cluster, its clients see one server that loses nothing.
func TestSimulation(t *testing.T) {
	seeds := rounds.Pick(8, rounds.Of(10, 25))
	var sum stats
	for seed := range uint64(seeds) {
		w := simulate(t, seed, none, nil)
		if len(w.problems) > 0 {
			var lines []string
			simulate(t, seed, none, func(line string) { lines = append(lines, line) })
			t.Fatalf("seed %d: %s\nhistory:\n%s", seed, strings.Join(w.problems, "\n"), strings.Join(lines, "\n"))
		}
		sum.add(&w.stats)
	}
	t.Logf("%d worlds: %+v", seeds, sum)
	if sum.answered < 100*seeds || sum.claims < 5*seeds || sum.compared < 3*seeds || sum.keys < 10*seeds ||
		sum.stale < seeds || sum.unanswered == 0 || sum.snapshots == 0 || sum.pauses == 0 || sum.unknown == 0 || sum.undecided > seeds/5 {
		t.Error("they test little")
	}
}

// TestSameSeedSameWorld: a world repeats, so that a seed that fails can be looked at.
func TestSameSeedSameWorld(t *testing.T) {
	for seed := range uint64(rounds.Pick(3, rounds.Of(3, 10))) {
		var lines [2][]string
		var sums [2]uint64
		for i := range lines {
			sums[i] = simulate(t, seed, none, func(line string) { lines[i] = append(lines[i], line) }).history
			slices.Sort(lines[i])
		}
		if sums[0] == sums[1] {
			continue
		}
		for i, line := range lines[0] {
			if i >= len(lines[1]) || lines[1][i] != line {
				t.Fatalf("seed %d has two worlds, which differ after %d events:\n%s\n%v", seed, i, line, lines[1][min(i, len(lines[1])):min(i+1, len(lines[1]))])
			}
		}
		t.Fatalf("seed %d has two worlds: %d and %d events", seed, len(lines[0]), len(lines[1]))
	}
}

// TestBugsAreFound: a cluster that has one thing wrong is found out within a few worlds.
func TestBugsAreFound(t *testing.T) {
	const seeds = 300
	for b := none + 1; b < numBugs; b++ {
		t.Run(b.String(), func(t *testing.T) {
			for seed := range uint64(seeds) {
				if w := simulate(t, seed, b, nil); len(w.problems) > 0 {
					t.Logf("seed %d: %.200s", seed, w.problems[0])
					return
				}
			}
			t.Errorf("%d worlds show nothing wrong", seeds)
		})
	}
}

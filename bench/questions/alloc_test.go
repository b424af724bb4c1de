//go:build !race

package questions

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestHotPathsDoNotAllocate counts what the benchmarks' own work takes from the heap wherever it
// claims to take nothing.
func TestHotPathsDoNotAllocate(t *testing.T) {
	counted := 0
	for _, g := range groups() {
		for _, q := range g.questions {
			if !q.free {
				continue
			}
			counted++
			t.Run(g.name+"/"+q.name, func(t *testing.T) {
				if n := allocations(t, q); n != 0 {
					t.Errorf("%v allocations per run, want 0", n)
				}
			})
		}
	}
	if counted == 0 {
		t.Error("nothing claims to be free of allocations")
	}
}

// TestCountingFinds: a run that allocates is found, also where only some runs do and where some of
// the runs use up what again brings back.
func TestCountingFinds(t *testing.T) {
	var kept []byte
	at := func(every int) question {
		runs := 0
		return question{prepare: func(testing.TB) work {
			return work{every: 10, again: func() {}, run: func() {
				if runs++; runs%every == 0 {
					kept = make([]byte, 64)
				}
			}}
		}}
	}
	if n := allocations(t, at(1)); n != 1 {
		t.Errorf("counted %v of 1 per run", n)
	}
	if n := allocations(t, at(4)); n == 0 {
		t.Error("one in four runs allocates, and nothing was counted")
	}
	if n := allocations(t, at(1<<20)); n != 0 || len(kept) != 64 {
		t.Errorf("counted %v of none", n)
	}
}

// group is what one benchmark asks.
type group struct {
	name      string
	questions []question
}

// groups lists the benchmarks of which some row claims to be free.
func groups() []group {
	return []group{
		{"RequestView", requestViews()},
		{"KernelMethod", kernelMethods()},
		{"OrchestrationMethod", orchestrationMethods()},
		{"Publish", publishes()},
		{"BusFanOut", fanOuts()},
		{"BusQuery", busQueries()},
		{"EnvelopeStep", envelopeSteps()},
		{"EnvelopeTranscode", transcodes()},
		{"MessagePackRead", messagePackReads()},
		{"MessagePackWrite", messagePackWrites()},
		{"JSONWalk", jsonWalks()},
		{"ToolLine", toolLines()},
		{"Table", tableQuestions()},
		{"RateLimit", rateLimits()},
		{"JournalAppend", journalAppends()},
	}
}

// allocations returns how often a run goes to the heap, rounded up where not every run does.
func allocations(t *testing.T, q question) float64 {
	// A collection would empty the pools, and what refills them would count.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	w := q.prepare(t)
	again := w.again
	if again == nil {
		again, w.every = func() {}, 40
	}
	again()
	for range min(3, w.every) {
		w.run()
	}
	again()
	// AllocsPerRun rounds down to whole allocations per call and calls once more than it counts: so
	// all runs are one call.
	runs := min(20, w.every/2)
	n := testing.AllocsPerRun(1, func() {
		for range runs {
			w.run()
		}
	})
	return math.Ceil(n / float64(runs))
}

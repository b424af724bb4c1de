package questions

import (
	"runtime"
	"testing"
	"time"
)

// question is one row of an answer: a piece of work and its name.
type question struct {
	name string
	// free claims that the work takes nothing from the heap: TestHotPathsDoNotAllocate counts.
	// Where a test of the work's own room counts already, free is not set.
	free bool
	// prepare sets the work up, does it at least once and fails if its answer is wrong.
	prepare func(tb testing.TB) work
}

// work is what a benchmark repeats.
type work struct {
	// run does ops operations; 0 stands for 1.
	run func()
	ops int
	// bytes is the size of one operation's input or output, 0 if that has no meaning.
	bytes int
	// again brings back, outside of the time, what every runs have used up; nil: nothing is.
	again func()
	every int
	// parts is how many pieces one operation ends in, and unit the name of the metric that reports
	// the time for each; 0: none.
	parts int
	unit  string
	// apart is the processor time that again took.
	apart time.Duration
}

// measure runs all questions as sub-benchmarks.
func measure(b *testing.B, all []question) {
	for _, q := range all {
		b.Run(q.name, func(b *testing.B) {
			w := q.prepare(b)
			w.settle()
			b.SetBytes(int64(w.bytes))
			b.ReportAllocs()
			start := processorTime()
			if w.ops <= 1 && w.again == nil {
				for b.Loop() {
					w.run()
				}
			} else {
				w.inBatches(b)
			}
			if used := processorTime() - start - w.apart; used > 0 {
				b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
			}
			if w.parts > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(w.parts), w.unit)
			}
		})
	}
}

// settle collects what prepare left, so that no collection comes soon, and fills the pools that
// this empties.
func (w *work) settle() {
	runtime.GC()
	w.run()
	if w.again != nil {
		w.again()
	}
}

// inBatches does a whole run for the first of every ops iterations.
func (w *work) inBatches(b *testing.B) {
	left, runs := 0, 0
	for b.Loop() {
		if left--; left > 0 {
			continue
		}
		if left = w.ops; w.again != nil {
			if runs == w.every {
				b.StopTimer()
				start := processorTime()
				w.again()
				w.apart += processorTime() - start
				runs = 0
				b.StartTimer()
			}
			runs++
		}
		w.run()
	}
}

// TestInBatches: every operation is a share of one run, and what runs use up is brought back
// whenever it is used up.
func TestInBatches(t *testing.T) {
	const ops, every = 8, 100_000
	runs, backs, n := 0, 0, 0
	testing.Benchmark(func(b *testing.B) {
		runs, backs = 0, 0
		w := work{ops: ops, every: every, run: func() { runs++ }, again: func() { backs++ }}
		w.inBatches(b)
		n = b.N
	})
	if want := (n + ops - 1) / ops; runs != want || backs != (runs-1)/every || n < 2*ops {
		t.Errorf("%d runs for %d operations, want %d; brought back %d times", runs, n, want, backs)
	}
}

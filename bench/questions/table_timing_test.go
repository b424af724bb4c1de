package questions

// Question: what do look-up, usage and transition cost as the process table grows from ten thousand
// to ten million rows and as more goroutines want it at the same time?

import (
	"fmt"
	"testing"

	"trunkline/engine/kernel"
)

// rowOps are the operations on a row; each is started for one of so many goroutines.
var rowOps = []struct {
	name  string
	start func(t *table, worker, workers int) func() bool
}{{"Get", getRows}, {"RecordUsage", useRows}, {"Transition", runRows}}

func BenchmarkTable(b *testing.B) {
	for _, op := range rowOps {
		for _, rows := range []string{"10k", "1M", "10M"} {
			for _, goroutines := range []int{1, 4, 16, 64} {
				b.Run(fmt.Sprintf("op=%s/rows=%s/goroutines=%d", op.name, rows, goroutines), func(b *testing.B) {
					t := tableOf(b, rows)
					beside(b, goroutines, func(worker int) func() bool { return op.start(t, worker, goroutines) })
				})
			}
		}
	}
}

// tableQuestions is the work of one goroutine, for the count of allocations.
func tableQuestions() []question {
	var all []question
	for _, op := range rowOps {
		all = append(all, question{name: op.name, free: true, prepare: func(tb testing.TB) work {
			do := op.start(tableOf(tb, "10k"), 0, 1)
			return work{run: func() {
				for range 100 {
					if !do() {
						tb.Fatal("an operation went wrong")
					}
				}
			}}
		}})
	}
	return all
}

// rowWalk names a row after the other, scattered over those that are the worker's own: number
// worker of every workers.
type rowWalk struct {
	pid                    []byte
	i, worker, workers, of int
}

func newRowWalk(t *table, worker, workers int) *rowWalk {
	return &rowWalk{pid: []byte(uuid('p', 0)), i: worker * 104729, worker: worker, workers: workers, of: t.n / workers}
}

func (w *rowWalk) next() []byte {
	w.i++
	number(w.pid, scattered(w.i, w.of)*w.workers+w.worker)
	return w.pid
}

func getRows(t *table, worker, workers int) func() bool {
	var out kernel.PCB
	w := newRowWalk(t, worker, workers)
	return func() bool { return t.k.Get(w.next(), nil, &out) == kernel.OK }
}

func useRows(t *table, worker, workers int) func() bool {
	var total kernel.Usage
	delta := kernel.Usage{kernel.LLMCalls: 1, kernel.TokensIn: 120, kernel.TokensOut: 300}
	w := newRowWalk(t, worker, workers)
	return func() bool { return t.k.RecordUsage(kernel.Instant{}, w.next(), nil, &delta, &total) == kernel.OK }
}

// runRows has a row run and brings it back: two transitions.
func runRows(t *table, worker, workers int) func() bool {
	var out kernel.PCB
	w := newRowWalk(t, worker, workers)
	return func() bool {
		pid, now := w.next(), kernel.Instant{Mono: t.mono.Load()}
		return t.k.Transition(now, pid, nil, kernel.Running, nil, &out) == kernel.OK && t.k.Transition(now, pid, nil, kernel.Ready, nil, &out) == kernel.OK
	}
}

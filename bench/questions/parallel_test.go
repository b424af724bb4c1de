package questions

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// beside repeats the work of the given number of goroutines at the same time. start makes the work
// of one of them, which reports whether it went well; it is called ahead of the time.
func beside(b *testing.B, goroutines int, start func(worker int) func() bool) {
	works := make([]func() bool, goroutines)
	for i := range works {
		if works[i] = start(i); !works[i]() {
			b.Fatalf("the first operation of goroutine %d of %d went wrong", i, goroutines)
		}
	}
	b.ReportAllocs()
	if goroutines == 1 {
		for b.Loop() {
			if !works[0]() {
				b.Fatal("an operation went wrong")
			}
		}
		return
	}
	var started atomic.Int64
	procs := runtime.GOMAXPROCS(0)
	b.SetParallelism((goroutines + procs - 1) / procs)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		// There are as many as the processors divide into; those too many have nothing to do.
		i := int(started.Add(1)) - 1
		if i >= goroutines {
			return
		}
		for work := works[i]; pb.Next(); {
			if !work() {
				b.Error("an operation went wrong")
				return
			}
		}
	})
}

package jsonscan

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// threadTime begins to count the processor time of this thread; the function it returns reports it
// as cpu-ns/op.
func threadTime(b *testing.B) (stop func()) {
	runtime.LockOSThread()
	start := threadNanos(b)
	return func() {
		b.ReportMetric(float64(threadNanos(b)-start)/float64(b.N), "cpu-ns/op")
		runtime.UnlockOSThread()
	}
}

func threadNanos(b *testing.B) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}

package workerexec

import (
	"slices"
	"syscall"
	"testing"
)

// TestLimitsOnTheWay: what Argv writes is read; what is cut off, or is no number, is no limit.
func TestLimitsOnTheWay(t *testing.T) {
	f := func(text string, want ...uint64) {
		t.Helper()
		at, err := syscall.BytePtrFromString(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for range resources {
			var n uint64
			n, at = number(at)
			got = append(got, n)
		}
		if !slices.Equal(got, append(want, make([]uint64, len(got)-len(want))...)) {
			t.Errorf("%q: %d", text, got)
		}
	}
	f(Argv(Limits{AddressSpace: 1 << 40, Data: 2, CPU: 3, FileSize: 4, OpenFiles: 5, UserThreads: 6}, "", nil)[2], 2, 3, 4, 5, 6, 1<<40)
	f("")
	f("7", 7)
	f("7,x", 7)
	f("x")
	f(",,8", 0, 0, 8)
}

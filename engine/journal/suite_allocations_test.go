package journal_test

import (
	"context"
	"runtime"
	"testing"
)

// testAllocations: what a record costs goes to zero as groups grow; what a group costs is the
// store's.
func testAllocations(t *testing.T, p Place) {
	if raceEnabled || p.Crowded {
		t.Skip("the race detector allocates, or the servers in this process do")
	}
	const groups, each = 50, 1000
	l := begin(t, p)
	rec := make([]byte, 100)
	round := func() {
		for range each {
			l.log.Append(rec)
		}
		must(t, l.log.Barrier(context.Background()))
	}
	round()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range groups {
		round()
	}
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / (groups * each); n > 0.1 {
		t.Errorf("%.3f allocations per record, want at most 0.1", n)
	}
	l.close()
}

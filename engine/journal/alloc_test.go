//go:build !race

package journal

import (
	"context"
	"testing"
)

// TestAppendDoesNotAllocate: neither an append nor a group does, once two groups have been made.
func TestAppendDoesNotAllocate(t *testing.T) {
	acked := make(chan struct{}, 1<<16)
	l := openInstant(t, Config{OnDurable: func(Index) { acked <- struct{}{} }})
	defer l.Close()
	rec := make([]byte, 300)
	appends := func(n int) {
		for range n {
			l.Append(rec)
		}
		for l.Durable() != l.Appended() {
			<-acked
		}
	}
	appends(5000)
	// Where the appends are faster than the committer, a third group may be made and dropped again.
	if n := testing.AllocsPerRun(20, func() { appends(5000) }); n > 10 {
		t.Errorf("%v allocations in 5000 appends", n)
	}
	if n := testing.AllocsPerRun(1000, func() { appends(1) }); n != 0 {
		t.Errorf("%v allocations for a group of one record", n)
	}
	if err := l.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() { l.Overloaded(); l.Stats() }); n != 0 {
		t.Errorf("%v allocations to ask", n)
	}
}

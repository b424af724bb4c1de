package journal_test

import (
	"context"
	"errors"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
)

// testCrash: after a power loss in mode always, and the death of the process in any, what was
// acknowledged is there and nothing else than what was appended.
func testCrash(t *testing.T, p Place) {
	ends := map[string]func(){"kill": p.Kill}
	if p.Mode == journal.Always {
		ends["crash"] = p.Crash
	}
	for name, end := range ends {
		if end == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for n := range 8 {
				crashOnce(t, p, n, end)
			}
		})
	}
}

// takeOver begins the life after one that crashed, whose last blocks may still be on their way to
// the servers: one that arrives between the replay and the claim fences this life off, as it does a
// node, which starts again.
func takeOver(t *testing.T, p Place) *life {
	t.Helper()
	for range 10 {
		l, err := tryBegin(t, p, nil)
		if err == nil {
			return l
		}
		if !errors.Is(err, replicated.ErrNotOwner) {
			t.Fatalf("open: %v", err)
		}
	}
	t.Fatal("open: fenced off ten times")
	return nil
}

// crashOnce ends a life in the middle of its work and begins another.
func crashOnce(t *testing.T, p Place, n int, end func()) {
	l := begin(t, p, smallBlocks)
	acked := make(map[journal.Index]string)
	for range n + 1 {
		l.appendMany(20, 40)
		must(t, l.log.Barrier(context.Background()))
		acked = upTo(l.state, l.log.Durable())
	}
	if n%3 == 2 {
		must(t, l.snapshot())
	}
	l.appendMany(100, 40)
	end()
	acked = upTo(l.state, max(l.log.Durable(), 0))
	_ = l.log.Close() // the disk is gone: what it states does not matter
	next := takeOver(t, p)
	for i, rec := range acked {
		if next.state[i] != rec {
			t.Fatalf("acknowledged record %d is %q, want %q", i, next.state[i], rec)
		}
	}
	next.wantState(upTo(l.state, next.log.Appended()-1))
	next.close()
}

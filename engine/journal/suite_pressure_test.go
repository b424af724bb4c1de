package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"trunkline/engine/journal"
)

// gatedLife begins a life whose store can be stalled.
func gatedLife(t *testing.T, p Place, set ...func(*journal.Config)) (*life, *gated) {
	t.Helper()
	var g *gated
	l, err := tryBegin(t, p, func(s journal.Store) journal.Store { g = newGated(s); return g }, set...)
	must(t, err)
	return l, g
}

// testOverload: while the store is stalled the queue grows to its limit, Overloaded reports it,
// what is appended in spite of it is taken up to twice the limit, and afterwards all of it is
// durable.
func testOverload(t *testing.T, p Place) {
	const limit = 100
	l, g := gatedLife(t, p, func(c *journal.Config) { c.MaxQueueRecords = limit })
	g.gate.Lock()
	for range limit {
		if l.log.Overloaded() {
			t.Fatalf("overloaded with %d records", l.log.Stats().QueueRecords)
		}
		l.appendMany(1, 20)
	}
	for range limit {
		if !l.log.Overloaded() {
			t.Fatalf("not overloaded with %d records", l.log.Stats().QueueRecords)
		}
		l.appendMany(1, 20)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.log.Barrier(ctx); err != context.Canceled {
		t.Fatalf("a barrier that is given up: %v", err)
	}
	if s := l.log.Stats(); s.QueueRecords != 2*limit || s.QueueBytes != 2*limit*21 || l.log.Durable() != 1 {
		t.Fatalf("%d records of %d bytes wait, %d are durable", s.QueueRecords, s.QueueBytes, l.log.Durable())
	}
	g.gate.Unlock()
	must(t, l.log.Barrier(context.Background()))
	l.appendMany(1, 20)
	must(t, l.log.Barrier(context.Background()))
	if s := l.log.Stats(); l.log.Durable() != 2*limit+2 || s.Records != 2*limit+1 {
		t.Fatalf("%d are durable, statistics say %d", l.log.Durable(), s.Records)
	}
	l.close()
	if s := l.log.Stats(); s.QueueRecords != 0 || s.QueueBytes != 0 {
		t.Fatalf("%d records of %d bytes wait for a closed journal", s.QueueRecords, s.QueueBytes)
	}
	next := begin(t, p)
	next.wantState(l.state)
	next.close()
}

// testFailure: after the first error of the store nothing becomes durable, the store is not asked
// again, and everyone is informed.
func testFailure(t *testing.T, p Place) {
	var b *broken
	failures := make(chan error, 10)
	l, err := tryBegin(t, p, func(s journal.Store) journal.Store { b = &broken{Store: s, left: 3}; return b },
		func(c *journal.Config) { c.OnFailure = func(err error) { failures <- err } })
	must(t, err)
	for range 2 { // the claim was the first block
		l.append("kept")
		must(t, l.log.Barrier(context.Background()))
	}
	lost := l.log.Append([]byte("lost"))
	if err := l.log.Barrier(context.Background()); !errors.Is(err, journal.ErrFailed) || !errors.Is(err, errBroken) {
		t.Fatalf("barrier: %v", err)
	}
	if err := <-failures; !errors.Is(err, errBroken) {
		t.Fatalf("OnFailure: %v", err)
	}
	for i := range journal.Index(1000) {
		if got := l.log.Append([]byte("dropped")); got != lost+1+i {
			t.Fatalf("index %d, want %d", got, lost+1+i)
		}
	}
	if s := l.log.Stats(); s.QueueRecords != 0 || !l.log.Overloaded() || l.log.Durable() != lost-1 {
		t.Fatalf("after the failure %d records wait, overloaded %v, durable %d", s.QueueRecords, l.log.Overloaded(), l.log.Durable())
	}
	if err := l.log.WriteSnapshot(lost-1, nil); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("snapshot after the failure: %v", err)
	}
	if err := l.log.Close(); !errors.Is(err, errBroken) || b.calls.Load() != 4 || len(failures) != 0 {
		t.Fatalf("close: %v, %d writes, %d more failures", err, b.calls.Load(), len(failures))
	}
	next := begin(t, p)
	next.wantState(l.state)
	next.close()
}

// testGroupCommit: what is appended while a block is in flight becomes one block, and one call of
// OnDurable.
func testGroupCommit(t *testing.T, p Place) {
	var calls []journal.Index
	var written, timed int // the committer's, and read behind a barrier
	l, g := gatedLife(t, p, func(c *journal.Config) {
		c.OnDurable = func(upTo journal.Index) { calls = append(calls, upTo) }
		c.OnWritten = func(wait, took time.Duration) {
			if written++; took > 0 && wait >= 0 {
				timed++
			}
		}
	})
	<-g.begun // the claim
	g.gate.Lock()
	l.append("first")
	<-g.begun
	for range 500 {
		l.append("grouped")
	}
	g.gate.Unlock()
	must(t, l.log.Barrier(context.Background()))
	s := l.log.Stats()
	if g.writes.Load() != 3 || s.Groups != 2 || s.LastGroup != 500 || s.Records != 501 {
		t.Fatalf("%d writes, statistics %+v", g.writes.Load(), s)
	}
	l.close()
	if written != 2 || timed != 2 {
		t.Fatalf("%d groups were reported, %d with both times", written, timed)
	}
	if len(calls) != 2 || calls[0] != 2 || calls[1] != 502 {
		t.Fatalf("OnDurable was called with %v", calls)
	}
}

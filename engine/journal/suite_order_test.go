package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"trunkline/engine/journal"
)

// testOrder: what was appended is replayed in order, without a gap but for the claims; Durable
// follows; a second Replay sees the same.
func testOrder(t *testing.T, p Place) {
	var groups []journal.Index
	l := begin(t, p, smallBlocks, func(c *journal.Config) { c.OnDurable = func(upTo journal.Index) { groups = append(groups, upTo) } })
	if l.log.Appended() != 1 || l.log.Durable() != 1 {
		t.Fatalf("an empty journal starts with its claim at 1, not %d", l.log.Appended())
	}
	l.appendMany(500, 30)
	if err := l.log.Barrier(context.Background()); err != nil || l.log.Durable() != 501 {
		t.Fatalf("barrier: %v, durable %d, want 501", err, l.log.Durable())
	}
	var again []journal.Index
	if err := l.log.Replay(0, func(i journal.Index, rec []byte) error {
		if again = append(again, i); string(rec) != l.state[i] {
			t.Errorf("record %d is %q, want %q", i, rec, l.state[i])
		}
		return nil
	}); err != nil || len(again) != 500 || again[0] != 2 || !slices.IsSorted(again) {
		t.Fatalf("second replay: %v, %d records", err, len(again))
	}
	l.close()
	if !slices.IsSorted(groups) || groups[len(groups)-1] != 501 || len(slices.Compact(groups)) != len(groups) {
		t.Fatalf("OnDurable was called with %v", groups)
	}
	if i := l.log.Append(nil); i != 502 || !errors.Is(l.log.Err(), journal.ErrClosed) || !l.log.Overloaded() {
		t.Fatalf("after Close: index %d, error %v", i, l.log.Err())
	}
	if err := l.log.Barrier(context.Background()); !errors.Is(err, journal.ErrClosed) {
		t.Fatalf("barrier after Close: %v", err)
	}
	next := begin(t, p)
	next.wantState(l.state)
	next.close()
}

// testLargeRecords: an empty record, one that fills a block, and ones that are alone in theirs; no
// other block is over the limit.
func testLargeRecords(t *testing.T, p Place) {
	l, g := gatedLife(t, p, smallBlocks)
	<-g.begun // the claim
	g.gate.Lock()
	l.append("in flight, so that all others wait and fill their groups")
	<-g.begun
	for _, n := range []int{0, 1, 127, 128, 900, 968, 969, 970, 971, 1024, 0, 969, 1024, 0, 970, 1024, 0, 971, 5000, 1 << 20, 0, 3 << 20, 10} {
		l.append(text(l.log.Appended()+1, n))
	}
	g.gate.Unlock()
	l.close()
	firsts, data := blocks(t, p)
	for n, first := range firsts[:len(firsts)-1] {
		if size, count := len(data[first]), firsts[n+1]-first; size > 1<<10 && count > 1 {
			t.Errorf("a block of %d records has %d bytes", count, size)
		}
	}
	next := begin(t, p)
	next.wantState(l.state)
	next.close()
}

// testEpochs: every owner has an epoch of its own, one higher, and a claim in the log.
func testEpochs(t *testing.T, p Place) {
	for n := range uint64(4) {
		l := begin(t, p)
		if l.log.Epoch() != n+1 || l.log.Appended() != n+1 || len(l.state) != 0 {
			t.Fatalf("life %d has epoch %d at index %d with %d records", n, l.log.Epoch(), l.log.Appended(), len(l.state))
		}
		if n == 0 {
			if s, err := p.Open(); !errors.Is(err, journal.ErrLocked) {
				t.Fatalf("a second store: %v, %v, want %v", s, err, journal.ErrLocked)
			}
		}
		l.close()
	}
	other := journal.Always + journal.Interval - p.Mode
	var mismatch *journal.ErrModeMismatch
	if _, err := tryBegin(t, p, nil, func(c *journal.Config) { c.Mode = other }); !errors.As(err, &mismatch) || mismatch.Made != p.Mode || mismatch.Asked != other {
		t.Fatalf("open as %s: %v", other, err)
	}
	if _, err := tryBegin(t, p, nil, func(c *journal.Config) { c.Partition = 7 }); err == nil {
		t.Fatalf("open as another partition was not refused")
	}
}

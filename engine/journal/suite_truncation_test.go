package journal_test

import (
	"errors"
	"io"
	"testing"

	"trunkline/engine/journal"
)

// testTruncation: the log is kept from the snapshot before the newest on, two snapshots stay, and a
// restart reads the newest.
func testTruncation(t *testing.T, p Place) {
	l := begin(t, p, smallBlocks)
	var at []journal.Index
	for n := range 5 {
		l.appendMany(100, 50)
		if err := l.snapshot(); err != nil {
			t.Fatalf("snapshot %d: %v", n, err)
		}
		at = append(at, l.log.Appended())
		list, err := l.store.ListSnapshots()
		if must(t, err); len(list) != min(n+1, 2) {
			t.Fatalf("after snapshot %d there are %d generations", n, len(list))
		}
		first := firstBlock(t, l.store)
		if n == 0 && first != 1 || n > 0 && (first > at[n-1] || first+40 < at[n-1]) {
			t.Fatalf("after snapshot %d the log begins at %d, snapshots were at %v", n, first, at)
		}
	}
	if err := l.log.WriteSnapshot(at[4]+1, nil); err == nil {
		t.Fatalf("a snapshot beyond the end of the log was taken")
	}
	if err := l.log.WriteSnapshot(at[4]-1, nil); err == nil {
		t.Fatalf("a snapshot before the newest was taken")
	}
	failed := errors.New("no state")
	if err := l.log.WriteSnapshot(at[4], func(w io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Fatalf("a snapshot that fails: %v", err)
	}
	if s := l.log.Stats(); s.Snapshots != 5 || s.SnapshotBytes == 0 {
		t.Fatalf("statistics: %d snapshots of %d bytes", s.Snapshots, s.SnapshotBytes)
	}
	l.appendMany(10, 50)
	l.close()
	next := begin(t, p)
	if next.wantState(l.state); next.from != at[4] {
		t.Fatalf("restart from snapshot at %d, want %d", next.from, at[4])
	}
	next.close()
}

func firstBlock(t *testing.T, s journal.Store) (first journal.Index) {
	t.Helper()
	stop := errors.New("stop")
	if err := s.Blocks(0, func(i journal.Index, _ []byte) error { first = i; return stop }); err != stop {
		t.Fatal(err)
	}
	return first
}

// spoiled is a store that gives the chunks of one snapshot with one bit flipped.
type spoiled struct {
	journal.Store
	number uint64
}

// ReadSnapshot implements journal.Snapshots.
func (s *spoiled) ReadSnapshot(g uint64, f func(chunk []byte) error) error {
	return s.Store.ReadSnapshot(g, func(chunk []byte) error {
		if g == s.number {
			chunk = append([]byte(nil), chunk...)
			chunk[len(chunk)/2] ^= 4
		}
		return f(chunk)
	})
}

// testLastSnapshotDamaged: a snapshot that was written wrong is not used and costs nothing; one
// that rots is refused, and the one before is enough for an operator to lose nothing.
func testLastSnapshotDamaged(t *testing.T, p Place) {
	spoil := func(g uint64) func(journal.Store) journal.Store {
		return func(s journal.Store) journal.Store { return &spoiled{Store: s, number: g} }
	}
	l, err := tryBegin(t, p, spoil(2), smallBlocks)
	must(t, err)
	for n := range 3 {
		l.appendMany(100, 50)
		var damage *journal.DamageError
		if err := l.snapshot(); (n == 1) != errors.As(err, &damage) {
			t.Fatalf("snapshot %d: %v", n, err)
		}
		l.store.(*spoiled).number = map[int]uint64{0: 2}[n]
	}
	l.appendMany(100, 50)
	l.close()
	newest := newestSnapshot(t, p)
	var damage *journal.DamageError
	if _, err := tryBegin(t, p, spoil(newest)); !errors.As(err, &damage) || damage.Index != 302-1 {
		t.Fatalf("a rotten snapshot: %v", err)
	}
	recovered, err := tryBegin(t, p, spoil(newest), func(c *journal.Config) { c.RecoverTo = 1 << 62 })
	if must(t, err); recovered.from >= damage.Index {
		t.Fatalf("recovered from the snapshot at %d", recovered.from)
	}
	recovered.wantState(l.state)
	recovered.close()
	next := begin(t, p)
	next.wantState(l.state)
	must(t, next.snapshot())
	next.close()
	last := begin(t, p)
	last.wantState(l.state)
	last.close()
}

func newestSnapshot(t *testing.T, p Place) uint64 {
	t.Helper()
	s := mustOpen(t, p)
	list, err := s.ListSnapshots()
	must(t, err)
	must(t, s.Close())
	return list[len(list)-1].Number
}

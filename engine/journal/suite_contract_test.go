package journal_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"trunkline/engine/journal"
)

// testBlocks holds a bare store to the contract of its blocks.
func testBlocks(t *testing.T, p Place) {
	s := mustOpen(t, p)
	for _, first := range []journal.Index{1, 4, 5, 300, 70_000} {
		must(t, s.WriteBlock(first, fmt.Appendf(nil, "block %d", first)))
	}
	want := func(from journal.Index, want ...journal.Index) {
		t.Helper()
		var got []journal.Index
		must(t, s.Blocks(from, func(first journal.Index, b []byte) error {
			if got = append(got, first); string(b) != fmt.Sprintf("block %d", first) {
				t.Errorf("block %d is %q", first, b)
			}
			return nil
		}))
		if !slices.Equal(got, want) {
			t.Errorf("blocks from %d: %v, want %v", from, got, want)
		}
	}
	want(0, 1, 4, 5, 300, 70_000)
	want(3, 1, 4, 5, 300, 70_000)
	want(4, 4, 5, 300, 70_000)
	want(299, 5, 300, 70_000)
	want(math.MaxUint64, 70_000)
	stop, calls := errors.New("stop"), 0
	if err := s.Blocks(1, func(journal.Index, []byte) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("an error of f: %v after %d calls", err, calls)
	}
	must(t, s.DropBlocks(4))
	want(0, 4, 5, 300, 70_000)
	must(t, s.DropBlocks(299))
	want(1, 5, 300, 70_000)
	must(t, s.CutBlocks(301))
	want(1, 5, 300)
	must(t, s.CutBlocks(300))
	want(0, 5)
	must(t, s.DropBlocks(math.MaxUint64))
	want(0, 5)
	must(t, s.WriteBlock(6, []byte("block 6")))
	must(t, s.Sync())
	must(t, s.Close())
	must(t, s.Close())
	s = mustOpen(t, p)
	want(0, 5, 6)
	must(t, s.Close())
}

// testSnapshots holds a bare store to the contract of its snapshots.
func testSnapshots(t *testing.T, p Place) {
	s := mustOpen(t, p)
	write := func(g uint64, chunks ...string) journal.SnapshotWriter {
		t.Helper()
		w, err := s.BeginSnapshot(g)
		must(t, err)
		for _, c := range chunks {
			must(t, w.Write([]byte(c)))
		}
		return w
	}
	want := func(numbers ...uint64) {
		t.Helper()
		list, err := s.ListSnapshots()
		must(t, err)
		var got []uint64
		for _, g := range list {
			if got = append(got, g.Number); string(g.Meta) != fmt.Sprintf("meta %d", g.Number) {
				t.Errorf("meta of %d is %q", g.Number, g.Meta)
			}
		}
		if !slices.Equal(got, numbers) {
			t.Errorf("generations %v, want %v", got, numbers)
		}
	}
	want()
	write(1, "lost")
	want()
	big := string(make([]byte, journal.MaxChunkBytes))
	must(t, write(1, "a", big, "c").Commit([]byte("meta 1")))
	must(t, write(2).Commit([]byte("meta 2")))
	must(t, write(3, "never").Abort())
	write(9, "unfinished")
	must(t, write(300, "x").Commit([]byte("meta 300")))
	if _, err := s.BeginSnapshot(2); err == nil {
		t.Errorf("a complete generation was begun again")
	}
	want(1, 2, 300)
	must(t, s.Close())
	s = mustOpen(t, p)
	want(1, 2, 300)
	var got []string
	must(t, s.ReadSnapshot(1, func(c []byte) error { got = append(got, string(c)); return nil }))
	if !slices.Equal(got, []string{"a", big, "c"}) {
		t.Errorf("generation 1 has %d chunks", len(got))
	}
	must(t, s.DropSnapshot(1))
	must(t, s.DropSnapshot(77))
	want(2, 300)
	if err := s.ReadSnapshot(1, func([]byte) error { return nil }); err == nil {
		t.Errorf("a dropped generation can be read")
	}
	stop := errors.New("stop")
	if err := s.ReadSnapshot(300, func([]byte) error { return stop }); err != stop {
		t.Errorf("an error of f: %v", err)
	}
	must(t, s.Close())
}

func mustOpen(t *testing.T, p Place) journal.Store {
	t.Helper()
	s, err := p.Open()
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

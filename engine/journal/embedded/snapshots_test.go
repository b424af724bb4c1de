package embedded

import (
	"bytes"
	"errors"
	"testing"

	"trunkline/engine/journal"
)

func TestSnapshots(t *testing.T) {
	for _, mode := range bothModes {
		cfg := Config{Dir: t.TempDir(), Mode: mode}
		s := mustOpen(t, cfg)
		want := func(numbers ...uint64) {
			t.Helper()
			list, err := s.ListSnapshots()
			if err != nil || len(list) != len(numbers) {
				t.Fatalf("got %v (%v), want %v", list, err, numbers)
			}
			for i, g := range list {
				if g.Number != numbers[i] {
					t.Fatalf("got %v, want %v", list, numbers)
				}
				if err := checkSnapshot(s, g, 3); err != nil {
					t.Fatal(err)
				}
			}
		}
		writeSnapshot(t, s, 256, 3)
		writeSnapshot(t, s, 3, 3)
		unfinished, err := s.BeginSnapshot(4)
		if err != nil {
			t.Fatal(err)
		}
		if err := unfinished.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		want(3, 256)
		if _, err := s.BeginSnapshot(3); err == nil {
			t.Fatal("a complete generation began again")
		}
		mustClose(t, s)
		s = mustOpen(t, cfg)
		writeSnapshot(t, s, 4, 3)
		want(3, 4, 256)
		for range 2 {
			if err := s.DropSnapshot(4); err != nil {
				t.Fatal(err)
			}
		}
		want(3, 256)
		if err := s.ReadSnapshot(4, nil); err == nil {
			t.Fatal("read what is not there")
		}
		mustClose(t, s)
	}
}

func TestSnapshotLimits(t *testing.T) {
	s := mustOpen(t, Config{Dir: t.TempDir()})
	defer mustClose(t, s)
	w, err := s.BeginSnapshot(1)
	if err != nil {
		t.Fatal(err)
	}
	f := func(ok bool, err error) {
		t.Helper()
		if ok != (err == nil) {
			t.Fatal(err)
		}
	}
	f(true, w.Write(make([]byte, journal.MaxChunkBytes)))
	f(false, w.Write(make([]byte, journal.MaxChunkBytes+1)))
	f(false, w.Write(nil))
	f(false, w.Commit(make([]byte, journal.MaxMetaBytes+1)))
	f(true, w.Commit(make([]byte, journal.MaxMetaBytes)))
	f(false, w.Commit(nil))
	f(false, w.Write([]byte("late")))
	f(true, w.Abort())
	list, err := s.ListSnapshots()
	if err != nil || len(list) != 1 || len(list[0].Meta) != journal.MaxMetaBytes {
		t.Fatal(list, err)
	}
	f(false, s.WriteBlock(1, make([]byte, journal.MaxStoredBlock+1)))
	f(true, s.WriteBlock(1, make([]byte, journal.MaxStoredBlock)))
	f(true, s.Blocks(1, func(_ uint64, b []byte) error {
		if len(b) != journal.MaxStoredBlock {
			t.Error(len(b))
		}
		return nil
	}))
}

func TestErrorOfTheReaderComesBack(t *testing.T) {
	s := mustOpen(t, Config{Dir: t.TempDir()})
	defer mustClose(t, s)
	mustWrite(t, s, 1, 3, 10)
	writeSnapshot(t, s, 1, 3)
	stop := errors.New("stop")
	if err := s.Blocks(0, func(uint64, []byte) error { return stop }); err != stop {
		t.Error(err)
	}
	if err := s.ReadSnapshot(1, func([]byte) error { return stop }); err != stop {
		t.Error(err)
	}
}

func TestMark(t *testing.T) {
	for _, first := range []uint64{0, 1, 1 << 40} {
		for _, closed := range []bool{false, true} {
			b := appendMark([]byte("x"), first, closed)[1:]
			got, gotClosed, ok := parseMark(b)
			if !ok || got != first || gotClosed != closed {
				t.Fatal(got, gotClosed, ok)
			}
			for bit := range len(b) * 8 {
				c := bytes.Clone(b)
				c[bit/8] ^= 1 << (bit % 8)
				if _, _, ok := parseMark(c); ok {
					t.Fatalf("bit %d was flipped, and the mark is good", bit)
				}
			}
			if _, _, ok := parseMark(b[:markLen-1]); ok {
				t.Fatal("a cut mark is good")
			}
		}
	}
}

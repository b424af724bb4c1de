package journal_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// entries returns the log of a store as a Builder takes it.
func entries(t *testing.T, s journal.Store) (list []journal.Entry) {
	t.Helper()
	err := journal.NewInspector(s, 0, journal.Always).Blocks(0, func(b *journal.BlockView) error {
		e := journal.Entry{Index: b.First, Epoch: b.Epoch, Time: b.Time, Claim: b.Claim}
		if b.Claim {
			list = append(list, e)
			return nil
		}
		return b.Records(0, func(i journal.Index, rec []byte) error {
			e.Index, e.Record = i, bytes.Clone(rec)
			list = append(list, e)
			return nil
		})
	}, func(d journal.Damage) error { return &d.DamageError })
	must(t, err)
	return list
}

// lived is a store with two owners, records of many sizes and two snapshots.
func lived(t *testing.T, disk *memstore.Disk) {
	t.Helper()
	for life := range 2 {
		s, err := disk.Open()
		must(t, err)
		l, err := journal.Open(s, journal.Config{})
		must(t, err)
		after, err := l.LoadSnapshot(func(r io.Reader, _ journal.Index, _ uint64) error { return nil })
		must(t, err)
		must(t, l.Replay(after, func(journal.Index, []byte) error { return nil }))
		for i := range 300 {
			l.Append(bytes.Repeat([]byte{byte(i), byte(life)}, 1+i*i))
			if i%7 == 0 {
				must(t, l.Barrier(t.Context()))
			}
			if i == 200 {
				must(t, l.WriteSnapshot(l.Appended(), func(w io.Writer) error {
					_, err := w.Write(bytes.Repeat([]byte("state"), 100_000))
					return err
				}))
			}
		}
		must(t, l.Close())
	}
}

// TestBuilderMakesTheSameLog: what is read of a log and added to a new one has the same indexes,
// epochs, times and records, verifies, and an owner goes on from its end.
func TestBuilderMakesTheSameLog(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	lived(t, disk)
	s, err := disk.Open()
	must(t, err)
	want := entries(t, s)
	in := journal.NewInspector(s, 0, journal.Always)
	infos, err := in.Snapshots()
	must(t, err)
	if len(want) == 0 || want[0].Index == 1 || len(infos) != 2 {
		t.Fatalf("%d entries from %d, %d snapshots: the log is not cut", len(want), want[0].Index, len(infos))
	}
	other := memstore.New(memstore.Options{})
	to, err := other.Open()
	must(t, err)
	b := journal.NewBuilder(to, 0, journal.Always)
	newest := &infos[1]
	must(t, in.ReadSnapshot(newest, func(r io.Reader) error {
		return b.Snapshot(*newest, func(w io.Writer) error {
			_, err := io.Copy(w, r)
			return err
		})
	}))
	for i := range want {
		must(t, b.Add(&want[i]))
	}
	last, err := b.Close()
	if err != nil || last != want[len(want)-1].Index {
		t.Fatal(last, err)
	}
	got := entries(t, to)
	if !reflect.DeepEqual(got, want) {
		t.Error("another log")
	}
	must(t, to.Close())
	to, err = other.Open()
	must(t, err)
	l, err := journal.Open(to, journal.Config{})
	must(t, err)
	size := uint64(0)
	after, err := l.LoadSnapshot(func(r io.Reader, _ journal.Index, n uint64) error {
		size = n
		_, err := io.Copy(io.Discard, r)
		return err
	})
	must(t, err)
	if after != newest.Index || size != newest.Bytes {
		t.Errorf("the snapshot of %d has %d bytes, want %d of %d", after, size, newest.Index, newest.Bytes)
	}
	must(t, l.Replay(after, func(journal.Index, []byte) error { return nil }))
	if l.Epoch() != 3 || l.Appended() != last+1 {
		t.Errorf("the next owner has epoch %d at %d", l.Epoch(), l.Appended())
	}
	must(t, l.Close())
	must(t, s.Close())
}

// TestBuilderRefuses: each entry alone could stand somewhere, but not there.
func TestBuilderRefuses(t *testing.T) {
	rec := []byte("r")
	claim := journal.Entry{Index: 1, Epoch: 1, Time: 5, Claim: true}
	second := journal.Entry{Index: 2, Epoch: 1, Time: 6, Record: rec}
	f := func(why string, bad journal.Entry, before ...journal.Entry) {
		t.Helper()
		s, err := memstore.New(memstore.Options{}).Open()
		must(t, err)
		b := journal.NewBuilder(s, 0, journal.Always)
		for i := range before {
			must(t, b.Add(&before[i]))
		}
		if err := b.Add(&bad); err == nil {
			t.Errorf("%s: it was taken", why)
		}
		if _, err := b.Close(); len(before) == 0 && err == nil {
			t.Errorf("%s: an empty log was built", why)
		}
	}
	f("index 0", journal.Entry{Epoch: 1, Claim: true})
	f("epoch 0", journal.Entry{Index: 1, Claim: true})
	f("a log begins with a record", journal.Entry{Index: 1, Epoch: 1, Record: rec})
	f("a log begins later, without a snapshot", journal.Entry{Index: 2, Epoch: 1, Record: rec})
	f("a claim with a record", journal.Entry{Index: 1, Epoch: 1, Claim: true, Record: rec})
	f("an empty record", journal.Entry{Index: 2, Epoch: 1, Time: 6}, claim)
	f("a hole", journal.Entry{Index: 3, Epoch: 1, Time: 6, Record: rec}, claim)
	f("twice", second, claim, second)
	f("another epoch", journal.Entry{Index: 2, Epoch: 2, Time: 6, Record: rec}, claim)
	f("a claim of the same epoch", journal.Entry{Index: 2, Epoch: 1, Time: 6, Claim: true}, claim)
	f("an earlier time", journal.Entry{Index: 2, Epoch: 1, Time: 4, Record: rec}, claim)
	f("a record that is too long", journal.Entry{Index: 2, Epoch: 1, Time: 6, Record: make([]byte, journal.MaxRecordBytes+1)}, claim)
}

// TestBuilderTakesTheLargestRecord has it in a block of its own.
func TestBuilderTakesTheLargestRecord(t *testing.T) {
	s, err := memstore.New(memstore.Options{}).Open()
	must(t, err)
	b := journal.NewBuilder(s, 0, journal.Always)
	must(t, b.Add(&journal.Entry{Index: 1, Epoch: 1, Claim: true}))
	must(t, b.Add(&journal.Entry{Index: 2, Epoch: 1, Record: make([]byte, journal.MaxRecordBytes)}))
	must(t, b.Add(&journal.Entry{Index: 3, Epoch: 1, Record: []byte("r")}))
	if last, err := b.Close(); err != nil || last != 3 {
		t.Error(last, err)
	}
	if got := entries(t, s); len(got) != 3 {
		t.Errorf("%d entries", len(got))
	}
}

// TestBuilderSnapshotNeedsItsLog: a log that ends before what its snapshot holds is not built.
func TestBuilderSnapshotNeedsItsLog(t *testing.T) {
	s, err := memstore.New(memstore.Options{}).Open()
	must(t, err)
	b := journal.NewBuilder(s, 0, journal.Always)
	state := func(w io.Writer) error { _, err := w.Write([]byte("state")); return err }
	if err := b.Snapshot(journal.SnapshotInfo{Index: 5, Through: 4, Epoch: 1}, state); err == nil {
		t.Error("a snapshot that ends before it begins")
	}
	must(t, b.Snapshot(journal.SnapshotInfo{Index: 5, Through: 7, Epoch: 1}, state))
	if err := b.Snapshot(journal.SnapshotInfo{Index: 5, Through: 7, Epoch: 1}, state); err == nil {
		t.Error("two snapshots")
	}
	if err := b.Add(&journal.Entry{Index: 7, Epoch: 1, Record: []byte("r")}); err == nil {
		t.Error("a hole behind the snapshot")
	}
	must(t, b.Add(&journal.Entry{Index: 6, Epoch: 1, Record: []byte("r")}))
	if _, err := b.Close(); err == nil {
		t.Error("a log that is too short")
	}
}

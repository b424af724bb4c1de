package journal_test

import (
	"io"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

func TestLastSnapshot(t *testing.T) {
	now := time.Unix(1000, 0)
	disk := memstore.New(memstore.Options{})
	open := func() *journal.Log {
		t.Helper()
		s, err := disk.Open()
		if err != nil {
			t.Fatal(err)
		}
		l, err := journal.Open(s, journal.Config{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	f := func(wantIndex journal.Index, wantTime time.Time, wantOK, wantKnown bool) {
		t.Helper()
		index, at, ok, known := l.LastSnapshot()
		if index != wantIndex || ok != wantOK || known != wantKnown || !at.Equal(wantTime) {
			t.Errorf("%d at %v, %v, %v", index, at, ok, known)
		}
	}
	f(0, time.Time{}, false, true)
	if err := l.Replay(0, func(journal.Index, []byte) error { f(0, time.Time{}, false, false); return nil }); err != nil {
		t.Fatal(err)
	}
	index := l.Append([]byte("x"))
	err := l.WriteSnapshot(index, func(w io.Writer) error {
		f(0, time.Time{}, false, false)
		_, err := w.Write([]byte("state"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f(index, now, true, true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open()
	defer l.Close()
	f(index, now, true, true) // from before the start
}

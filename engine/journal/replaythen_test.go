package journal_test

import (
	"context"
	"errors"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// TestReplayThen: the end is reached behind the last record and before the claim; the one that
// refuses there leaves the log as it was, and no one asks after an error.
func TestReplayThen(t *testing.T) {
	d := memstore.New(memstore.Options{})
	l, _ := start(t, d, journal.Config{})
	for _, rec := range []string{"a", "b"} {
		l.Append([]byte(rec))
	}
	if err := l.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	f := func(atRecord, atEnd, want error, told string, ends journal.Index) {
		t.Helper()
		s, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		l, err := journal.Open(s, journal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		got := ""
		err = l.ReplayThen(0, func(_ journal.Index, rec []byte) error { got += string(rec); return atRecord }, func() error { got += "."; return atEnd })
		if err != want || got != told || l.Appended() != ends {
			t.Errorf("%q up to %d, %v; want %q up to %d, %v", got, l.Appended(), err, told, ends, want)
		}
	}
	f(nil, refused, refused, "ab.", 3)
	f(refused, nil, refused, "a", 3)
	f(nil, nil, nil, "ab.", 4)
	f(nil, nil, nil, "ab.", 5)
}

package journal_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// shortOfRoom is a store whose snapshots find no room at the end, as often as it is set to.
type shortOfRoom struct {
	journal.Store
	left int
	err  error
}

type shortWriter struct {
	journal.SnapshotWriter
	of *shortOfRoom
}

func (s *shortOfRoom) BeginSnapshot(g uint64) (journal.SnapshotWriter, error) {
	w, err := s.Store.BeginSnapshot(g)
	return &shortWriter{w, s}, err
}

func (w *shortWriter) Commit(meta []byte) error {
	if w.of.left > 0 {
		w.of.left--
		return w.of.err
	}
	return w.SnapshotWriter.Commit(meta)
}

// TestASnapshotWithoutRoomStopsNothing: where a store states that nothing of a snapshot came about,
// the journal goes on and the next snapshot counts. Any other error of a commit is final.
func TestASnapshotWithoutRoomStopsNothing(t *testing.T) {
	noRoom := errors.New("no room")
	f := func(err error, goesOn bool) {
		t.Helper()
		store, openErr := memstore.New(memstore.Options{}).Open()
		if openErr != nil {
			t.Fatal(openErr)
		}
		l, openErr := journal.Open(&shortOfRoom{store, 1, err}, journal.Config{})
		if openErr != nil {
			t.Fatal(openErr)
		}
		defer l.Close()
		if err := l.Replay(0, func(journal.Index, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		snapshot := func() error {
			i := l.Append([]byte("x"))
			return l.WriteSnapshot(i, func(w io.Writer) error { _, err := w.Write([]byte("state")); return err })
		}
		if got := snapshot(); !errors.Is(got, noRoom) {
			t.Errorf("the snapshot without room: %v", got)
		}
		if err := snapshot(); (err == nil) != goesOn {
			t.Errorf("%v: the next snapshot: %v", err, err)
		}
		if l.Stats().Snapshots == 1 != goesOn || (l.Err() == nil) != goesOn {
			t.Errorf("%d snapshots, %v", l.Stats().Snapshots, l.Err())
		}
	}
	f(fmt.Errorf("%w: %w", journal.ErrNotCommitted, noRoom), true)
	f(noRoom, false)
}

package journal_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// TestCheckpointHoldsSnapshotsBack: while a checkpoint is made, records become durable and no
// snapshot does; one that was asked for comes after it.
func TestCheckpointHoldsSnapshotsBack(t *testing.T) {
	s, err := memstore.New(memstore.Options{}).Open()
	must(t, err)
	l, err := journal.Open(s, journal.Config{})
	must(t, err)
	if err := l.Checkpoint(t.Context(), nil); !errors.Is(err, journal.ErrNotReplayed) {
		t.Errorf("before the replay: %v", err)
	}
	must(t, l.Replay(0, func(journal.Index, []byte) error { return nil }))
	before := l.Enqueue([]byte("a"))
	written := make(chan error, 1)
	err = l.Checkpoint(t.Context(), func(upTo journal.Index) error {
		if upTo != before || l.Durable() < before {
			t.Errorf("up to %d, durable %d, appended %d", upTo, l.Durable(), before)
		}
		go func() {
			written <- l.WriteSnapshot(before, func(w io.Writer) error {
				_, err := w.Write([]byte("state"))
				return err
			})
		}()
		for range 100 { // each is durable before the next
			l.Append([]byte("b"))
			must(t, l.Barrier(t.Context()))
		}
		list, err := s.ListSnapshots()
		if len(list) > 0 {
			t.Errorf("a snapshot was written meanwhile: %v", list)
		}
		return err
	})
	must(t, err)
	must(t, <-written)
	if list, err := s.ListSnapshots(); err != nil || len(list) != 1 {
		t.Errorf("after it: %v, %v", list, err)
	}
	broken := errors.New("broken")
	if err := l.Checkpoint(t.Context(), func(journal.Index) error { return broken }); err != broken {
		t.Errorf("an error of f: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = l.Checkpoint(t.Context(), func(journal.Index) error {
		cancel()
		return l.Checkpoint(ctx, func(journal.Index) error { t.Error("two at a time"); return nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("beside another one: %v", err)
	}
	must(t, l.Close())
	if err := l.Checkpoint(t.Context(), nil); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

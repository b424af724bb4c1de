package journal_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// sharedLog is a log of several owners: it takes a block only from the one that knows its end.
type sharedLog struct {
	mu     sync.Mutex
	grown  sync.Cond
	blocks []sharedBlock
}

type sharedBlock struct {
	first journal.Index
	data  []byte
}

// handle is the store of one of them. Its snapshots are of its own.
type handle struct {
	journal.Store
	log  *sharedLog
	seen int // blocks
	turn bool
}

var errFenced = errors.New("another owner has written")

func (l *sharedLog) open(t *testing.T) *handle {
	t.Helper()
	s, err := memstore.New(memstore.Options{}).Open()
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grown.L = &l.mu
	return &handle{Store: s, log: l, seen: len(l.blocks)}
}

// WriteBlock implements journal.Blocks.
func (h *handle) WriteBlock(first journal.Index, block []byte) error {
	l := h.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.seen != len(l.blocks) {
		return errFenced
	}
	l.blocks = append(l.blocks, sharedBlock{first, slices.Clone(block)})
	h.seen++
	l.grown.Broadcast()
	return nil
}

// Blocks implements journal.Blocks.
func (h *handle) Blocks(from journal.Index, f func(first journal.Index, block []byte) error) error {
	l := h.log
	l.mu.Lock()
	blocks := l.blocks
	l.mu.Unlock()
	return each(blocks, from, f)
}

func each(blocks []sharedBlock, from journal.Index, f func(first journal.Index, block []byte) error) error {
	for i, b := range blocks {
		if i+1 < len(blocks) && blocks[i+1].first <= from {
			continue
		}
		if err := f(b.first, b.data); err != nil {
			return err
		}
	}
	return nil
}

// Follow implements journal.Shared.
func (h *handle) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	l := h.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := 0; ; {
		for ; at < len(l.blocks); at++ {
			if err := f(l.blocks[at].first, l.blocks[at].data); err != nil {
				return err
			}
		}
		if h.seen = at; h.turn {
			return nil
		}
		l.grown.Wait()
	}
}

// promote ends Follow.
func (h *handle) promote() {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.turn = true
	h.log.grown.Broadcast()
}

// TestFollowerTakesOver: a log that is being written is followed record by record, and its follower
// goes on where the owner has ended, with an epoch of its own. The owner before can write no more.
func TestFollowerTakesOver(t *testing.T) {
	shared := &sharedLog{}
	first := shared.open(t)
	first.promote()
	failed := make(chan error, 1)
	owner, err := journal.Open(first, journal.Config{OnFailure: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Replay(0, func(journal.Index, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	write := func(l *journal.Log, rec string) error {
		l.Append([]byte(rec))
		return l.Barrier(context.Background())
	}
	if err := write(owner, "before"); err != nil {
		t.Fatal(err)
	}

	second := shared.open(t)
	standby, err := journal.Open(second, journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	records, ended := make(chan string), make(chan error, 1)
	go func() {
		ended <- standby.Replay(0, func(_ journal.Index, rec []byte) error {
			records <- string(rec)
			return nil
		})
	}()
	if got := <-records; got != "before" {
		t.Fatalf("%q", got)
	}
	for _, rec := range []string{"live", ""} { // the empty one shows that the owner is there
		if err := write(owner, rec); err != nil {
			t.Fatal(err)
		}
		if got := <-records; got != rec {
			t.Fatalf("%q, not %q", got, rec)
		}
	}
	for standby.Durable() < owner.Durable() {
		time.Sleep(time.Millisecond)
	}
	second.promote()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if standby.Epoch() != owner.Epoch()+1 || standby.Appended() != owner.Appended()+1 {
		t.Errorf("epoch %d, end %d after %d, %d", standby.Epoch(), standby.Appended(), owner.Epoch(), owner.Appended())
	}
	if err := write(standby, "after"); err != nil {
		t.Fatal(err)
	}
	if err := write(owner, "late"); !errors.Is(err, journal.ErrFailed) || !errors.Is(<-failed, errFenced) {
		t.Errorf("the owner before: %v", err)
	}
	var all []string
	if err := standby.Replay(0, func(_ journal.Index, rec []byte) error { all = append(all, string(rec)); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"before", "live", "", "after"}; !slices.Equal(all, want) {
		t.Errorf("%q, not %q", all, want)
	}
}

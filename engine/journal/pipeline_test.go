package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// slow is a pipelined store: a block that was begun is written when the test allows it.
type slow struct {
	journal.Store
	most     int
	inFlight chan held
	begun    int
	peak     int
	allowed  chan error // one for each block, nil: it is written
	failed   error
}

type held struct {
	first journal.Index
	block []byte
}

// InFlight implements journal.Pipelined.
func (s *slow) InFlight() int { return s.most }

// BeginBlock implements journal.Pipelined.
func (s *slow) BeginBlock(first journal.Index, block []byte) error {
	s.inFlight <- held{first, block}
	s.begun++
	s.peak = max(s.peak, len(s.inFlight))
	return nil
}

// AwaitBlock implements journal.Pipelined.
func (s *slow) AwaitBlock() error {
	err := <-s.allowed
	h := <-s.inFlight
	if s.failed == nil {
		if s.failed = err; err == nil {
			return s.WriteBlock(h.first, h.block)
		}
	}
	return s.failed
}

// slowLife begins a life on a pipelined store in memory.
func slowLife(t *testing.T, most int, set ...func(*journal.Config)) (*life, *slow, Place) {
	t.Helper()
	p := on(memstore.Options{})
	var s *slow
	l, err := tryBegin(t, p, func(inner journal.Store) journal.Store {
		s = &slow{Store: inner, most: most, inFlight: make(chan held, 16), allowed: make(chan error, 100)}
		return s
	}, append(set, smallBlocks)...)
	must(t, err)
	return l, s, p
}

// TestPipeline: as many blocks are on their way as the store takes, and not one more. They are
// acknowledged in order, each when it is written.
func TestPipeline(t *testing.T) {
	for most := 1; most <= 4; most++ {
		synctest.Test(t, func(t *testing.T) {
			var durable []journal.Index
			l, s, p := slowLife(t, most, func(c *journal.Config) { c.OnDurable = func(upTo journal.Index) { durable = append(durable, upTo) } })
			for range 10 {
				l.appendMany(1, 900) // a block each
			}
			synctest.Wait()
			if want := map[bool]int{true: most, false: 0}[most > 1]; s.peak != want || most > 1 && len(durable) != 0 {
				t.Errorf("%d blocks are on their way of %d, %v are durable", s.peak, most, durable)
			}
			if most > 1 {
				s.allowed <- nil
				synctest.Wait()
				if !slices.Equal(durable, []journal.Index{2}) || l.log.Durable() != 2 || s.begun != most+1 {
					t.Errorf("after one block %v are durable, and %d were begun", durable, s.begun)
				}
			}
			close(s.allowed)
			l.close()
			if len(durable) != 10 || !slices.IsSorted(durable) || s.peak > most {
				t.Errorf("%v were durable, %d blocks at a time", durable, s.peak)
			}
			next := begin(t, p)
			next.wantState(l.state)
			next.close()
		})
	}
}

// TestPipelineFails: from the first block on that fails nothing is acknowledged, though the store
// would have written it, and everyone is informed once.
func TestPipelineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		l, s, p := slowLife(t, 4, func(c *journal.Config) { c.OnFailure = func(err error) { failures = append(failures, err) } })
		for range 10 {
			l.appendMany(1, 900)
		}
		s.allowed <- nil
		s.allowed <- errBroken
		close(s.allowed)
		if err := l.log.Barrier(context.Background()); !errors.Is(err, errBroken) || l.log.Durable() != 2 {
			t.Errorf("barrier: %v, durable %d", err, l.log.Durable())
		}
		synctest.Wait()
		if len(failures) != 1 || !errors.Is(failures[0], journal.ErrFailed) || len(s.inFlight) != 0 {
			t.Errorf("failures %v, %d blocks are lent still", failures, len(s.inFlight))
		}
		if err := l.log.Close(); !errors.Is(err, errBroken) {
			t.Errorf("close: %v", err)
		}
		next := begin(t, p)
		next.wantState(upTo(l.state, 2))
		next.close()
	})
}

// TestPipelineLingers: a linger that begins while the committer waits for work ends by its time.
func TestPipelineLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, _ := slowLife(t, 2)
		write := func(records int) {
			for range records {
				l.log.Enqueue([]byte("record"))
			}
			l.log.Flush()
			time.Sleep(journal.MaxLinger)
			s.allowed <- nil
			synctest.Wait()
			if l.log.Durable() != l.log.Appended() {
				t.Fatalf("%d records: durable up to %d of %d", records, l.log.Durable(), l.log.Appended())
			}
		}
		for range 20 {
			write(32)
		}
		before := time.Now()
		write(1)
		if took := time.Since(before); took != journal.MaxLinger {
			t.Errorf("a lonely record took %s", took)
		}
		close(s.allowed)
		must(t, l.log.Close())
	})
}

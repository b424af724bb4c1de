package journal_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// TestLead: the caller writes what was appended, and has it acknowledged on return.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var acked journal.Index
		l, _ := start(t, memstore.New(memstore.Options{}), journal.Config{OnDurable: func(upTo journal.Index) { acked = upTo }})
		synctest.Wait() // the committer is idle
		l.Lead()
		if got := l.Stats().Groups; got != 0 {
			t.Errorf("%d groups of nothing", got)
		}
		for n := range uint64(3) {
			l.Enqueue([]byte("a"))
			last := l.Enqueue([]byte("b"))
			l.Lead()
			if l.Durable() != last || acked != last || l.Stats().Groups != n+1 { // no Wait: no other goroutine has run
				t.Fatalf("durable up to %d, reported up to %d, in %d groups; want %d in %d", l.Durable(), acked, l.Stats().Groups, last, n+1)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// stallingStore is a store that reports that it may stall.
type stallingStore struct {
	journal.Store
	stalls atomic.Bool
}

func (s *stallingStore) MayStall() bool { return s.stalls.Load() }

// TestLeadDoesNotWait: where more than one quick write is to be waited for, the committer writes.
func TestLeadDoesNotWait(t *testing.T) {
	f := func(name string, delay time.Duration, stalls, open, leads bool) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := memstore.New(memstore.Options{})
				opened, err := disk.Open()
				if err != nil {
					t.Fatal(err)
				}
				store := &stallingStore{Store: opened}
				l, err := journal.Open(store, journal.Config{})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Replay(0, func(journal.Index, []byte) error { return nil }); err != nil {
					t.Fatal(err)
				}
				disk.Delay(delay)
				for range 50 { // the smoothed time of a write comes near to that of each
					l.Enqueue([]byte("earlier"))
					l.Flush()
					synctest.Wait()
					time.Sleep(2 * max(delay, journal.MaxLinger))
				}
				disk.Delay(time.Hour)
				store.stalls.Store(stalls)
				if open {
					l.Begin()
				}
				began, last := time.Now(), l.Enqueue([]byte("later"))
				l.Lead()
				if got := time.Since(began); (got != 0) != leads || (l.Durable() == last) != leads {
					t.Errorf("it waited for %v, and %d of %d is durable", got, l.Durable(), last)
				}
				if open {
					l.End()
				}
				time.Sleep(2 * time.Hour)
				if l.Durable() != last {
					t.Errorf("%d of %d is durable: the committer does not write", l.Durable(), last)
				}
				disk.Delay(0)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	f("quick disk", journal.MaxLead, false, false, true)
	f("slow disk", journal.MaxLead*5/4, false, false, false)
	f("stall", 0, true, false, false)
	f("open request", 0, false, true, false)
}

// TestLeadWhileAnotherLeads: what is appended meanwhile is written by the committer.
func TestLeadWhileAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memstore.New(memstore.Options{})
		l, _ := start(t, disk, journal.Config{})
		synctest.Wait()
		disk.Delay(time.Second)
		l.Enqueue([]byte("a"))
		go l.Lead()
		synctest.Wait()
		last := l.Enqueue([]byte("b"))
		began := time.Now()
		if l.Lead(); time.Since(began) != 0 {
			t.Error("it waited for the other one")
		}
		if time.Sleep(3 * time.Second); l.Durable() != last || l.Stats().Groups != 2 {
			t.Errorf("durable up to %d of %d, in %d groups", l.Durable(), last, l.Stats().Groups)
		}
		l.Enqueue([]byte("c"))
		go l.Lead()
		synctest.Wait()
		if err := l.Close(); err != nil || l.Durable() != last+1 { // it waits for what a caller writes
			t.Fatalf("%v, durable up to %d, want %d", err, l.Durable(), last+1)
		}
	})
}

// TestLeadFails: an error of a write by a caller stops the journal, once.
func TestLeadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, failures := memstore.New(memstore.Options{}), 0
		l, _ := start(t, disk, journal.Config{OnFailure: func(error) { failures++ }})
		synctest.Wait()
		kept := l.Durable()
		broken := errors.New("broken")
		disk.FailAt(1, broken)
		l.Enqueue([]byte("a"))
		l.Lead()
		l.Enqueue([]byte("b"))
		l.Lead()
		synctest.Wait()
		if err := l.Err(); !errors.Is(err, journal.ErrFailed) || !errors.Is(err, broken) || failures != 1 || l.Durable() != kept {
			t.Errorf("%v, %d failures, durable up to %d, want %d", err, failures, l.Durable(), kept)
		}
		if err := l.Close(); !errors.Is(err, broken) {
			t.Errorf("close: %v", err)
		}
	})
}

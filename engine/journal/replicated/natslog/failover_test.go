package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/natstest"
	"trunkline/fuzz/rounds"
)

// TestFenceOnCluster: another node takes the log over while the owner appends, several blocks at a
// time. What was acknowledged is in the log of the new one, and the old one acknowledges no more. A
// claim fails while blocks come in between, so the owner pauses at times, the longer the more
// claims have failed.
func TestFenceOnCluster(t *testing.T) {
	c := natstest.New(t)
	a, b := c.Connect(0), c.Connect(1)
	defer a.Close()
	defer b.Close()
	la, lb := c.Open(a, "fence", natstest.Patient), c.Open(b, "fence", natstest.Patient)
	for round := range rounds.Few(1, 5) {
		old, _, err := claim(t, la, patient)
		must(t, err)
		acked := make(map[journal.Index]string)
		var mu sync.Mutex
		var wg sync.WaitGroup
		var claims atomic.Int64
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					time.Sleep(time.Duration(w) * time.Millisecond)
					if i%8 == 7 {
						time.Sleep(100 * time.Millisecond << min(claims.Load(), 6))
					}
					rec := fmt.Sprint(round, " ", w, " ", i)
					at := old.Append([]byte(rec))
					if err := old.Await(context.Background(), at); err != nil {
						if !errors.Is(err, replicated.ErrNotOwner) {
							t.Errorf("the old owner: %v", err)
						}
						return
					}
					mu.Lock()
					acked[at] = rec
					mu.Unlock()
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		next, state := takeOver(t, c, func() (*journal.Log, map[journal.Index]string, error) {
			claims.Add(1)
			return claim(t, lb, patient)
		})
		wg.Wait()
		for at, rec := range acked {
			if state[at] != rec {
				t.Fatalf("record %d was acknowledged as %q and is %q", at, rec, state[at])
			}
		}
		must(t, next.Close())
		_ = old.Close() // it returns why it has ended
	}
}

// takeOver claims until nothing comes between.
func takeOver(t *testing.T, c *natstest.Cluster, claim func() (*journal.Log, map[journal.Index]string, error)) (j *journal.Log, state map[journal.Index]string) {
	t.Helper()
	c.Await("a new owner", func() bool {
		var err error
		if j, state, err = claim(); err != nil && !errors.Is(err, replicated.ErrNotOwner) && !errors.Is(err, context.DeadlineExceeded) {
			t.Logf("a claim: %v", err)
		}
		return err == nil
	})
	return j, state
}

// TestConcurrentClaimsOnCluster: of eight nodes that have seen the same end, one takes the log
// over.
func TestConcurrentClaimsOnCluster(t *testing.T) {
	c := natstest.New(t)
	var stores []*replicated.Store
	for i := range 8 {
		nc := c.Connect(i % 3)
		defer nc.Close()
		s, err := open(t, c.Open(nc, "claims", natstest.Patient), patient)
		must(t, err)
		stores = append(stores, s)
	}
	errs := make([]error, len(stores))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() { errs[i] = s.WriteBlock(1, fmt.Append(nil, "claim of ", i)) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Errorf("%d and %d both won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, replicated.ErrNotOwner):
			t.Errorf("a claim that lost: %v", err)
		}
	}
	if won < 0 {
		t.Fatalf("no claim won: %v", errs)
	}
	must(t, stores[won].WriteBlock(2, []byte("next")))
}

// TestLeaderStops: the server that leads the stream stops while an owner appends. The owner asks
// again until there is a new leader, or ends; in both cases what was acknowledged is in the log
// once.
func TestLeaderStops(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for an election")
	}
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	l := c.Open(nc, "leader", natstest.Patient)
	c.Lead(nc, "leader", 1)
	j, state, err := claim(t, l, patient)
	must(t, err)
	acked := make(map[journal.Index]string)
	for i := range 300 {
		if i == 100 {
			c.Stop(1)
		}
		rec := fmt.Sprint("record ", i)
		at := j.Append([]byte(rec))
		if i%10 == 9 {
			if err := j.Barrier(context.Background()); err != nil {
				t.Logf("the owner has ended: %v", err)
				break
			}
		}
		state[at] = rec
		if j.Durable() >= at {
			acked[at] = rec
		}
	}
	_ = j.Close() // it returns why it has ended
	_, shown := takeOver(t, c, func() (*journal.Log, map[journal.Index]string, error) { return claim(t, l, patient) })
	compare(t, shown, state)
	for at, rec := range acked {
		if shown[at] != rec {
			t.Fatalf("record %d was acknowledged as %q and is %q", at, rec, shown[at])
		}
	}
	seen := make(map[string]bool)
	for _, rec := range shown {
		if seen[rec] {
			t.Errorf("%q is in the log twice", rec)
		}
		seen[rec] = true
	}
}

package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

// inBubble runs a test whose waits take no time.
func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// TestFence: when another node has taken the log over, the owner before it acknowledges nothing
// more, and what it appended late is not in the log.
func TestFence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.append("kept")
		must(t, a.barrier())
		must(t, a.store.Barrier(context.Background()))
		must(t, b.claim())
		if b.state[2] != "kept" || b.store.Fence() <= a.store.Fence() || b.journal.Epoch() != a.journal.Epoch()+1 {
			t.Fatalf("the new owner has %v, fence %d after %d", b.state, b.store.Fence(), a.store.Fence())
		}
		late := a.append("late")
		if err := a.barrier(); !errors.Is(err, replicated.ErrNotOwner) || errors.Is(err, replicated.ErrUnknown) {
			t.Fatalf("the old owner appends: %v", err)
		}
		for name, err := range map[string]error{
			"barrier":  a.store.Barrier(context.Background()),
			"block":    a.store.WriteBlock(late+1, []byte("x")),
			"snapshot": a.snapshot(),
			"cut":      a.store.CutBlocks(late),
			"drop":     a.store.DropBlocks(late),
			"sync":     a.store.Sync(),
		} {
			if !errors.Is(err, replicated.ErrNotOwner) {
				t.Errorf("%s of the old owner: %v", name, err)
			}
		}
		if a.durable.Load() >= late || a.journal.Err() == nil {
			t.Errorf("the old owner acknowledged %d", a.durable.Load())
		}
		b.append("new")
		must(t, b.barrier())
		a.die()
		must(t, a.claim())
		if len(a.state) != 2 || a.state[2] != "kept" || a.state[4] != "new" {
			t.Errorf("the log holds %v", a.state)
		}
	})
}

// TestBarrierOfNoOwner: a store that has not appended proves nothing.
func TestBarrierOfNoOwner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		must(t, m[1].open())
		if err := m[1].store.Barrier(context.Background()); !errors.Is(err, replicated.ErrNotOwner) || m[1].store.Fence() != 0 {
			t.Errorf("barrier: %v, fence %d", err, m[1].store.Fence())
		}
		if err := m[0].store.Refresh(context.Background()); err == nil {
			t.Error("an owner looked at the stream again as if it were none")
		}
	})
}

// TestConcurrentClaims: of nodes that have seen the same end, one takes the log over.
func TestConcurrentClaims(t *testing.T) {
	m := members(t, 9)
	var wg sync.WaitGroup
	errs := make([]error, len(m))
	for _, n := range m[1:] {
		must(t, n.open())
	}
	for i, n := range m[1:] {
		wg.Go(func() { errs[i+1] = n.store.WriteBlock(2, []byte("claim")) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs[1:] {
		if err == nil {
			won++
		} else if !errors.Is(err, replicated.ErrNotOwner) || errors.Is(err, replicated.ErrUnknown) {
			t.Errorf("a claim that lost: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d claims won", won, len(m)-1)
	}
	m[0].append("late")
	if err := m[0].barrier(); !errors.Is(err, replicated.ErrNotOwner) {
		t.Errorf("the owner before them: %v", err)
	}
}

// TestLateBlockDoesNotFitBehindClaim: of two blocks on their way the first is lost, and another
// node takes its sequence. The second one arrives then.
func TestLateBlockDoesNotFitBehindClaim(t *testing.T) {
	for behind := range 4 {
		inBubble(t, func(t *testing.T) {
			m := members(t, 2)
			a, b := m[0], m[1]
			a.client.SetFaults(memstream.Faults{Lose: 1000})
			must(t, a.store.BeginBlock(2, []byte("lost")))
			for i := range behind {
				must(t, a.store.BeginBlock(journal.Index(3+i), []byte("lost")))
			}
			if behind == 3 { // all that may be on their way are
				must(t, errors.Join(b.open(), b.store.WriteBlock(2, []byte("claim"))))
				return
			}
			a.client.SetFaults(memstream.Faults{Delay: time.Second})
			must(t, a.store.BeginBlock(journal.Index(3+behind), []byte("late")))
			must(t, b.open())
			must(t, b.store.WriteBlock(2, []byte("claim")))
			time.Sleep(2 * time.Second)
			for range behind + 2 {
				if err := a.store.AwaitBlock(); !errors.Is(err, replicated.ErrNotOwner) {
					t.Errorf("a block of the old owner: %v", err)
				}
			}
			must(t, b.store.WriteBlock(3, []byte("next")))
			want(t, b.store, "claim", "next")
		})
	}
}

// want compares the blocks behind the first one.
func want(t *testing.T, s *replicated.Store, blocks ...string) {
	t.Helper()
	var got []string
	must(t, s.Blocks(2, func(first journal.Index, b []byte) error {
		if first > 1 {
			got = append(got, string(b))
		}
		return nil
	}))
	if fmt.Sprint(got) != fmt.Sprint(blocks) {
		t.Errorf("the log holds %q, want %q", got, blocks)
	}
}

// TestPipelineLimits: as many blocks as configured are on their way, and not one more.
func TestPipelineLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := members(t, 1)[0].store
		for i := range journal.Index(4) {
			must(t, s.BeginBlock(2+i, []byte("x")))
		}
		if err := s.BeginBlock(6, []byte("x")); err == nil {
			t.Error("a fifth block was begun")
		}
		for range 4 {
			must(t, s.AwaitBlock())
		}
		if err := s.AwaitBlock(); err == nil {
			t.Error("a block was awaited that was not begun")
		}
		if err := s.BeginBlock(5, []byte("x")); err == nil {
			t.Error("a block with an index that is taken was begun")
		}
		must(t, s.WriteBlock(6, []byte("x")))
	})
}

// TestConfigLimits: what is beyond a limit is refused.
func TestConfigLimits(t *testing.T) {
	n := newMember(memstream.New(), 1)
	local, err := n.disk.Open()
	must(t, err)
	ok := replicated.Config{Stream: n.client, Chunks: n.client, Local: local, Lease: time.Minute, InFlight: 4}
	for name, c := range map[string]struct {
		set  func(c *replicated.Config)
		good bool
	}{
		"limits":    {func(*replicated.Config) {}, true},
		"lease":     {func(c *replicated.Config) { c.Lease++ }, false},
		"in flight": {func(c *replicated.Config) { c.InFlight++ }, false},
		"negative":  {func(c *replicated.Config) { c.InFlight = -1 }, false},
		"no stream": {func(c *replicated.Config) { c.Stream = nil }, false},
	} {
		cfg := ok
		c.set(&cfg)
		if _, err := replicated.Open(context.Background(), cfg); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPurgedMeanwhile: all that a node has seen of a log is purged before it reads that, as one
// that pauses while others write two snapshots finds. The log is not empty then, and not damaged.
func TestPurgedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.append("kept")
		must(t, a.barrier())
		must(t, b.open())
		read := func() error { return b.store.Blocks(math.MaxUint64, func(journal.Index, []byte) error { return nil }) }
		must(t, read())
		must(t, a.client.Purge(t.Context(), math.MaxUint64))
		if err := read(); !errors.Is(err, replicated.ErrRebuild) {
			t.Errorf("what it has seen was purged: %v", err)
		}
		must(t, b.store.Refresh(t.Context()))
		if err := read(); err != nil {
			t.Errorf("a log that was bare when it was looked at: %v", err)
		}
	})
}

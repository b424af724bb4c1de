package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
)

// follower follows a log and keeps what it has seen.
type follower struct {
	quit  context.CancelFunc
	done  chan error
	state map[journal.Index]string
}

// tailed is a store that a Log follows until ctx ends.
type tailed struct {
	*replicated.Store
	ctx context.Context
}

// Follow implements journal.Shared.
func (s tailed) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	never := make(chan struct{})
	return s.Tail(s.ctx, from, func() <-chan struct{} { return never }, func() bool { return false }, unheard, f)
}

// Close implements journal.Store. The member closes its store.
func (s tailed) Close() error { return nil }

func follow(n *member, after journal.Index) *follower {
	ctx, quit := context.WithCancel(context.Background())
	f := &follower{quit: quit, done: make(chan error, 1), state: make(map[journal.Index]string)}
	store := tailed{n.store, ctx}
	go func() {
		log, err := journal.Open(store, journal.Config{})
		if err == nil {
			err = log.Replay(after, func(i journal.Index, rec []byte) error { f.state[i] = string(rec); return nil })
			_ = log.Close()
		}
		f.done <- err
	}()
	return f
}

// stop ends it and returns why it had ended, if it had.
func (f *follower) stop() error {
	synctest.Wait()
	f.quit()
	err := <-f.done
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// TestFollow: a standby sees what is stored, from any index on, across owners.
func TestFollow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 4)
		a, b, c, d := m[0], m[1], m[2], m[3]
		must(t, c.open())
		all := follow(c, 0)
		for i := range 100 {
			a.append(fmt.Sprint("a", i))
		}
		must(t, a.barrier())
		must(t, d.open())
		some := follow(d, 50)
		must(t, b.claim())
		for i := range 100 {
			b.append(fmt.Sprint("b", i))
		}
		must(t, b.barrier())
		must(t, errors.Join(all.stop(), some.stop()))
		for i, rec := range b.state {
			if all.state[i] != rec || i > 50 && some.state[i] != rec {
				t.Fatalf("record %d is %q and %q, want %q", i, all.state[i], some.state[i], rec)
			}
		}
		if len(all.state) != 200 || len(some.state) != 200-49 {
			t.Fatalf("%d and %d records", len(all.state), len(some.state))
		}
		must(t, c.store.Refresh(context.Background()))
		must(t, c.store.WriteBlock(203, []byte("the standby takes over")))
	})
}

// TestWarmTakeover: a standby that has followed takes the log over and reads no more than what it
// has not seen.
func TestWarmTakeover(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		must(t, b.open())
		f := follow(b, 0)
		for i := range 200 {
			a.append(fmt.Sprint(i))
			if i%50 == 49 {
				must(t, a.barrier())
				synctest.Wait() // it is not behind what a snapshot purges
				must(t, a.snapshot())
			}
		}
		must(t, a.barrier())
		must(t, f.stop())
		seen := journal.Index(0)
		for i := range f.state {
			seen = max(seen, i)
		}
		late := a.append("late")
		must(t, a.barrier())
		must(t, b.store.Refresh(context.Background()))
		log, err := journal.Open(b.store, journal.Config{})
		must(t, err)
		must(t, log.Replay(seen, func(i journal.Index, rec []byte) error {
			if i != late || string(rec) != "late" {
				t.Errorf("record %d (%q) is shown, %d was seen", i, rec, seen)
			}
			f.state[i] = string(rec)
			return nil
		}))
		if fmt.Sprint(f.state) != fmt.Sprint(a.state) {
			t.Errorf("the standby has %v, want %v", f.state, a.state)
		}
		must(t, log.Close())
	})
}

// TestFlippedBitIsNotServed: a replica shows one bit of one block flipped, in any part of it. No
// standby and no new owner sees the block or one behind it.
func TestFlippedBitIsNotServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 3)
		a := m[0]
		for i := range 60 {
			a.append(fmt.Sprint("record ", i))
			must(t, a.barrier())
		}
		size := uint64(a.log.Len())
		for bit := range 64 {
			b, seq := newMember(a.log, uint64(100+bit)), size-5
			b.client.FlipBit(seq, bit*37)
			must(t, b.open())
			f := follow(b, 0)
			var damage *journal.DamageError
			if err := f.stop(); !errors.As(err, &damage) {
				t.Fatalf("bit %d: a standby follows: %v", bit*37, err)
			}
			b.die()
			b.client.FlipBit(seq, bit*37)
			if err := b.claim(); !errors.As(err, &damage) {
				t.Fatalf("bit %d: a new owner: %v", bit*37, err)
			}
			for _, state := range []map[journal.Index]string{f.state, b.state} {
				for i, rec := range state {
					if a.state[i] != rec || i >= damage.Index {
						t.Fatalf("bit %d: record %d was shown as %q", bit*37, i, rec)
					}
				}
			}
			b.die()
		}
		a.append("the owner goes on")
		must(t, a.barrier())
	})
}

// TestHole: a replica that has lost a message does not open, and one that loses it later is not
// followed beyond.
func TestHole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		for i := range 10 {
			a.append(fmt.Sprint(i))
			must(t, a.barrier())
		}
		must(t, b.open())
		b.client.LoseMessage(9)
		var damage *journal.DamageError
		f := follow(b, 0)
		if err := f.stop(); !errors.As(err, &damage) {
			t.Errorf("a standby follows across a hole: %v", err)
		}
		if len(f.state) != 2 {
			t.Errorf("a standby was shown %v", f.state)
		}
		if err := b.store.Refresh(context.Background()); !errors.As(err, &damage) {
			t.Errorf("looked at again: %v", err)
		}
		_ = b.store.Close()
		if err := b.claim(); !errors.As(err, &damage) {
			t.Errorf("claimed: %v", err)
		}
		a.append("the owner goes on")
		must(t, a.barrier())
	})
}

// TestRebuild: a standby whose place was purged, or that has applied what an operator cut, starts
// again.
func TestRebuild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 3)
		a, b, c := m[0], m[1], m[2]
		for i := range 5 {
			a.append(fmt.Sprint(i))
			must(t, a.barrier())
		}
		must(t, errors.Join(b.open(), c.open()))
		f := follow(c, 0)
		synctest.Wait()
		for range 2 {
			a.append("x")
			must(t, a.snapshot())
		}
		if err := (tailed{b.store, context.Background()}).Follow(3, nil); !errors.Is(err, replicated.ErrRebuild) {
			t.Errorf("a standby behind the first message: %v", err)
		}
		last := a.journal.Durable()
		must(t, a.store.CutBlocks(last))
		if err := f.stop(); !errors.Is(err, replicated.ErrRebuild) {
			t.Errorf("a standby that has applied what was cut: %v", err)
		}
	})
}

// TestCutsOfOneLog: blocks between several cuts are found by index, from every index.
func TestCutsOfOneLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := newMember(members(t, 1)[0].log, 7)
		live := map[journal.Index]string{}
		for life := range 6 {
			must(t, n.open())
			from := journal.Index(4 + (life*3)%7)
			if life > 0 {
				must(t, n.store.CutBlocks(from))
				for first := range live {
					if first >= from {
						delete(live, first)
					}
				}
			}
			next := journal.Index(2)
			for first := range live {
				next = max(next, first+2)
			}
			for i := range journal.Index(10) {
				live[next+2*i] = fmt.Sprint(life, " ", next+2*i)
				must(t, n.store.WriteBlock(next+2*i, []byte(live[next+2*i])))
				if i%3 == 0 {
					must(t, n.store.Barrier(context.Background()))
				}
			}
			wantFrom(t, n.store, live)
			n.die()
			must(t, n.open())
			wantFrom(t, n.store, live)
			n.die()
		}
	})
}

// wantFrom reads the blocks from every index on.
func wantFrom(t *testing.T, s *replicated.Store, live map[journal.Index]string) {
	t.Helper()
	last := journal.Index(0)
	for first := range live {
		last = max(last, first)
	}
	for from := journal.Index(2); from <= last+3; from++ {
		at := journal.Index(1)
		for first := range live {
			if first <= from {
				at = max(at, first)
			}
		}
		begun := false
		must(t, s.Blocks(from, func(first journal.Index, b []byte) error {
			if !begun && first != at {
				return fmt.Errorf("blocks from %d begin at %d, want %d", from, first, at)
			}
			if begun = true; first > 1 && live[first] != string(b) {
				return fmt.Errorf("block %d is %q, want %q", first, b, live[first])
			}
			return nil
		}))
		if !begun {
			t.Fatalf("no block from %d on", from)
		}
	}
}

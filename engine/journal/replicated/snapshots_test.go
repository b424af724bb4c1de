package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// filled appends records and writes snapshots, one after each ten.
func filled(t *testing.T, n *member, snapshots int) {
	t.Helper()
	for i := range snapshots {
		for j := range 10 {
			n.append(fmt.Sprint(n.seed, "-", i, "-", j))
		}
		must(t, n.snapshot())
	}
}

func wantState(t *testing.T, n *member, state map[journal.Index]string) {
	t.Helper()
	if fmt.Sprint(n.state) != fmt.Sprint(state) {
		t.Fatalf("the state is %v, want %v", n.state, state)
	}
}

// TestSharedSnapshot: a node that has nothing of its own starts from the shared snapshot, when the
// log before it is purged.
func TestSharedSnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		filled(t, a, 4)
		a.append("after")
		must(t, a.barrier())
		if n := a.log.Len(); n > 20 {
			t.Errorf("%d messages are left", n)
		}
		must(t, b.claim())
		wantState(t, b, a.state)
	})
}

// TestLocalCopy: a node reads its own copy of a snapshot, the owner and a standby that has made
// one; a copy that does not count any more is dropped.
func TestLocalCopy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		filled(t, a, 3)
		for range 2 {
			must(t, b.open())
			must(t, b.store.CopySnapshot(context.Background()))
			must(t, b.store.CopySnapshot(context.Background()))
			must(t, b.store.Close())
			filled(t, a, 1)
		}
		must(t, b.open())
		must(t, b.store.CopySnapshot(context.Background()))
		must(t, b.store.Close())
		sets, err := a.client.Sets(context.Background())
		must(t, err)
		for _, set := range sets {
			must(t, a.client.Drop(context.Background(), set))
		}
		local, err := b.disk.Open()
		must(t, err)
		if list, err := local.ListSnapshots(); err != nil || len(list) != 2 || list[1].Number != 5 {
			t.Errorf("the standby has %d local copies: %v", len(list), err)
		}
		must(t, local.Close())
		a.die()
		must(t, b.claim())
		a.state = b.state
		b.die()
		must(t, a.claim())
		wantState(t, a, b.state)
	})
}

// TestSnapshotOfOldOwner: an owner that has lost the log commits no snapshot, drops none and purges
// nothing.
func TestSnapshotOfOldOwner(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 3)
		a, b, c := m[0], m[1], m[2]
		filled(t, a, 2)
		w, err := a.store.BeginSnapshot(3)
		must(t, err)
		must(t, w.Write([]byte("late")))
		must(t, b.claim())
		before := b.log.Len()
		if err := w.Commit([]byte("meta")); !errors.Is(err, replicated.ErrNotOwner) || errors.Is(err, journal.ErrNotCommitted) {
			t.Errorf("commit of the old owner: %v", err)
		}
		if err := a.store.DropSnapshot(1); !errors.Is(err, replicated.ErrNotOwner) {
			t.Errorf("drop of the old owner: %v", err)
		}
		if err := a.store.DropBlocks(20); !errors.Is(err, replicated.ErrNotOwner) || b.log.Len() != before {
			t.Errorf("purge of the old owner: %v, %d messages of %d", err, b.log.Len(), before)
		}
		filled(t, b, 3)
		must(t, c.claim())
		wantState(t, c, b.state)
		sets, err := c.client.Sets(context.Background())
		if must(t, err); len(sets) != 2 {
			t.Errorf("sets %v are left", sets)
		}
	})
}

// TestChunksLost: a set that is not what was written is not committed on, and a shared one that
// rots is damage.
func TestChunksLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		w, err := a.store.BeginSnapshot(1)
		must(t, errors.Join(err, w.Write([]byte("one")), w.Write([]byte("two"))))
		sets, err := a.client.Sets(context.Background())
		must(t, err)
		must(t, a.client.Put(context.Background(), sets[0], 2, []byte("three")))
		must(t, w.Commit([]byte("meta"))) // what is behind the chunks does not belong to them
		w, err = a.store.BeginSnapshot(2)
		must(t, errors.Join(err, w.Write([]byte("one"))))
		for _, set := range drop(t, a, sets[0]) {
			must(t, a.client.Put(context.Background(), set, 0, []byte("two")))
		}
		if err := w.Commit([]byte("meta")); !errors.Is(err, journal.ErrNotCommitted) {
			t.Errorf("commit of a set that is not there: %v", err)
		}
		must(t, w.Abort())
		must(t, a.client.Drop(context.Background(), sets[0]))
		for i, c := range []string{"one", "tvo"} {
			must(t, a.client.Put(context.Background(), sets[0], uint32(i), []byte(c)))
		}
		must(t, b.open())
		var damage *journal.DamageError
		if err := b.store.ReadSnapshot(1, func([]byte) error { return nil }); !errors.As(err, &damage) {
			t.Errorf("a set that has rotted: %v", err)
		}
		must(t, a.store.ReadSnapshot(1, func([]byte) error { return nil }))
	})
}

// drop drops the sets but one and returns them.
func drop(t *testing.T, n *member, but string) (dropped []string) {
	t.Helper()
	sets, err := n.client.Sets(context.Background())
	must(t, err)
	for _, set := range sets {
		if set != but {
			must(t, n.client.Drop(context.Background(), set))
			dropped = append(dropped, set)
		}
	}
	return dropped
}

// TestLocalDiskFails: a node whose own disk takes no copy goes on with the shared set.
func TestLocalDiskFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		a.disk.FailAt(1, nil)
		filled(t, a, 3)
		must(t, b.claim())
		wantState(t, b, a.state)
	})
}

// TestSnapshotLimit: as many snapshots count as the limit allows, and not one more.
func TestSnapshotLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := members(t, 1)[0].store
		for g := uint64(1); g <= 17; g++ {
			w, err := s.BeginSnapshot(g)
			must(t, err)
			if err := w.Commit([]byte("meta")); (g == 17) != errors.Is(err, journal.ErrNotCommitted) || g < 17 && err != nil {
				t.Errorf("snapshot %d: %v", g, err)
			}
		}
		must(t, s.DropSnapshot(4))
		w, err := s.BeginSnapshot(18)
		must(t, errors.Join(err, w.Commit(nil)))
	})
}

// TestCutLimit: as many cuts are kept as the limit allows, and not one more, until the log before
// them is purged.
func TestCutLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := newMember(members(t, 1)[0].log, 3)
		n.disk = memstore.New(memstore.Options{})
		must(t, n.open())
		for i := range 257 {
			if err := n.store.CutBlocks(2); (err != nil) != (i == 256) {
				t.Fatalf("cut %d: %v", i, err)
			}
		}
		must(t, n.store.WriteBlock(2, []byte("x")))
		want(t, n.store, "x")
	})
}

// TestStreamMadeAnew: a node that has a copy of a snapshot does not take over a stream that knows
// nothing of it. A node without one starts at the beginning.
func TestStreamMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := members(t, 1)[0]
		filled(t, a, 1)
		a.die()
		a.log = memstream.New()
		a.connect()
		if err := a.claim(); !errors.Is(err, replicated.ErrBehind) {
			t.Errorf("a stream that was made again: %v", err)
		}
		b := newMember(a.log, 5)
		must(t, b.claim())
		b.die()
	})
}

// TestPurgeKeepsControl: however much is dropped, what snapshots count stays known.
func TestPurgeKeepsControl(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		s := m[0].store
		w, err := s.BeginSnapshot(1)
		must(t, errors.Join(err, w.Commit([]byte("meta"))))
		for i := range journal.Index(10) {
			must(t, s.WriteBlock(2+i, []byte("x")))
		}
		must(t, s.DropBlocks(^journal.Index(0)))
		must(t, m[1].open())
		if list, err := m[1].store.ListSnapshots(); err != nil || len(list) != 1 {
			t.Errorf("%d snapshots are known: %v", len(list), err)
		}
	})
}

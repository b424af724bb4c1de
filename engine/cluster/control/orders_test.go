package control

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/obs"
)

// nodesOf returns nodes a, b and c, which own the partitions of a list each and follow the others.
// A node after "-" is drained.
func nodesOf(owners string, drained string) (all states) {
	for _, id := range []string{"a", "b", "c"} {
		n := nodeState{Node: id, Drained: strings.Contains(drained, id)}
		for p := range len(owners) {
			role := obs.RoleStandby
			if owners[p:p+1] == id {
				role = obs.RoleOwner
			}
			n.Partitions = append(n.Partitions, obs.ClusterPartition{Partition: p, Role: role, Index: 100})
		}
		all = append(all, n)
	}
	return all
}

// TestWhoMayOwn: the owner moves to a node that follows the journal, and no other.
func TestWhoMayOwn(t *testing.T) {
	f := func(to string, change func(all states), want error, text string) {
		t.Helper()
		all := nodesOf("a", "")
		change(all)
		from, err := all.mayMove(0, to)
		if want == nil && (err != nil || from != "a") || want != nil && (!errors.Is(err, want) || !strings.Contains(err.Error(), text)) {
			t.Errorf("to %s: from %q, %v", to, from, err)
		}
	}
	nothing := func(states) {}
	f("b", nothing, nil, "")
	f("a", nothing, obs.ErrRefused, `node "a" owns partition 0 already`)
	f("d", nothing, obs.ErrNotFound, `node "d" is not of the cluster`)
	f("b", func(all states) { all[1].Drained = true }, obs.ErrRefused, "drained")
	f("b", func(all states) { all[1].Full = true }, obs.ErrRefused, "no room on its disk")
	f("b", func(all states) { all[1].Partitions[0].Role = obs.RoleJoining }, obs.ErrRefused, "does not follow")
	f("b", func(all states) { all[0].Partitions[0].Role = obs.RoleStandby }, obs.ErrRefused, "no owner")
	f("b", func(all states) { all[0].Partitions[0].Index += mayLag }, nil, "")
	f("b", func(all states) { all[0].Partitions[0].Index += mayLag + 1 }, obs.ErrRefused, "50001 records behind")
}

// TestTheLastOwnerCounts: one that was paused may not know of it yet.
func TestTheLastOwnerCounts(t *testing.T) {
	for _, last := range []int{0, 2} {
		all := nodesOf("a", "")
		all[2].Partitions[0].Role = obs.RoleOwner
		all[last].Partitions[0].Fence = 7
		if from, err := all.mayMove(0, "b"); err != nil || from != all[last].Node {
			t.Errorf("from %q, %v, not from %q", from, err, all[last].Node)
		}
	}
}

// TestAnOrderIsForOneLease: one that waits while the partition is given to another node is refused.
// A node that owns the partition again keeps it.
func TestAnOrderIsForOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{ID: "a", Partitions: 1})
		defer func() { _ = n.Shutdown(t.Context()) }()
		owned := func() *Lease {
			l := n.NewLease(0, false)
			l.owns.Store(true)
			return l
		}
		former, next := owned(), owned()
		var current atomic.Pointer[Lease]
		current.Store(former)
		n.Attach(Host{Replica: func(int) Replica { return Replica{Lease: current.Load()} }})
		ended := make(chan error, 1)
		go func() { ended <- n.handOver(t.Context(), 0, "b") }()
		synctest.Wait()
		former.Close()
		current.Store(next)
		select {
		case err := <-ended:
			if !errors.Is(err, obs.ErrRefused) {
				t.Errorf("%v", err)
			}
		case <-next.orders:
			t.Error("an order for a lease that has ended is carried out")
		}
	})
}

// TestALateOrder: a node that stood still does not carry out what the operator has given up.
func TestALateOrder(t *testing.T) {
	n := New(Config{ID: "a", Logger: slog.New(slog.DiscardHandler)})
	defer func() { _ = n.Shutdown(t.Context()) }()
	n.drained.Store(true)
	if err := n.carryOut(t.Context(), question{Ask: askResume, Until: 1}); !errors.Is(err, obs.ErrRefused) ||
		!n.drained.Load() {
		t.Errorf("a late order: %v", err)
	}
	for _, until := range []int64{owner.Now() + int64(carryOutWithin), 0} {
		n.drained.Store(true)
		if err := n.carryOut(t.Context(), question{Ask: askResume, Until: until}); err != nil || n.drained.Load() {
			t.Errorf("an order in time: %v", err)
		}
	}
}

// TestWhoIsNext: what a drained node owns goes to those that own the least.
func TestWhoIsNext(t *testing.T) {
	all := nodesOf("aabaa", "a")
	var got []string
	for _, p := range []int{0, 1, 3, 4} {
		to, err := all.nextOwner(p)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, to)
	}
	if !slices.Equal(got, []string{"c", "b", "c", "b"}) {
		t.Errorf("%v", got)
	}
	if to, err := nodesOf("a", "abc").nextOwner(0); !errors.Is(err, obs.ErrRefused) {
		t.Errorf("%q, %v where all are drained", to, err)
	}
	full := nodesOf("aa", "")
	full[0].Full, full[1].Full = true, true
	for _, p := range []int{0, 1} {
		if to, err := full.nextOwner(p); err != nil || to != "c" {
			t.Errorf("%q, %v where the disk of c alone has room", to, err)
		}
	}
	if moves, err := full.plan(2); err != nil || len(moves) != 0 {
		t.Errorf("%v, %v: partitions move to a disk without room", moves, err)
	}
	if to, err := full.nextOwner(0); !errors.Is(err, obs.ErrRefused) {
		t.Errorf("%q, %v where no other disk has room", to, err)
	}
}

// TestBalance: no more partitions move than have to.
func TestBalance(t *testing.T) {
	f := func(owners, drained string, moved int, want ...int) {
		t.Helper()
		all := nodesOf(owners, drained)
		next, err := all.plan(len(owners))
		if err != nil || len(next) != moved {
			t.Fatalf("%s: %d moves, %v, %v", owners, len(next), next, err)
		}
		after := []byte(owners)
		for partition, to := range next {
			after[partition] = to[0]
		}
		var owned []int
		for _, id := range "abc" {
			owned = append(owned, strings.Count(string(after), string(id)))
		}
		slices.Sort(owned)
		if !slices.Equal(owned, want) {
			t.Errorf("%s becomes %s", owners, after)
		}
	}
	f("abc", "", 0, 1, 1, 1)
	f("aaa", "", 2, 1, 1, 1)
	f("a", "", 0, 0, 0, 1)
	f("aabb", "", 1, 1, 1, 2)
	f("aabb", "c", 0, 0, 2, 2)
	f("aabbcc", "c", 2, 0, 3, 3)
	if _, err := nodesOf("x", "").plan(1); !errors.Is(err, obs.ErrRefused) {
		t.Errorf("without an owner: %v", err)
	}
}

// FuzzDecodeReply: what another node answers has the partitions of this one, or is refused.
func FuzzDecodeReply(f *testing.F) {
	text, _ := json.Marshal(reply{nodeState: nodesOf("a", "")[0], Error: "refused"})
	f.Add(text)
	f.Add([]byte(`{"partitions":[{}]}`))
	f.Add([]byte(`{"partitions":[{},{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := &Node{cfg: Config{Partitions: 1}}
		if r, err := n.decode(text); err == nil && len(r.Partitions) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

package control

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/obs"
	"trunkline/fuzz/rounds"
)

// rowsOf returns nodes from text: partitions divided by commas, each with its owner and those that
// can take it over. A node with ! behind it is drained.
func rowsOf(rows, nodes string) (all states) {
	parts := strings.Split(rows, ",")
	for id := range strings.FieldsSeq(nodes) {
		id, drained := strings.CutSuffix(id, "!")
		n := nodeState{Node: id, Drained: drained}
		for _, part := range parts {
			p := obs.ClusterPartition{Role: obs.RoleJoining}
			for i, name := range strings.Fields(part) {
				if name == id {
					p.Role = []string{obs.RoleOwner, obs.RoleStandby}[min(i, 1)]
				}
			}
			n.Partitions = append(n.Partitions, p)
		}
		all = append(all, n)
	}
	return all
}

// TestPlans: what suits stays, and so does what no node can take. A drained owner is followed by a
// node that can. Owners are even, by a chain where no move helps.
func TestPlans(t *testing.T) {
	f := func(rows, nodes string, want map[int]string) {
		t.Helper()
		next, err := rowsOf(rows, nodes).plan(strings.Count(rows, ",") + 1)
		if err != nil || !maps.Equal(next, want) {
			t.Errorf("%s on %s: %v, %v, want %v", rows, nodes, next, err, want)
		}
	}
	f("a b c, b c a, c a b", "a b c", nil)
	f("a b c, b c a, c a b", "a! b! c!", nil)
	f("a, b", "a! b", nil)
	f("a b", "a! b c", map[int]string{0: "b"})
	f("a b, a b, a b, a b", "a b", map[int]string{0: "b", 1: "b"})
	f("a b, a b, b c", "a b c", map[int]string{0: "b", 2: "c"})
	f("a, a", "a b", nil)
	if _, err := rowsOf("a b", "a b a").plan(1); err == nil {
		t.Error("two nodes have one id")
	}
	if _, err := rowsOf("a", "b").plan(1); !errors.Is(err, obs.ErrRefused) {
		t.Errorf("without an owner: %v", err)
	}
}

// TestLoadIsEven: the nodes own as many partitions each, or one more, by at most twice the moves
// that it takes where no node is drained, and a drained node gives away all. The order of the nodes
// does not matter, and a second plan moves nothing.
func TestLoadIsEven(t *testing.T) {
	for range rounds.Of(1, 10) {
		rapid.Check(t, func(t *rapid.T) {
			nodes, partitions := rapid.IntRange(1, 14).Draw(t, "nodes"), rapid.IntRange(1, 64).Draw(t, "partitions")
			all, ables := make(states, nodes), 0
			for i := range all {
				all[i] = nodeState{Node: string(rune('a' + i)), Drained: rapid.IntRange(0, 4).Draw(t, "drained") == 0}
				all[i].Partitions = make([]obs.ClusterPartition, partitions)
				for p := range partitions {
					all[i].Partitions[p].Role = obs.RoleStandby
				}
				if !all[i].Drained {
					ables++
				}
			}
			owners := make([]int, partitions)
			for p := range owners {
				owners[p] = rapid.IntRange(0, nodes-1).Draw(t, "owner")
				all[owners[p]].Partitions[p].Role = obs.RoleOwner
			}
			next, err := all.plan(partitions)
			if err != nil {
				t.Fatal(err)
			}
			if other, _ := states(rapid.Permutation(all).Draw(t, "order")).plan(partitions); !reflect.DeepEqual(
				next,
				other,
			) {
				t.Fatalf("the order of the nodes matters: %v, %v", next, other)
			}
			if ables == 0 {
				if len(next) > 0 {
					t.Fatalf("%v where no node takes anything", next)
				}
				return
			}
			least, needed, given := partitions/ables, 0, 0
			owned, extra := make([]int, nodes), partitions%ables
			for _, i := range owners {
				owned[i]++
			}
			for i := range all {
				has := owned[i]
				switch {
				case all[i].Drained: // to a node that may give others away for that
					needed, given = needed+has, given+has
				case has > least && extra > 0:
					extra--
					needed += has - least - 1
				default:
					needed += max(has-least, 0)
				}
			}
			if len(next) < needed || len(next) > 2*needed+given {
				t.Fatalf("%d moves, and %d are enough: %v", len(next), needed, next)
			}
			for p, to := range next {
				i := int(to[0] - 'a')
				all[owners[p]].Partitions[p].Role, all[i].Partitions[p].Role = obs.RoleStandby, obs.RoleOwner
			}
			for i := range all {
				if n := all[i].owned(); all[i].Drained && n > 0 || !all[i].Drained && (n < least || n > least+1) {
					t.Fatalf("%s owns %d of %d", all[i].Node, n, partitions)
				}
			}
			if again, err := all.plan(partitions); err != nil || len(again) > 0 {
				t.Fatalf("a second plan moves %v, %v", again, err)
			}
		})
	}
}

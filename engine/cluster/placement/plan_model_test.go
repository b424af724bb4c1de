package placement_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"trunkline/engine/cluster/placement"
	"trunkline/fuzz/rounds"

	"pgregory.net/rapid"
)

// check runs a property as often as there is time for, a hundred times per round.
func check(t *testing.T, property func(*rapid.T)) {
	for range rounds.Of(1, 10) {
		rapid.Check(t, property)
	}
}

// plan plans, and holds the plan to what holds for every one.
func plan(t *rapid.T, current placement.Assignment, nodes []placement.Node, replicas int) placement.Assignment {
	before := textOf(current)
	next, err := placement.Plan(current, nodes, replicas)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := placement.Plan(current, rapid.Permutation(nodes).Draw(t, "order"), replicas)
	if !reflect.DeepEqual(next, again) {
		t.Fatalf("the order of the nodes matters:\n%v\n%v", next, again)
	}
	if textOf(current) != before {
		t.Fatalf("%s has become %v", before, current)
	}
	if replicas == 1 {
		return next
	}
	for p, r := range next { // an owner is one that has the rows, if any has
		has := slices.ContainsFunc(current[p], func(id string) bool { return takes(nodes, id) })
		if has && !slices.Contains(current[p], r[0]) {
			t.Fatalf("partition %d of %v is owned by %s", p, current[p], r[0])
		}
	}
	return next
}

// missing counts the nodes of to that are not in from.
func missing(from, to placement.Replicas) (n int) {
	for _, id := range to {
		if !slices.Contains(from, id) {
			n++
		}
	}
	return n
}

func takes(nodes []placement.Node, id string) bool {
	return slices.ContainsFunc(nodes, func(n placement.Node) bool { return n.ID == id && !n.Drained })
}

// hold holds what is placed to what is wanted.
func hold(t *rapid.T, placed placement.Assignment, nodes []placement.Node, replicas int) {
	zoneOf, zones := map[string]placement.Node{}, map[placement.Node]bool{}
	for _, n := range nodes {
		if n.Drained {
			continue
		}
		zone := placement.Node{Zone: n.Zone}
		if n.Zone == "" {
			zone.ID = n.ID
		}
		zoneOf[n.ID], zones[zone] = zone, true
	}
	for p, r := range placed {
		in := map[placement.Node]bool{}
		for k, id := range r {
			if !takes(nodes, id) || slices.Contains(r[:k], id) {
				t.Fatalf("partition %d is on %v", p, r)
			}
			in[zoneOf[id]] = true
		}
		if len(r) != min(replicas, len(zoneOf)) || len(in) != min(len(r), len(zones)) {
			t.Fatalf("partition %d is on %v in %d zones of %d: %+v", p, r, len(in), len(zones), nodes)
		}
	}
}

// TestPlansSettle: whatever comes, goes and is drained, repeated plans end with all copies there,
// on nodes that take them, in as many zones as there are.
func TestPlansSettle(t *testing.T) {
	check(t, func(t *rapid.T) {
		made := 0
		add := func(nodes []placement.Node) []placement.Node {
			made++
			return append(nodes, placement.Node{
				ID: fmt.Sprint("n", made), Zone: rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "zone"), Drained: rapid.IntRange(0, 4).Draw(t, "drained") == 0,
			})
		}
		var nodes []placement.Node
		placed := make(placement.Assignment, rapid.IntRange(1, 60).Draw(t, "partitions"))
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			replicas := rapid.IntRange(1, placement.MaxReplicas).Draw(t, "replicas")
			for range rapid.IntRange(1, 6).Draw(t, "changes") {
				i := rapid.IntRange(0, len(nodes)).Draw(t, "node")
				switch drain := rapid.Bool().Draw(t, "drain"); {
				case i == len(nodes):
					nodes = add(nodes)
				case drain:
					nodes[i].Drained = !nodes[i].Drained
				case len(nodes) > 1:
					nodes = slices.Delete(nodes, i, i+1)
				}
			}
			nodes[0].Drained = false
			for plans := 0; ; plans++ {
				next := plan(t, placed, nodes, replicas)
				hold(t, next, nodes, replicas)
				if reflect.DeepEqual(placed, next) {
					break
				}
				if placed = next; plans > 20 {
					t.Fatalf("plans do not come to an end: %+v, %v", nodes, placed)
				}
			}
		}
	})
}

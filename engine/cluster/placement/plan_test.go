package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/cluster/placement"

	"pgregory.net/rapid"
)

// nodesOf returns nodes from text: names, with @zone and then ! for drained behind them.
func nodesOf(text string) (nodes []placement.Node) {
	for f := range strings.FieldsSeq(text) {
		var n placement.Node
		f, n.Drained = strings.CutSuffix(f, "!")
		n.ID, n.Zone, _ = strings.Cut(f, "@")
		nodes = append(nodes, n)
	}
	return nodes
}

// assignmentOf returns an assignment from text: partitions divided by commas.
func assignmentOf(text string) (a placement.Assignment) {
	for part := range strings.SplitSeq(text, ",") {
		a = append(a, strings.Fields(part))
	}
	return a
}

func textOf(a placement.Assignment) string {
	parts := make([]string, len(a))
	for p, r := range a {
		parts[p] = strings.Join(r, " ")
	}
	return strings.Join(parts, ", ")
}

func numbered(n int) (nodes []placement.Node) {
	for i := range n {
		nodes = append(nodes, placement.Node{ID: fmt.Sprintf("n%05d", i)})
	}
	return nodes
}

func TestPlans(t *testing.T) {
	f := func(replicas int, current, nodes, want string) {
		t.Helper()
		next, err := placement.Plan(assignmentOf(current), nodesOf(nodes), replicas)
		if got := textOf(next); err != nil || got != want {
			t.Errorf("%s on %s: %s, %v\nwant %s", current, nodes, got, err, want)
		}
	}
	// What suits stays, and so does what no node can take.
	f(3, "a b c, b c a, c a b", "a b c", "a b c, b c a, c a b")
	f(3, "a b c, b c a, c a b", "", "a b c, b c a, c a b")
	f(3, "a b c, b c a, c a b", "a! b! c!", "a b c, b c a, c a b")
	// A lost or drained owner is followed by its first standby that takes anything.
	f(3, "a b c, b c a, c a b", "a b", "a b, b a, a b")
	f(3, "a b c", "b c! d", "b d")
	f(2, "a b c", "b! c d", "c d")
	f(2, "a", "a! b c!", "b")
	// Copies that are missing are built, where the fewest are and in new zones. No more are kept.
	f(2, "a b, a b", "a b! c", "a c, a c")
	f(2, "a", "a@x b@x c@y", "a c")
	f(2, "a b", "a@x b@x c@y", "a c")
	f(2, "a b c", "a@x b@x c@y", "a c")
	f(2, "a b c", "a b c", "a b")
	// Owners are even, by a chain where no switch helps. A new node owns by the next plan.
	f(2, "a b, a b, a b, a b", "a b", "b a, b a, a b, a b")
	f(2, "a b, a b, b c", "a b c", "b a, a c, c b")
	f(1, "a, a", "a b", "b, a")
	f(2, "a b, a b, a b", "a b c", "b c, a c, a b")
}

func TestLimitsOfPlans(t *testing.T) {
	f := func(ok bool, current placement.Assignment, nodes []placement.Node, replicas int) {
		t.Helper()
		if _, err := placement.Plan(current, nodes, replicas); (err == nil) != ok {
			t.Errorf("%d partitions on %d nodes, %d replicas: %v", len(current), len(nodes), replicas, err)
		}
	}
	one := make(placement.Assignment, 1)
	f(true, one, nodesOf("a"), placement.MaxReplicas)
	f(false, one, nodesOf("a"), placement.MaxReplicas+1)
	f(false, one, nodesOf("a"), 0)
	f(true, one, numbered(placement.MaxNodes), 1)
	f(false, one, numbered(placement.MaxNodes+1), 1)
	f(true, make(placement.Assignment, placement.MaxPartitions), nodesOf("a"), 1)
	f(false, make(placement.Assignment, placement.MaxPartitions+1), nodesOf("a"), 1)
	f(true, nil, nodesOf("a"), 1)
	f(false, one, nodesOf("a b a"), 1)
	f(false, one, []placement.Node{{}}, 1)
	f(false, assignmentOf("a b a"), nodesOf("a b"), 2)
}

// TestLoadIsEven: after a node has come or gone the nodes own as many partitions each, or one more,
// no more copies are built than a node had or gets and some, and few partitions but those of a lost
// owner have another one.
func TestLoadIsEven(t *testing.T) {
	check(t, func(t *rapid.T) {
		all := numbered(rapid.IntRange(4, 14).Draw(t, "nodes"))
		partitions, replicas := rapid.IntRange(1, 300).Draw(t, "partitions"), rapid.IntRange(2, 3).Draw(t, "replicas")
		before, after := all, all[1:]
		if rapid.Bool().Draw(t, "comes") {
			before, after = after, before
		}
		placed := plan(t, make(placement.Assignment, partitions), before, replicas)
		share := func(pieces int) int { return pieces/min(len(before), len(after)) + 1 }
		built, others := 0, 0
		for range 5 {
			next := plan(t, placed, after, replicas)
			for p := range next {
				built += missing(placed[p], next[p])
				others += missing(placed[p][:1], next[p][:1])
			}
			placed = next
		}
		if kept := share(partitions * replicas); built > kept+kept/4+4 || others > 2*share(partitions)+len(all) {
			t.Fatalf("%d copies built, %d other owners: %d partitions from %d on %d nodes", built, others, partitions, len(before), len(after))
		}
		has := map[string]int{}
		for _, r := range placed {
			has[r[0]]++
		}
		for _, n := range after {
			if least := partitions / len(after); has[n.ID] < least || has[n.ID] > least+1 {
				t.Fatalf("%s owns %d of %d: %v", n.ID, has[n.ID], partitions, has)
			}
		}
	})
}

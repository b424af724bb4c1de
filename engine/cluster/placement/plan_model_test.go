package placement_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"trunkline/engine/cluster/placement"

	"pgregory.net/rapid"
)

// cluster is a set of nodes that changes, and what is placed on it.
type cluster struct {
	nodes   []placement.Node
	opts    placement.Options
	placed  placement.Assignment
	pending []placement.Move
	made    int
}

func drawCluster(t *rapid.T) *cluster {
	c := new(cluster)
	c.opts = placement.Options{
		Replicas: rapid.IntRange(1, placement.MaxReplicas).Draw(t, "replicas"), Slack: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "slack"),
		MaxMoves: rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "moves"), MaxCopiesPerNode: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "copies"),
	}
	for range rapid.IntRange(1, 9).Draw(t, "nodes") {
		c.addNode(t)
	}
	c.nodes[0].Drained = false
	var err error
	if c.placed, err = placement.Place(rapid.IntRange(1, 60).Draw(t, "partitions"), c.nodes, c.opts); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) addNode(t *rapid.T) {
	c.made++
	c.nodes = append(c.nodes, placement.Node{
		ID: fmt.Sprint("n", c.made), Zone: rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "zone"),
		Weight: rapid.IntRange(0, 3).Draw(t, "weight"), Drained: rapid.IntRange(0, 4).Draw(t, "drained") == 0,
	})
}

// change adds, removes, drains or changes nodes.
func (c *cluster) change(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		i := rapid.IntRange(0, len(c.nodes)-1).Draw(t, "node")
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			c.addNode(t)
		case 1:
			if len(c.nodes) > 1 {
				c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
			}
		case 2:
			c.nodes[i].Drained = !c.nodes[i].Drained
		case 3:
			c.opts.Replicas = rapid.IntRange(1, placement.MaxReplicas).Draw(t, "replicas")
		}
	}
}

func (c *cluster) node(id string) (n placement.Node, live bool) {
	i := slices.IndexFunc(c.nodes, func(n placement.Node) bool { return n.ID == id })
	if i < 0 {
		return n, false
	}
	return c.nodes[i], true
}

// plan asks for a plan, holds it to what holds for every plan, and does it but for some copies.
func (c *cluster) plan(t *rapid.T) (moves []placement.Move) {
	c.pending = slices.DeleteFunc(c.pending, func(m placement.Move) bool { // what makes no sense any more does not count
		n, live := c.node(m.Node)
		return !live || n.Drained || slices.Contains(c.placed[m.Partition], m.Node)
	})
	moves, err := placement.Plan(c.placed, c.pending, c.nodes, c.opts)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := placement.Plan(c.placed, c.pending, rapid.Permutation(c.nodes).Draw(t, "order"), c.opts)
	if !reflect.DeepEqual(moves, again) {
		t.Fatalf("the order of the nodes matters:\n%v\n%v", moves, again)
	}
	getting, bounded := map[string]int{}, 0
	for _, m := range c.pending {
		getting[m.Node]++
		bounded++
	}
	for _, m := range moves {
		if m.Kind == placement.Copy || m.Kind == placement.Switch {
			bounded++
		}
		if m.Kind == placement.Copy {
			getting[m.Node]++
		}
		if m.Kind != placement.Drop {
			if n, live := c.node(m.Node); !live || n.Drained {
				t.Fatalf("%v gives something to a node that takes nothing", m)
			}
		}
	}
	if c.opts.MaxMoves > 0 && bounded > max(c.opts.MaxMoves, len(c.pending)) {
		t.Fatalf("%d moves of %d", bounded, c.opts.MaxMoves)
	}
	for id, n := range getting {
		if before := count(c.pending, id); c.opts.MaxCopiesPerNode > 0 && n > max(c.opts.MaxCopiesPerNode, before) {
			t.Fatalf("%d copies for %s", n, id)
		}
	}
	c.do(t, moves)
	return moves
}

func count(moves []placement.Move, id string) (n int) {
	for _, m := range moves {
		if m.Node == id {
			n++
		}
	}
	return n
}

// do does the moves but for copies, and completes some copies.
func (c *cluster) do(t *rapid.T, moves []placement.Move) {
	var under []placement.Move
	for _, m := range slices.Concat(c.pending, moves) {
		switch {
		case m.Kind == placement.Copy && rapid.Bool().Draw(t, "slow"):
			under = append(under, m)
		default:
			c.placed = placement.Apply(c.placed, []placement.Move{m})
		}
	}
	c.pending = under
}

// settle plans until there is nothing to do.
func (c *cluster) settle(t *rapid.T) {
	for range 3000 {
		if idle := len(c.pending) == 0; len(c.plan(t)) == 0 && idle {
			return
		}
	}
	t.Fatalf("plans do not come to an end: %v, %+v\n%v", c.opts, c.nodes, c.placed)
}

// check holds what is placed to what is wanted.
func (c *cluster) check(t *rapid.T) {
	var able []placement.Node
	zones := map[string]bool{}
	for _, n := range c.nodes {
		if !n.Drained {
			able = append(able, n)
			zones[zoneOf(n)] = true
		}
	}
	if len(able) == 0 {
		return
	}
	for p, replicas := range c.placed {
		if len(replicas) != min(c.opts.Replicas, len(able)) {
			t.Fatalf("partition %d is on %v, not on %d of %+v", p, replicas, c.opts.Replicas, able)
		}
		seen, in := map[string]bool{}, map[string]bool{}
		for _, id := range replicas {
			n, live := c.node(id)
			if !live || n.Drained || seen[id] {
				t.Fatalf("partition %d is on %v", p, replicas)
			}
			seen[id], in[zoneOf(n)] = true, true
		}
		if len(in) != min(len(replicas), len(zones)) {
			t.Fatalf("partition %d is on %v in %d zones of %d", p, replicas, len(in), len(zones))
		}
	}
}

func zoneOf(n placement.Node) string {
	if n.Zone == "" {
		return "of " + n.ID
	}
	return n.Zone
}

// TestPlansSettle: whatever comes and goes while copies are under way, every plan is within its
// bounds, and repeated plans end with all copies there, on nodes that take them, in as many zones
// as there are.
func TestPlansSettle(t *testing.T) {
	check(t, func(t *rapid.T) {
		c := drawCluster(t)
		c.check(t)
		if moves := c.plan(t); len(moves) > 0 {
			t.Fatalf("a new placement is changed: %v", moves)
		}
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			c.change(t)
			for range rapid.IntRange(0, 3).Draw(t, "plans") {
				c.plan(t)
			}
		}
		c.settle(t)
		c.check(t)
	})
}

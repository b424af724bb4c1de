package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of what is placed. DefaultOptions has the defaults.
const (
	MaxNodes    = 10_000 // nodes of a cluster
	MaxReplicas = 5      // nodes that keep a partition, its owner among them
	MaxWeight   = 1000   // weight of a node
	MaxSlack    = 100    // percent
)

// Node is a live node. Its ID is unique among the nodes that ever belong to the cluster at one
// time.
type Node struct {
	ID      string
	Zone    string // what fails together; empty: the node is a zone of its own
	Weight  int    // its share of the load beside that of the others; 0 counts as 1
	Drained bool   // it serves what it has until others can, and gets nothing
}

// Options are what Place and Plan aim at.
type Options struct {
	Replicas int // nodes per partition, the owner among them, from 1 to MaxReplicas
	// Slack is by how many percent a node may be above or below its share, rounded to whole
	// partitions, before a partition moves for balance alone. At 0 it is less than one partition.
	Slack int
	// MaxMoves bounds the copies and switches of a plan, those under way among them; 0: no bound.
	MaxMoves int
	// MaxCopiesPerNode bounds the copies that one node gets at a time; 0: no bound.
	MaxCopiesPerNode int
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{Replicas: 3, Slack: 5, MaxMoves: 256, MaxCopiesPerNode: 2}
}

// Replicas are the nodes of a partition by ID: the owner, then the standbys in the order in which
// they take over. It is empty for a partition that was never placed.
type Replicas []string

// Assignment has the replicas of every partition.
type Assignment []Replicas

func (o Options) check() error {
	switch {
	case o.Replicas < 1 || o.Replicas > MaxReplicas:
		return fmt.Errorf("cannot keep %d replicas: want 1 to %d", o.Replicas, MaxReplicas)
	case o.Slack < 0 || o.Slack > MaxSlack:
		return fmt.Errorf("cannot allow a slack of %d percent: want 0 to %d", o.Slack, MaxSlack)
	case o.MaxMoves < 0 || o.MaxCopiesPerNode < 0:
		return fmt.Errorf("cannot bound moves by %d and %d per node: want 0 or more", o.MaxMoves, o.MaxCopiesPerNode)
	}
	return nil
}

// sorted returns the nodes by ID, with weights of at least 1.
func sorted(nodes []Node) ([]Node, error) {
	if len(nodes) > MaxNodes {
		return nil, fmt.Errorf("cannot place on %d nodes: at most %d", len(nodes), MaxNodes)
	}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.ID == "":
			return nil, fmt.Errorf("cannot place on a node without an ID")
		case i > 0 && n.ID == nodes[i-1].ID:
			return nil, fmt.Errorf("cannot place on node %q twice", n.ID)
		case n.Weight < 0 || n.Weight > MaxWeight:
			return nil, fmt.Errorf("cannot weigh node %q with %d: want 0 to %d", n.ID, n.Weight, MaxWeight)
		}
		n.Weight = max(1, n.Weight)
	}
	return nodes, nil
}

package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of what is placed.
const (
	MaxNodes    = 10_000 // nodes of a cluster
	MaxReplicas = 5      // nodes that keep a partition, its owner among them
)

// Node is a live node. Its ID is unique among the nodes that ever belong to the cluster at one
// time.
type Node struct {
	ID      string
	Zone    string // what fails together; empty: the node is a zone of its own
	Drained bool   // it serves what it has until others can, and gets nothing
}

// Replicas are the nodes of a partition by ID: the owner, then the standbys in the order in which
// they take over. It is empty for a partition that was never placed.
type Replicas []string

// Assignment has the replicas of every partition.
type Assignment []Replicas

// sorted returns the nodes by ID.
func sorted(nodes []Node) ([]Node, error) {
	if len(nodes) > MaxNodes {
		return nil, fmt.Errorf("cannot place on %d nodes: at most %d", len(nodes), MaxNodes)
	}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	for i := range nodes {
		switch {
		case nodes[i].ID == "":
			return nil, fmt.Errorf("cannot place on a node without an ID")
		case i > 0 && nodes[i].ID == nodes[i-1].ID:
			return nil, fmt.Errorf("cannot place on node %q twice", nodes[i].ID)
		}
	}
	return nodes, nil
}

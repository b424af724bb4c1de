package control

import (
	"errors"
	"fmt"

	"trunkline/engine/obs"
)

// states are those of the nodes that answer.
type states []nodeState

// owner returns the node that owns a partition, nil for none. One that was paused may not know yet
// that another one has a later fence.
func (all states) owner(partition int) (owner *nodeState) {
	for i := range all {
		p := &all[i].Partitions[partition]
		if p.Role == obs.RoleOwner && (owner == nil || p.Fence > owner.Partitions[partition].Fence) {
			owner = &all[i]
		}
	}
	return owner
}

// mayMove returns the owner of a partition, if a node can take it over from that.
func (all states) mayMove(partition int, to string) (from string, err error) {
	owner := all.owner(partition)
	if owner == nil {
		return "", refuse("partition %d has no owner that answers", partition)
	}
	for i := range all {
		if all[i].Node == to {
			return owner.Node, all[i].mayOwn(partition, owner)
		}
	}
	return "", fmt.Errorf("%w: node %q is not of the cluster, or is not there", obs.ErrNotFound, to)
}

// mayOwn returns why the node cannot take a partition over from its owner, nil if it can.
func (n *nodeState) mayOwn(partition int, owner *nodeState) error {
	own, at := &n.Partitions[partition], &owner.Partitions[partition]
	switch {
	case n.Node == owner.Node:
		return refuse("node %q owns partition %d already", n.Node, partition)
	case n.Drained:
		return refuse("node %q is drained, ends, or has a damaged copy of the journal: it takes nothing over", n.Node)
	case n.Full:
		return refuse("node %q has no room on its disk", n.Node)
	case own.Role != obs.RoleStandby:
		return refuse("node %q does not follow partition %d", n.Node, partition)
	case own.Index+mayLag < at.Index:
		return refuse("node %q is %d records behind the owner of partition %d, and may be %d", n.Node, at.Index-own.Index, partition, mayLag)
	}
	return nil
}

// nextOwner returns the node that takes a partition over from its owner: of those that can, the one
// that owns the least. It is counted as the owner from then on.
func (all states) nextOwner(partition int) (to string, err error) {
	owner := all.owner(partition)
	if owner == nil {
		return "", refuse("partition %d has no owner that answers", partition)
	}
	var best *nodeState
	for i := range all {
		n := &all[i]
		if why := n.mayOwn(partition, owner); why != nil {
			if n != owner {
				err = why
			}
		} else if best == nil || n.owned() < best.owned() {
			best = n
		}
	}
	if best == nil {
		return "", errors.Join(refuse("no other node can own partition %d", partition), err)
	}
	owner.Partitions[partition].Role, best.Partitions[partition].Role = obs.RoleStandby, obs.RoleOwner
	return best.Node, nil
}

// owned counts the partitions that a node owns.
func (n *nodeState) owned() (count int) {
	for i := range n.Partitions {
		if n.Partitions[i].Role == obs.RoleOwner {
			count++
		}
	}
	return count
}

package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/obs"
)

// Bounds of what nodes announce of themselves.
const (
	announceEvery = time.Second
	// seenFor is for how long an announcement shows that its node is there.
	seenFor = 4 * announceEvery
	// keptFor is for how long it is shown at all: nodes of NATS servers have no list.
	keptFor = 10 * time.Minute
	// maxRoll is how many nodes are kept; a further one takes the place of the one that was silent
	// longest.
	maxRoll = 64
)

// roll is what nodes have announced. Times are readings of the clock of leases. The zero value is
// an empty one.
type roll struct {
	mu    sync.Mutex
	nodes map[string]announced
}

// announced is the last announcement of a node.
type announced struct {
	obs.ClusterNode
	at int64
}

// heard takes an announcement.
func (r *roll) heard(note []byte, now int64) error {
	a := announced{at: now}
	if err := json.Unmarshal(note, &a.ClusterNode); err != nil {
		return fmt.Errorf("cannot read what a node announces: %w", err)
	}
	if a.Node == "" {
		return fmt.Errorf("cannot read what a node announces: it has no name")
	}
	a.Seen, a.HeardSeconds, a.Lag = false, nil, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil {
		r.nodes = make(map[string]announced)
	}
	maps.DeleteFunc(r.nodes, func(_ string, old announced) bool { return now-old.at > int64(keptFor) })
	if _, known := r.nodes[a.Node]; !known && len(r.nodes) >= maxRoll {
		oldest := slices.MinFunc(slices.Collect(maps.Values(r.nodes)), func(a, b announced) int { return cmp.Compare(a.at, b.at) })
		delete(r.nodes, oldest.Node)
	}
	r.nodes[a.Node] = a
	return nil
}

// list returns all nodes that were heard or are of ids, and own as it is now. Lags are those behind
// owners, the nodes that own the partitions.
func (r *roll) list(own *obs.ClusterNode, ids, owners []string, now int64) []obs.ClusterNode {
	byName := map[string]obs.ClusterNode{own.Node: *own}
	for _, id := range ids {
		if id != own.Node {
			byName[id] = obs.ClusterNode{Node: id}
		}
	}
	r.mu.Lock()
	for name, a := range r.nodes {
		if name == own.Node {
			continue
		}
		silent := time.Duration(now - a.at)
		secs := silent.Seconds()
		a.Seen, a.HeardSeconds = silent < seenFor, &secs
		byName[name] = a.ClusterNode
	}
	r.mu.Unlock()
	list := make([]obs.ClusterNode, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	for i := range list {
		list[i].Lag = lag(list, &list[i], owners)
	}
	return list
}

// lag returns how many records of all owners a node has not, nil where that is not known.
func lag(nodes []obs.ClusterNode, n *obs.ClusterNode, owners []string) *uint64 {
	sum := uint64(0)
	for p, id := range owners {
		if p >= len(n.Indexes) {
			return nil
		}
		one, _ := behind(nodes, p, n.Indexes[p], id)
		if one == nil {
			return nil
		}
		sum += *one
	}
	return &sum
}

// behind returns how many records of the owner of a partition are missing where there are so many,
// and its fence; nil where that is not known.
func behind(nodes []obs.ClusterNode, partition int, index uint64, ownerID string) (missing *uint64, fence uint64) {
	i := slices.IndexFunc(nodes, func(n obs.ClusterNode) bool { return n.Node == ownerID })
	if i < 0 || partition >= len(nodes[i].Indexes) || partition >= len(nodes[i].Fences) {
		return nil, 0
	}
	end := nodes[i].Indexes[partition]
	end -= min(end, index)
	return &end, nodes[i].Fences[partition]
}

// behind is that of a node which is not the owner, by what the owner has announced.
func (r *roll) behind(partition int, index uint64, owner string) (missing *uint64, fence uint64) {
	r.mu.Lock()
	a := r.nodes[owner]
	r.mu.Unlock()
	return behind([]obs.ClusterNode{a.ClusterNode}, partition, index, owner)
}

// admin returns the admin address of a node, as it is bound there; "" where none is known.
func (r *roll) admin(node string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[node].Admin
}

// subject is where the nodes of this cluster announce themselves: beside the log of the first
// partition, so that who may write that may do this too.
func (n *Node) subject() string { return n.cfg.Name + "_0.nodes" }

// self is what this node announces.
func (n *Node) self() obs.ClusterNode {
	st := n.Standing()
	own := obs.ClusterNode{
		Node: n.cfg.ID, Role: st.Role, Addr: n.addr, Admin: n.host.Admin(), Version: n.host.Version, Index: st.Index, Drained: n.drained.Load(),
		LeaseSeconds: n.term.Seconds(), ElectionSeconds: n.cfg.Election.Seconds(), Forwarded: n.forwarded(), Taken: n.Taken(), Seen: true,
	}
	for _, r := range n.replicas() {
		fence := uint64(0)
		if sh := r.shared.Load(); sh != nil && r.owns.Load() {
			fence = sh.Fence()
		}
		own.Indexes, own.Fences = append(own.Indexes, r.Index), append(own.Fences, fence)
	}
	return own
}

// announce has the other nodes know of this one, and this one of them, until the node leaves.
func (n *Node) announce() {
	err := n.member.Hear(n.subject(), func(note []byte) {
		if err := n.roll.heard(note, owner.Now()); err != nil {
			n.log.Debug("a node is not understood", "error", err)
		}
	})
	if err != nil {
		n.log.Warn("cannot hear what other nodes announce of themselves", "error", err)
	}
	n.serving.Go(func() {
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for {
			note, err := json.Marshal(n.self())
			if err == nil {
				err = n.member.Send(n.subject(), note)
			}
			if err != nil { // the connection is lost, which is in the log
				n.log.Debug("cannot announce this node", "error", err)
			}
			select {
			case <-n.closed.Done():
				return
			case <-tick.C:
			}
		}
	})
}

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

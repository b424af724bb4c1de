package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/obs"
)

// viewWithin bounds what /cluster asks others.
const viewWithin = time.Second

// View returns what /cluster shows. check: all nodes verify a part of their copies before.
func (n *Node) View(ctx context.Context, check bool) obs.Cluster {
	if check {
		n.checkCopies(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	h := n.member.Health(ctx)
	parts, nodes := n.viewPartitions()
	var problems []string
	if h.Problem != "" {
		problems = append(problems, h.Problem)
	}
	for i := range parts {
		copies, wrong := n.watches[i].Load().copies()
		parts[i].LeadsStream, parts[i].Copies = n.member.Leads(n.streamName(i)), copies
		problems = append(problems, wrong...)
	}
	problems = append(problems, n.viewSpace()...)
	v := obs.Cluster{
		Name: n.cfg.Name, Node: n.cfg.ID, Mode: n.cfg.Mode, LeaseSeconds: n.term.Seconds(), LeaseLeftSeconds: n.host.Replica(0).left().Seconds(), Drained: n.drained.Load(),
		Forwarded: n.forwarded(), Taken: n.Taken(), Quorum: h.Quorum, Problem: strings.Join(problems, "; "), Peers: []obs.ClusterPeer{}, ClusterPartition: parts[0], Nodes: nodes,
	}
	if n.Several() {
		v.Partitions = parts
	}
	for _, p := range h.Peers {
		v.Peers = append(v.Peers, obs.ClusterPeer{Node: p.Node, Seen: p.Seen})
	}
	return v
}

// replicas returns those of all partitions.
func (n *Node) replicas() []Replica {
	all := make([]Replica, n.cfg.Partitions)
	for i := range all {
		all[i] = n.host.Replica(i)
	}
	return all
}

// viewPartitions returns what this node knows of all partitions and of all nodes.
func (n *Node) viewPartitions() (parts []obs.ClusterPartition, nodes []obs.ClusterNode) {
	self, owners := n.self(), make([]string, n.cfg.Partitions)
	for i, r := range n.replicas() {
		parts = append(parts, r.show())
		owners[i] = parts[i].Owner
	}
	nodes = n.roll.list(&self, n.ids, owners, owner.Now())
	for i := range parts {
		missing, fence := behind(nodes, i, self.Indexes[i], owners[i])
		parts[i].Lag, parts[i].OwnerFence = missing, cmp.Or(fence, parts[i].OwnerFence)
	}
	return parts, nodes
}

// viewSpace returns which journals have no space.
func (n *Node) viewSpace() (problems []string) {
	for _, r := range n.replicas() {
		if sh := r.shared.Load(); sh != nil && errors.Is(sh.Trouble(), replicated.ErrNoRoom) {
			problems = append(problems, fmt.Sprintf("partition %d: %v", r.partition, sh.Trouble()))
		}
	}
	return problems
}

// forwarded counts the clients of this node that other nodes serve.
func (n *Node) forwarded() (count int) {
	for _, r := range n.replicas() {
		count += r.Forwarded()
	}
	return count
}

// show returns what /cluster shows of the partition, without what other nodes announce.
func (r Replica) show() obs.ClusterPartition {
	v := obs.ClusterPartition{
		Partition:     r.partition,
		Role:          r.role(),
		Index:         r.Index,
		OwnerChanges:  r.view.Changes(),
		SilentSeconds: r.silent().Seconds(),
	}
	if b, known := r.view.Owner(); known {
		v.Owner, v.OwnerAddr = b.Node, b.Addr
		if v.Role == obs.RoleStandby { // its blocks have it, before it announces itself
			v.OwnerFence = r.view.Fence()
		}
	}
	if sh := r.shared.Load(); sh != nil {
		v.Fence = sh.Fence()
	}
	return v
}

// Reading returns what is known of the partition of a replica. It looks at the owner of that
// partition alone.
func (n *Node) Reading(r Replica) obs.ClusterPartition {
	v := r.show()
	if v.Role == obs.RoleOwner {
		v.Lag, v.OwnerFence = new(uint64), v.Fence
	} else {
		missing, fence := n.roll.behind(r.partition, v.Index, v.Owner)
		v.Lag, v.OwnerFence = missing, cmp.Or(fence, v.OwnerFence)
	}
	return v
}

// Standing returns what this node is to the journal of its cluster, nil where there is none.
func (n *Node) Standing() *obs.Standing {
	if n == nil {
		return nil
	}
	st := &obs.Standing{Cluster: n.cfg.Name, Node: n.cfg.ID, Role: obs.RoleStandby, Partitions: n.cfg.Partitions}
	for _, r := range n.replicas() {
		if b, known := r.view.Owner(); known && r.partition == 0 {
			st.Owner = b.Node
		}
		st.Index += r.Index
		switch r.role() {
		case obs.RoleOwner:
			st.Owned++
		case obs.RoleJoining:
			st.Role = obs.RoleJoining
		}
	}
	if st.Owned > 0 {
		st.Role = obs.RoleOwner
	}
	return st
}

// Ownerless reports whether a partition is neither owned nor followed here.
func (n *Node) Ownerless() bool {
	return slices.ContainsFunc(n.replicas(), func(r Replica) bool { return r.role() == obs.RoleJoining })
}

package app

import (
	"context"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/handlers/ops"
)

// The roles of a node, as /cluster shows them.
const (
	roleOwner   = "owner"
	roleStandby = "standby"
	roleJoining = "joining"
)

// viewWithin bounds what /cluster asks others.
const viewWithin = time.Second

// viewCluster returns what /cluster shows, nil where there is no cluster.
func (s *server) viewCluster() func() ops.Cluster {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	return func() ops.Cluster {
		ctx, cancel := context.WithTimeout(c.closed, viewWithin)
		defer cancel()
		h := c.member.Health(ctx)
		v := ops.Cluster{
			Name: c.cfg.Name, Node: c.id, Mode: c.cfg.Mode, LeaseSeconds: c.term.Seconds(), Drained: c.drained.Load(),
			Taken: c.peers.Open(), Quorum: h.Quorum, Problem: h.Problem, Peers: []ops.ClusterPeer{}, ClusterPartition: s.first().view(),
		}
		for _, r := range s.replicas() {
			v.Forwarded += r.lease.forwarded()
			if c.several() {
				v.Partitions = append(v.Partitions, r.view())
			}
		}
		for _, p := range h.Peers {
			v.Peers = append(v.Peers, ops.ClusterPeer{Node: p.Node, Seen: p.Seen})
		}
		return v
	}
}

// view returns what /cluster shows of the partition.
func (r *replica) view() ops.ClusterPartition {
	l := r.lease
	v := ops.ClusterPartition{Partition: r.partition, Role: l.role()}
	if b, known := l.view.Owner(); known {
		v.Owner, v.OwnerAddr = b.Node, b.Addr
	}
	if sh := l.shared.Load(); sh != nil {
		v.Fence = sh.Fence()
	}
	if log := r.kernel.store.log.Load(); log != nil {
		v.Index = log.Appended()
	}
	v.SilentSeconds = l.silent().Seconds()
	return v
}

func (l *lease) role() string {
	switch {
	case l.owns.Load():
		return roleOwner
	case l.follows():
		return roleStandby
	}
	return roleJoining
}

// silent returns how long ago a standby has heard of the journal.
func (l *lease) silent() time.Duration {
	if l.owns.Load() {
		return 0
	}
	return l.view.Silent(owner.Now())
}

// forwarded counts the clients that another node serves.
func (l *lease) forwarded() int {
	if f := l.forwards.Load(); f != nil {
		return f.Open()
	}
	return 0
}

// leaseMetrics are those of a partition of a cluster.
var leaseMetrics = []metric[lease]{
	gauge("trunkline_cluster_owner", "1 while this node owns the journal of its cluster.",
		func(l *lease) float64 { return oneIf(l.owns.Load()) }),
	gauge("trunkline_cluster_owner_known", "1 while this node owns the journal or knows which node does.",
		func(l *lease) float64 { return oneIf(l.role() != roleJoining) }),
	counter("trunkline_cluster_owner_changes_total", "Owners of the journal that this node has heard of, itself included, since it follows the journal.",
		func(l *lease) float64 { return float64(l.view.Changes()) }),
	gauge("trunkline_cluster_silent_seconds", "How long ago a standby has heard of the journal; 0 on the owner.",
		func(l *lease) float64 { return l.silent().Seconds() }),
	gauge("trunkline_cluster_forwarded_connections", "Clients of this node that another node serves.",
		func(l *lease) float64 { return float64(l.forwarded()) }),
}

// nodeMetrics are those of a node of a cluster.
var nodeMetrics = []metric[cluster]{
	gauge("trunkline_cluster_taken_connections", "Clients of other nodes that this node serves.",
		func(c *cluster) float64 { return float64(c.peers.Open()) }),
	gauge("trunkline_cluster_drained", "1 while this node takes nothing over, as an operator has ordered.",
		func(c *cluster) float64 { return oneIf(c.drained.Load()) }),
}

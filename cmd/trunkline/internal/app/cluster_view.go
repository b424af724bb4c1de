package app

import (
	"context"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/obs"
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
func (s *server) viewCluster() func(ctx context.Context, check bool) ops.Cluster {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	return func(ctx context.Context, check bool) ops.Cluster {
		watch := c.replica.Load()
		if check {
			watch.check(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, viewWithin)
		defer cancel()
		h := c.member.Health(ctx)
		v := ops.Cluster{
			Name: c.cfg.Name, Node: c.id, Mode: c.cfg.Mode, Role: c.role(), LeaseSeconds: c.term.Seconds(),
			Forwarded: c.forwards.Open(), Taken: c.peers.Open(), Quorum: h.Quorum, Problem: h.Problem, Peers: []ops.ClusterPeer{},
			LeadsStream: c.member.Leads(c.streamName()),
		}
		if b, known := c.view.Owner(); known {
			v.Owner, v.OwnerAddr = b.Node, b.Addr
		}
		if sh := c.shared.Load(); sh != nil {
			v.Fence = sh.Fence()
		}
		if log := s.kernel.store.log.Load(); log != nil {
			v.Index = log.Appended()
		}
		if v.Role != roleOwner {
			v.SilentSeconds = c.view.Silent(owner.Now()).Seconds()
		}
		for _, p := range h.Peers {
			v.Peers = append(v.Peers, ops.ClusterPeer{Node: p.Node, Seen: p.Seen})
		}
		watch.show(&v)
		return v
	}
}

func (c *cluster) role() string {
	switch {
	case c.owns.Load():
		return roleOwner
	case c.follows():
		return roleStandby
	}
	return roleJoining
}

// register adds the metrics of the cluster.
func (c *cluster) register(reg *obs.Registry) error {
	if c == nil {
		return nil
	}
	return addMetrics(reg, clusterMetrics, func() *cluster { return c })
}

// clusterMetrics are those of a node of a cluster.
var clusterMetrics = []metric[cluster]{
	gauge("trunkline_cluster_owner", "1 while this node owns the journal of its cluster.",
		func(c *cluster) float64 { return oneIf(c.owns.Load()) }),
	gauge("trunkline_cluster_owner_known", "1 while this node owns the journal or knows which node does.",
		func(c *cluster) float64 { return oneIf(c.role() != roleJoining) }),
	counter("trunkline_cluster_owner_changes_total", "Owners of the journal that this node has heard of, itself included.",
		func(c *cluster) float64 { return float64(c.view.Changes()) }),
	gauge("trunkline_cluster_silent_seconds", "How long ago a standby has heard of the journal; 0 on the owner.",
		func(c *cluster) float64 {
			if c.owns.Load() {
				return 0
			}
			return c.view.Silent(owner.Now()).Seconds()
		}),
	gauge("trunkline_cluster_forwarded_connections", "Clients of this node that another node serves.",
		func(c *cluster) float64 { return float64(c.forwards.Open()) }),
	gauge("trunkline_cluster_replica_damaged", "1 while the copy of the journal on this node is damaged.",
		func(c *cluster) float64 { return oneIf(c.replica.Load().isDamaged()) }),
	gauge("trunkline_cluster_replicas_differ", "Nodes that have another journal than this one.",
		func(c *cluster) float64 { return float64(c.replica.Load().differing()) }),
	gauge("trunkline_cluster_taken_connections", "Clients of other nodes that this node serves.",
		func(c *cluster) float64 { return float64(c.peers.Open()) }),
}

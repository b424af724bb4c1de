package app

import (
	"context"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// viewWithin bounds what /cluster asks others.
const viewWithin = time.Second

// viewCluster returns what /cluster shows, nil where there is no cluster.
func (s *server) viewCluster() func() obs.Cluster {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	return func() obs.Cluster {
		ctx, cancel := context.WithTimeout(c.closed, viewWithin)
		defer cancel()
		h, now, self := c.member.Health(ctx), owner.Now(), s.self()
		v := obs.Cluster{
			Name: c.cfg.Name, Node: c.id, Mode: c.cfg.Mode, LeaseSeconds: c.term.Seconds(), LeaseLeftSeconds: c.leaseLeft(now).Seconds(),
			Forwarded: self.Forwarded, Taken: self.Taken, Quorum: h.Quorum, Problem: h.Problem, Peers: []obs.ClusterPeer{},
			ClusterPartition: obs.ClusterPartition{Role: self.Role, Index: self.Index, OwnerChanges: c.view.Changes()},
		}
		if b, known := c.view.Owner(); known {
			v.Owner, v.OwnerAddr = b.Node, b.Addr
		}
		if sh := c.shared.Load(); sh != nil {
			v.Fence = sh.Fence()
		}
		if v.Role != obs.RoleOwner {
			v.SilentSeconds = c.view.Silent(now).Seconds()
		}
		for _, p := range h.Peers {
			v.Peers = append(v.Peers, obs.ClusterPeer{Node: p.Node, Seen: p.Seen})
		}
		v.Nodes = c.roll.list(&self, c.ids, v.Owner, now)
		v.Lag, v.OwnerFence = behind(v.Nodes, v.Node, v.Owner)
		return v
	}
}

// behind returns the lag of a node and the fence of the owner.
func behind(nodes []obs.ClusterNode, node, ownerID string) (lag *uint64, fence uint64) {
	for i := range nodes {
		n := &nodes[i]
		if n.Node == node {
			lag = n.Lag
		}
		if n.Node == ownerID {
			fence = n.Fence
		}
	}
	return lag, fence
}

// leaseLeft is how long this node may go on to answer reads without a further record; 0 for one
// that does not own the journal.
func (c *cluster) leaseLeft(now int64) time.Duration {
	if !c.owns.Load() || c.stale() {
		return 0
	}
	return owner.Left(now, int64(c.shared.Load().Confirmed()), c.term)
}

// standing returns what this node is to the journal of its cluster, nil where there is none.
func (s *server) standing() *obs.Standing {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	st := &obs.Standing{Cluster: c.cfg.Name, Node: c.id, Role: c.role(), Index: s.kernel.store.index()}
	if b, known := c.view.Owner(); known {
		st.Owner = b.Node
	}
	return st
}

// viewStore returns what /store shows.
func (s *server) viewStore() ops.Store {
	v := s.kernel.store.view(time.Now())
	v.Cluster = s.standing()
	return v
}

func (c *cluster) role() string {
	switch {
	case c.owns.Load():
		return obs.RoleOwner
	case c.follows():
		return obs.RoleStandby
	}
	return obs.RoleJoining
}

// registerCluster adds the metrics of the cluster.
func (s *server) registerCluster(reg *obs.Registry) error {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	return addMetrics(reg, clusterMetrics, func() *clusterReading {
		now, self := owner.Now(), s.self()
		r := &clusterReading{cluster: c, now: now}
		b, _ := c.view.Owner()
		r.lag, r.epoch = behind(c.roll.list(&self, nil, b.Node, now), c.id, b.Node)
		return r
	})
}

// clusterReading is what the metrics of a cluster come from.
type clusterReading struct {
	*cluster
	now   int64
	lag   *uint64
	epoch uint64
}

// clusterMetrics are those of a node of a cluster.
var clusterMetrics = []metric[clusterReading]{
	gauge("trunkline_cluster_owner", "1 while this node owns the journal of its cluster.",
		func(c *clusterReading) float64 { return oneIf(c.owns.Load()) }),
	gauge("trunkline_cluster_owner_known", "1 while this node owns the journal or knows which node does.",
		func(c *clusterReading) float64 { return oneIf(c.role() != obs.RoleJoining) }),
	counter("trunkline_cluster_owner_changes_total", "Owners of the journal that this node has heard of, itself included.",
		func(c *clusterReading) float64 { return float64(c.view.Changes()) }),
	gauge("trunkline_cluster_silent_seconds", "How long ago a standby has heard of the journal; 0 on the owner.",
		func(c *clusterReading) float64 {
			if c.owns.Load() {
				return 0
			}
			return c.view.Silent(c.now).Seconds()
		}),
	{Family: obs.Family{Name: "trunkline_cluster_lag_records", Help: "Records of the owner that this node has not; nothing while that is not known.", Kind: obs.Gauge},
		series: func(c *clusterReading, put putSeries) {
			if c.lag != nil {
				put(float64(*c.lag))
			}
		}},
	{Family: obs.Family{Name: "trunkline_cluster_epoch", Help: "Fence of the owner, which rises from owner to owner; nothing while it is not known.", Kind: obs.Gauge},
		series: func(c *clusterReading, put putSeries) {
			if c.epoch > 0 {
				put(float64(c.epoch))
			}
		}},
	gauge("trunkline_cluster_forwarded_connections", "Clients of this node that another node serves.",
		func(c *clusterReading) float64 { return float64(c.forwards.Open()) }),
	gauge("trunkline_cluster_taken_connections", "Clients of other nodes that this node serves.",
		func(c *clusterReading) float64 { return float64(c.peers.Open()) }),
}

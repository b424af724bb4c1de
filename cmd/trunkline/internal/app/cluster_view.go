package app

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

// viewCluster returns what /cluster shows, nil where there is no cluster.
func (s *server) viewCluster() func(ctx context.Context, check bool) obs.Cluster {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	return func(ctx context.Context, check bool) obs.Cluster {
		if check {
			c.checkCopies(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, viewWithin)
		defer cancel()
		h := c.member.Health(ctx)
		parts, nodes := s.viewPartitions()
		problems := append(s.viewCopies(parts), s.viewRoom()...)
		if h.Problem != "" {
			problems = slices.Insert(problems, 0, h.Problem)
		}
		v := obs.Cluster{
			Name: c.cfg.Name, Node: c.id, Mode: c.cfg.Mode, LeaseSeconds: c.term.Seconds(), LeaseLeftSeconds: s.first().lease.left().Seconds(), Drained: c.drained.Load(),
			Forwarded: s.forwarded(), Taken: c.peers.Open(), Quorum: h.Quorum, Problem: strings.Join(problems, "; "), Peers: []obs.ClusterPeer{}, ClusterPartition: parts[0], Nodes: nodes,
		}
		if c.several() {
			v.Partitions = parts
		}
		for _, p := range h.Peers {
			v.Peers = append(v.Peers, obs.ClusterPeer{Node: p.Node, Seen: p.Seen})
		}
		return v
	}
}

// viewPartitions returns what this node knows of all partitions and of all nodes.
func (s *server) viewPartitions() (parts []obs.ClusterPartition, nodes []obs.ClusterNode) {
	self, owners := s.self(), make([]string, len(s.parts))
	for i, r := range s.replicas() {
		parts = append(parts, r.view())
		owners[i] = parts[i].Owner
	}
	nodes = s.options.cluster.roll.list(&self, s.options.cluster.ids, owners, owner.Now())
	for i := range parts {
		missing, fence := behind(nodes, i, self.Indexes[i], owners[i])
		parts[i].Lag, parts[i].OwnerFence = missing, cmp.Or(fence, parts[i].OwnerFence)
	}
	return parts, nodes
}

// viewCopies adds what is known of the copies of all partitions, and returns what is wrong with
// them.
func (s *server) viewCopies(parts []obs.ClusterPartition) (problems []string) {
	c := s.options.cluster
	for i := range parts {
		copies, wrong := c.watches[i].Load().copies()
		parts[i].LeadsStream, parts[i].Copies = c.member.Leads(c.streamName(i)), copies
		problems = append(problems, wrong...)
	}
	return problems
}

// viewRoom returns which journals have no room.
func (s *server) viewRoom() (problems []string) {
	for _, r := range s.replicas() {
		if sh := r.lease.shared.Load(); sh != nil && errors.Is(sh.Trouble(), replicated.ErrNoRoom) {
			problems = append(problems, fmt.Sprintf("partition %d: %v", r.partition, sh.Trouble()))
		}
	}
	return problems
}

// forwarded counts the clients of this node that other nodes serve.
func (s *server) forwarded() (n int) {
	for _, r := range s.replicas() {
		n += r.lease.forwarded()
	}
	return n
}

// view returns what /cluster shows of the partition, without what other nodes announce.
func (r *replica) view() obs.ClusterPartition {
	l := r.lease
	v := obs.ClusterPartition{Partition: r.partition, Role: l.role(), Index: r.kernel.store.index(), OwnerChanges: l.view.Changes(), SilentSeconds: l.silent().Seconds()}
	if b, known := l.view.Owner(); known {
		v.Owner, v.OwnerAddr = b.Node, b.Addr
		if v.Role == obs.RoleStandby { // its blocks have it, before it announces itself
			v.OwnerFence = l.view.Fence()
		}
	}
	if sh := l.shared.Load(); sh != nil {
		v.Fence = sh.Fence()
	}
	return v
}

func (l *lease) role() string {
	switch {
	case l.owns.Load():
		return obs.RoleOwner
	case l.follows():
		return obs.RoleStandby
	}
	return obs.RoleJoining
}

// silent returns how long ago a standby has heard of the journal.
func (l *lease) silent() time.Duration {
	if l.owns.Load() {
		return 0
	}
	return l.view.Silent(owner.Now())
}

// left is how long this node may go on to answer reads without a further record; 0 for one that
// does not own the journal.
func (l *lease) left() time.Duration {
	if !l.owns.Load() || l.stale() {
		return 0
	}
	return owner.Left(owner.Now(), int64(l.shared.Load().Confirmed()), l.node.term)
}

// forwarded counts the clients that another node serves.
func (l *lease) forwarded() int {
	if f := l.forwards.Load(); f != nil {
		return f.Open()
	}
	return 0
}

// standing returns what this node is to the journal of its cluster, nil where there is none.
func (s *server) standing() *obs.Standing {
	c := s.options.cluster
	if c == nil {
		return nil
	}
	st := &obs.Standing{Cluster: c.cfg.Name, Node: c.id, Role: obs.RoleStandby, Partitions: len(s.parts)}
	if b, known := s.first().lease.view.Owner(); known {
		st.Owner = b.Node
	}
	for _, r := range s.replicas() {
		st.Index += r.kernel.store.index()
		switch r.lease.role() {
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

// leaseReading is what the metrics of a partition of a cluster come from.
type leaseReading struct {
	*lease
	of obs.ClusterPartition
}

// readLease returns the reading of a replica. It looks at the owner of that partition alone.
func (s *server) readLease(r *replica) *leaseReading {
	v := r.view()
	if v.Role == obs.RoleOwner {
		v.Lag, v.OwnerFence = new(uint64), v.Fence
	} else {
		missing, fence := s.options.cluster.roll.behind(r.partition, v.Index, v.Owner)
		v.Lag, v.OwnerFence = missing, cmp.Or(fence, v.OwnerFence)
	}
	return &leaseReading{r.lease, v}
}

// leaseMetrics are those of a partition of a cluster.
var leaseMetrics = []metric[leaseReading]{
	gauge("trunkline_cluster_owner", "1 while this node owns the journal of its cluster.",
		func(l *leaseReading) float64 { return oneIf(l.of.Role == obs.RoleOwner) }),
	gauge("trunkline_cluster_owner_known", "1 while this node owns the journal or knows which node does.",
		func(l *leaseReading) float64 { return oneIf(l.of.Role != obs.RoleJoining) }),
	counter("trunkline_cluster_owner_changes_total", "Owners of the journal that this node has heard of, itself included, since it follows the journal.",
		func(l *leaseReading) float64 { return float64(l.of.OwnerChanges) }),
	gauge("trunkline_cluster_silent_seconds", "How long ago a standby has heard of the journal; 0 on the owner.",
		func(l *leaseReading) float64 { return l.of.SilentSeconds }),
	{Family: obs.Family{Name: "trunkline_cluster_lag_records", Help: "Records of the owner that this node has not; nothing while that is not known.", Kind: obs.Gauge},
		series: func(l *leaseReading, put putSeries) {
			if l.of.Lag != nil {
				put(float64(*l.of.Lag))
			}
		}},
	{Family: obs.Family{Name: "trunkline_cluster_epoch", Help: "Fence of the owner, which rises from owner to owner; nothing while it is not known.", Kind: obs.Gauge},
		series: func(l *leaseReading, put putSeries) {
			if l.of.OwnerFence > 0 {
				put(float64(l.of.OwnerFence))
			}
		}},
	gauge("trunkline_cluster_forwarded_connections", "Clients of this node that another node serves.",
		func(l *leaseReading) float64 { return float64(l.forwarded()) }),
	gauge("trunkline_cluster_replica_damaged", "1 while the copy of the journal on this node is damaged.",
		func(l *leaseReading) float64 { return oneIf(l.watch().isDamaged()) }),
	gauge("trunkline_cluster_replicas_differ", "Nodes that have another journal than this one.",
		func(l *leaseReading) float64 { return float64(l.watch().differing()) }),
}

// nodeMetrics are those of a node of a cluster.
var nodeMetrics = []metric[cluster]{
	gauge("trunkline_cluster_taken_connections", "Clients of other nodes that this node serves.",
		func(c *cluster) float64 { return float64(c.peers.Open()) }),
	gauge("trunkline_cluster_drained", "1 while this node takes nothing over, as an operator has ordered.",
		func(c *cluster) float64 { return oneIf(c.drained.Load()) }),
}

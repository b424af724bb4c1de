package app

import (
	"trunkline/engine/cluster/control"
	"trunkline/engine/obs"
)

// leaseReading is what the metrics of a partition of a cluster come from.
type leaseReading struct {
	*control.Lease
	of obs.ClusterPartition
}

// readLease returns the reading of a replica.
func (s *server) readLease(r *replica) *leaseReading {
	return &leaseReading{r.lease, s.options.cluster.Reading(r.held())}
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
		func(l *leaseReading) float64 { return float64(l.Forwarded()) }),
	gauge("trunkline_cluster_replica_damaged", "1 while the copy of the journal on this node is damaged.",
		func(l *leaseReading) float64 { return oneIf(l.Damaged()) }),
	gauge("trunkline_cluster_replicas_differ", "Nodes that have another journal than this one.",
		func(l *leaseReading) float64 { return float64(l.Differing()) }),
}

// nodeMetrics are those of a node of a cluster.
var nodeMetrics = []metric[control.Node]{
	gauge("trunkline_cluster_taken_connections", "Clients of other nodes that this node serves.",
		func(c *control.Node) float64 { return float64(c.Taken()) }),
	gauge("trunkline_cluster_drained", "1 while this node takes nothing over, as an operator has ordered.",
		func(c *control.Node) float64 { return oneIf(c.Drained()) }),
}

package app

import (
	"context"
	"fmt"
	"log/slog"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/control"
	"trunkline/engine/cluster/node"
	"trunkline/engine/obs"
)

// openCluster joins the other nodes; nil where cluster.mode is off.
func openCluster(ctx context.Context, cfg *config.Config, log *slog.Logger) (*control.Node, error) {
	if !cfg.Cluster.On() {
		return nil, nil
	}
	nc, err := clusterConfig(cfg, log)
	if err != nil {
		return nil, err
	}
	n := control.New(nc)
	if err := n.Join(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// clusterConfig returns the settings of a node. It reads the secrets and the certificates.
func clusterConfig(cfg *config.Config, log *slog.Logger) (nc control.Config, err error) {
	l := &cfg.Cluster
	nc = control.Config{
		Name: l.Name, Mode: l.Mode, PeerAddr: l.PeerAddr, AdvertiseAddr: l.AdvertiseAddr, Lease: l.Lease, JoinTimeout: l.JoinTimeout, Election: l.ElectionTimeout,
		Partitions: l.Partitions, Replicas: l.Replicas, Clients: clusterClients(cfg), Services: []string{kernelService, threadsService, linesService}, Logger: log,
	}
	if nc.ID, err = l.ID(); err != nil {
		return nc, err
	}
	if nc.PeerTLS, err = cfg.ClusterPeers(); err != nil {
		return nc, err
	}
	if l.Mode == config.ClusterNATS {
		servers, err := cfg.ClusterServers(log)
		nc.Servers = &servers
		return nc, err
	}
	var embedded node.Config
	embedded, err = cfg.ClusterNode()
	embedded.Logger = log
	nc.Embedded = &embedded
	return nc, err
}

// clusterClients is how many clients of this node there are at most, in connections with owners:
// those of kernel clients, and of agent threads over HTTP and over lines.
func clusterClients(cfg *config.Config) int {
	return cfg.Kernel.MaxConnections + 2*cfg.Threads.MaxConnections
}

// host is the server as its node knows it.
func (s *server) host() control.Host {
	return control.Host{
		Version: s.version, Full: s.full,
		Admin: func() string {
			if s.admin == nil {
				return ""
			}
			return s.admin.Addr()
		},
		Replica: func(partition int) control.Replica { return s.parts[partition].current.Load().held() },
	}
}

// held is the replica as its node knows it.
func (c *replica) held() control.Replica {
	return control.Replica{Lease: c.lease, Index: c.kernel.store.index()}
}

// unopenedBy returns the error of a server that could not join its cluster: ErrOwnershipLost where
// it had joined before, so that it tries until the others are there.
func (o *Options) unopenedBy(err error) error {
	if o.Again {
		return fmt.Errorf("%w: %w", control.ErrOwnershipLost, err)
	}
	return err
}

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

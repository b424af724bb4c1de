package app

import (
	"context"
	"fmt"
	"log/slog"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/control"
	"trunkline/engine/cluster/node"
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

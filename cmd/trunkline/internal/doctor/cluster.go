package doctor

import (
	"context"
	"log/slog"
	"os"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/node"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// clusterWithin bounds what is asked of the servers of a cluster.
const clusterWithin = 5 * time.Second

const keyCluster = "cluster.mode"

// clusterNodes looks at the files of a node and asks the others who they are, or the NATS servers
// whether the journal can stand on them.
func clusterNodes(ctx context.Context, s *subject) []Finding {
	ctx, cancel := context.WithTimeout(ctx, clusterWithin)
	defer cancel()
	var found []Finding
	var running ops.Cluster
	var err error // why running is not known
	if s.admin.runs() {
		err = s.Ask(ctx, s.admin.addr, "/cluster", &running)
	}
	switch s.cfg.Cluster.Mode {
	case config.ClusterEmbedded:
		found = s.routes(ctx, &running)
	case config.ClusterNATS:
		found = s.natsServers(ctx)
	default:
		return []Finding{skip(keyCluster, "this server is alone")}
	}
	found = append(found, s.clusterSecrets()...)
	switch {
	case s.offline:
	case !s.admin.runs():
		found = append(found, skip("cluster", "no server answers on %s: what all nodes have in common is not compared", keyAdmin))
	case err != nil:
		found = append(found, warn(s.admin.addr, "start the server again with these settings", "the server that runs here is in no cluster: %v", err))
	default:
		found = append(found, s.runningNodes(&running)...)
	}
	return found
}

// openToOthers are the rights of a file that the user of the server and its group do not need.
const openToOthers = 0o027

// clusterSecrets looks who may read or write what makes a peer of the cluster.
func (s *subject) clusterSecrets() (found []Finding) {
	l := &s.cfg.Cluster
	for _, f := range []struct{ key, name string }{
		{"cluster.secret_file", l.SecretFile}, {"cluster.tls_key_file", l.TLSKeyFile},
		{"cluster.nats_creds_file", l.NATSCredsFile}, {"cluster.nats_system_creds_file", l.NATSSystemCredsFile},
	} {
		if f.name == "" {
			continue
		}
		switch info, err := os.Stat(f.name); {
		case err != nil:
			found = append(found, fail(f.key, "name a file that this user can read", "%v", err))
		case info.Mode()&openToOthers != 0:
			found = append(found, warn(f.key, "chmod 600 "+f.name+", as a file of the user of the server; make another secret if others have read it",
				"%s has mode %#o: users beside that of the server may use it", f.name, info.Mode().Perm()))
		default:
			found = append(found, ok(f.key, "%s has mode %#o", f.name, info.Mode().Perm()))
		}
	}
	return found
}

// runningNodes looks at what the node that runs here knows of all, and compares what must be the
// same.
func (s *subject) runningNodes(c *ops.Cluster) []Finding {
	const subject = "cluster"
	const runbook = "'trunkline cluster status' shows all nodes; docs/cluster.md has a runbook"
	var found []Finding
	switch {
	case !c.Quorum:
		found = append(found, fail(subject, runbook, "node %s sees no majority: %s", c.Node, c.Problem))
	case c.Owner == "":
		found = append(found, fail(subject, runbook, "node %s knows no owner of the journal", c.Node))
	default:
		found = append(found, ok(subject, "%s owns the journal, %s is %s of it", c.Owner, c.Node, c.Role))
	}
	for _, n := range c.Nodes {
		found = append(found, s.runningNode(&n)...)
	}
	return found
}

// runningNode looks at one node.
func (s *subject) runningNode(n *obs.ClusterNode) (found []Finding) {
	l := &s.cfg.Cluster
	subject := "node " + n.Node
	if !n.Seen {
		return []Finding{warn(subject, "start the node, or look what stopped it", "%s has not announced itself lately", n.Node)}
	}
	if lease := l.Lease.Seconds(); n.LeaseSeconds != lease {
		found = append(found, warn(subject, "set it to one value on all nodes, and start them again one after the other", "cluster.lease_ms is %.0f there, %.0f here", n.LeaseSeconds*1e3, lease*1e3))
	}
	if timeout := l.ElectionTimeout.Seconds(); n.ElectionSeconds != timeout {
		found = append(found, fail(subject, "set it to one value: a node with another one is not let in", "cluster.election_timeout_ms is %.0f there, %.0f here", n.ElectionSeconds*1e3, timeout*1e3))
	}
	if s.Build.Version != n.Version {
		found = append(found, warn(subject, "upgrade the nodes one after the other; docs/cluster.md has how", "its version is %s, this program is %s", n.Version, s.Build.Version))
	}
	if found == nil {
		found = append(found, ok(subject, "lease, election timeout and version are those of here"))
	}
	return found
}

func (s *subject) routes(ctx context.Context, running *ops.Cluster) (found []Finding) {
	const subject = "cluster.routes"
	const unread = "name files that this user can read"
	cfg, err := s.cfg.ClusterNode()
	if err != nil {
		return []Finding{fail("cluster", unread, "%v", err)}
	}
	found = append(found, clusterDirectory(cfg.Dir))
	if s.cfg.Cluster.Dir != "" { // else it is on the disk of store.dir
		if dir, err := nearestDir(cfg.Dir); err == nil {
			found = append(found, spaceOf("cluster.dir", dir))
		}
	}
	if s.offline {
		return found
	}
	answers, err := node.Probe(ctx, cfg)
	if err != nil {
		return append(found, fail(subject, unread, "%v", err))
	}
	for _, a := range answers {
		switch {
		case a.Node == cfg.Node && running.Node == cfg.Node && running.Name == cfg.Cluster:
			found = append(found, ok(subject, "%s, this node, runs", a.Node))
		case a.Node == cfg.Node && a.Unreachable != nil:
			found = append(found, ok(subject, "%s, this node, is not started", a.Node))
		case a.Unreachable != nil:
			found = append(found, warn(subject, "start the node, and look whether this machine reaches it and both have the same secret or authorities",
				"%s does not answer: %v", a.Node, a.Unreachable))
		case a.Refused != nil:
			found = append(found, fail(subject, "give each node an id and an address of its own, and all nodes the same list; a node that runs here already refuses a second one", "%v", a.Refused))
		default:
			found = append(found, ok(subject, "%s answers at %s", a.Node, a.Addr))
		}
	}
	return found
}

// clusterDirectory tries whether a node can make files where it keeps its copy of the journal.
func clusterDirectory(name string) Finding {
	const key = "cluster.dir"
	dir, err := nearestDir(name)
	if err == nil {
		var f *os.File
		if f, err = tempFile(dir); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fail(key, "name a directory in which the user of the server can make files", "%v", err)
	}
	return ok(key, "a file could be made and removed in %s", dir)
}

func (s *subject) natsServers(ctx context.Context) []Finding {
	const subject = "cluster.nats_url"
	cfg, err := s.cfg.ClusterServers(slog.New(slog.DiscardHandler))
	if err != nil {
		return []Finding{fail("cluster", "name files that this user can read", "%v", err)}
	}
	if s.offline {
		return []Finding{skip(subject, "the files of credentials and certificates can be read; no server is asked")}
	}
	n, err := node.Connect(ctx, cfg)
	if err != nil {
		return []Finding{fail(subject, "change the servers or the settings as the message describes", "%v", err)}
	}
	defer func() { _ = n.Close(ctx) }()
	const away = "look at the servers that do not answer"
	if err := n.AwaitQuorum(ctx); err != nil {
		return []Finding{fail(subject, away, "%v", err)}
	}
	h := n.Health(ctx)
	for _, p := range h.Peers {
		if !p.Seen {
			return []Finding{warn(subject, away, "%s does not answer; the others have a leader", p.Node)}
		}
	}
	if h.Problem != "" {
		return []Finding{warn(subject, "change the servers as the message describes", "%s", h.Problem)}
	}
	if s.cfg.Cluster.NATSAcceptLazySync {
		return []Finding{warn(subject, "set sync_interval: always on the servers, and unset cluster.nats_accept_lazy_sync",
			"the servers have a leader; a power loss may lose what was answered, which is accepted")}
	}
	return []Finding{ok(subject, "%d servers sync each write, and %s leads them", len(h.Peers), h.Leader)}
}

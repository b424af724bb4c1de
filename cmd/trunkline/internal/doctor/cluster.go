package doctor

import (
	"context"
	"log/slog"
	"os"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/node"
)

// clusterWithin bounds what is asked of the servers of a cluster.
const clusterWithin = 5 * time.Second

const keyCluster = "cluster.mode"

// clusterNodes looks at the files of a node and asks the others who they are, or the NATS servers
// whether the journal can stand on them.
func clusterNodes(ctx context.Context, s *subject) []Finding {
	ctx, cancel := context.WithTimeout(ctx, clusterWithin)
	defer cancel()
	switch s.cfg.Cluster.Mode {
	case config.ClusterEmbedded:
		return s.routes(ctx)
	case config.ClusterNATS:
		return s.natsServers(ctx)
	}
	return []Finding{skip(keyCluster, "this server is alone")}
}

func (s *subject) routes(ctx context.Context) (found []Finding) {
	const subject = "cluster.routes"
	const unread = "name files that this user can read"
	cfg, err := s.cfg.ClusterNode()
	if err != nil {
		return []Finding{fail("cluster", unread, "%v", err)}
	}
	found = append(found, clusterDirectory(cfg.Dir))
	if s.offline {
		return found
	}
	answers, err := node.Probe(ctx, cfg)
	if err != nil {
		return append(found, fail(subject, unread, "%v", err))
	}
	for _, a := range answers {
		switch {
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

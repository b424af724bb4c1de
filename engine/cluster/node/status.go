package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// metaGroup is the library's name of the group that all nodes of a cluster are in. Its leader
// places streams.
const metaGroup = "_meta_"

// Health is what a node sees of its cluster.
type Health struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	// Connected: the process reaches a server.
	Connected bool `json:"connected"`
	// Quorum: a majority of the nodes is seen, and it has a leader. Without it no write is
	// acknowledged.
	Quorum bool `json:"quorum"`
	// Leader is the id of the node that leads the cluster, "" if none is known.
	Leader string `json:"leader"`
	// Current: this node knows all that the cluster has decided. Lag is how many decisions it has
	// yet to apply.
	Current bool   `json:"current"`
	Lag     uint64 `json:"lag"`
	// StoreBytes is what this node's copy of the streams takes of its disk, StoreLimit how much it
	// may take: three quarters of what there was when the node started. Beyond it the node leads
	// and stores nothing until streams are shorter or it starts on a larger disk. Both are 0 where
	// servers of an operator have the streams.
	StoreBytes uint64 `json:"store_bytes"`
	StoreLimit uint64 `json:"store_limit"`
	// Peers are the other nodes, in the order of their ids. A node that uses servers of an operator
	// sees those as its peers, if it may ask them.
	Peers []Peer `json:"peers"`
	// Problem is what an operator should know: why there is no quorum, or the latest error. "" is
	// none.
	Problem string `json:"problem"`
}

// Peer is another node.
type Peer struct {
	Node string `json:"node"`
	// Seen: there is a connection to it.
	Seen bool `json:"seen"`
	// Lag is how many decisions of the cluster it has yet to store. The leader alone knows it; the
	// others have 0.
	Lag uint64 `json:"lag"`
}

// Health returns what the node sees now. It asks servers of an operator, until ctx ends; it never
// asks other nodes.
func (n *Node) Health(ctx context.Context) Health {
	h := Health{Connected: n.conn.IsConnected()}
	n.server.health(ctx, &h)
	slices.SortFunc(h.Peers, func(a, b Peer) int { return cmp.Compare(a.Node, b.Node) })
	return h
}

// lack describes why a node cannot work.
func (h *Health) lack() string {
	if h.Quorum && h.Problem == "" {
		return fmt.Sprintf("this node is %d decisions behind", h.Lag)
	}
	return cmp.Or(h.Problem, "no leader is elected")
}

// full reports whether the server stores nothing more.
func (h *Health) full() bool { return h.StoreLimit > 0 && h.StoreBytes > h.StoreLimit }

// missing returns the ids of the peers that are not seen.
func (h *Health) missing() (ids []string) {
	for _, p := range h.Peers {
		if !p.Seen {
			ids = append(ids, p.Node)
		}
	}
	return ids
}

// health implements membership.
func (e *embedded) health(_ context.Context, h *Health) {
	h.Cluster, h.Node = e.cfg.Cluster, e.cfg.Node
	seen := e.seen()
	for _, r := range e.cfg.Routes {
		if r.Node != e.cfg.Node {
			h.Peers = append(h.Peers, Peer{Node: r.Node, Seen: seen[r.Node]})
		}
	}
	if !e.server.Running() || !e.server.JetStreamEnabled() {
		h.Connected = false
		h.Problem = cmp.Or(e.log.failure(), e.log.latest(recentProblem), "the server has stopped")
		return
	}
	if streams, err := e.server.Jsz(nil); err == nil {
		h.StoreBytes, h.StoreLimit = streams.Store, uint64(max(0, streams.Config.MaxStore))
	}
	g, ok := e.group()
	if !ok {
		h.Problem = "the server has not begun yet"
		return
	}
	for _, p := range g.Peers { // those of newer lists of routes too
		if p.Name != "" && !slices.ContainsFunc(h.Peers, func(other Peer) bool { return other.Node == p.Name }) {
			h.Peers = append(h.Peers, Peer{Node: p.Name, Seen: seen[p.Name]})
		}
	}
	e.fromGroup(h, &g, len(seen)+1)
	missing := h.missing()
	var why []string
	switch {
	case h.Quorum:
	case len(h.Peers)+1-len(missing) < g.QuorumNeeded:
		why = append(why, fmt.Sprintf("no majority of the nodes is seen (not %s)", strings.Join(missing, ", ")))
	case g.PIndex == 0 && len(missing) > 0:
		why = append(why, fmt.Sprintf("a new cluster begins when all of its nodes are there (not %s)", strings.Join(missing, ", ")))
	default:
		why = append(why, "no leader is elected")
	}
	if h.full() {
		why = append(why, fmt.Sprintf("this node stores nothing more: %d bytes of at most %d", h.StoreBytes, h.StoreLimit))
	}
	if latest := e.log.latest(recentProblem); latest != "" && len(missing) > 0 {
		why = append(why, latest)
	}
	h.Problem = strings.Join(why, "; ")
}

// fromGroup takes what the group of all nodes knows. alive is how many nodes are seen, with this
// one. A leader counts those alone that it hears, for a connection outlives what is behind it.
func (e *embedded) fromGroup(h *Health, g *server.RaftzGroup, alive int) {
	h.Leader = g.Peers[g.Leader].Name
	if g.Leader == g.ID {
		h.Leader = e.cfg.Node
		alive = 1
		for i := range h.Peers {
			if p := &h.Peers[i]; e.hears(g, p) {
				alive++
			}
		}
	}
	h.Quorum = h.Leader != "" && alive >= g.QuorumNeeded
	if g.Committed > g.Applied {
		h.Lag = g.Committed - g.Applied
	}
	h.Current = h.Quorum && h.Lag == 0 && e.server.JetStreamIsCurrent()
}

// hears completes p with what the leader of the group knows about it, and reports whether p has
// answered within the longest time to an election.
func (e *embedded) hears(g *server.RaftzGroup, p *Peer) bool {
	for _, known := range g.Peers {
		if known.Name != p.Node {
			continue
		}
		if g.Committed > known.LastReplicatedIndex {
			p.Lag = g.Committed - known.LastReplicatedIndex
		}
		silence, err := time.ParseDuration(known.LastSeen)
		p.Seen = p.Seen && err == nil && silence <= longestElection(e.cfg.ElectionTimeout)
		return p.Seen
	}
	return false
}

// group returns the state of the group of all nodes.
func (e *embedded) group() (server.RaftzGroup, bool) {
	all := e.server.Raftz(&server.RaftzOptions{AccountFilter: server.DEFAULT_SYSTEM_ACCOUNT, GroupFilter: metaGroup})
	if all == nil {
		return server.RaftzGroup{}, false
	}
	g, ok := (*all)[server.DEFAULT_SYSTEM_ACCOUNT][metaGroup]
	return g, ok
}

// seen returns the ids of the nodes to which there is a route.
func (e *embedded) seen() map[string]bool {
	seen := make(map[string]bool)
	routes, err := e.server.Routez(nil)
	if err != nil {
		return seen
	}
	for _, r := range routes.Routes {
		seen[r.RemoteName] = true
	}
	return seen
}

// agree implements membership: nodes with other timers or another number of partitions cannot work
// together, nor can two with one id, which do not find each other before if they start at a time.
func (e *embedded) agree(ctx context.Context) error {
	if err := e.cfg.probe(ctx, e.server.ID()); err != nil {
		return err
	}
	expect := len(e.seen()) + 1
	servers, err := askServers(ctx, e.system, expect)
	if err != nil {
		return fmt.Errorf("cannot ask the other nodes: %w", err)
	}
	if err := e.cfg.agrees(servers); err != nil {
		return err
	}
	if len(servers) < expect {
		return fmt.Errorf("%w: %d of %d nodes that are seen have answered", errNotYet, len(servers), expect)
	}
	return nil
}

// agrees compares what must be the same on all nodes.
func (cfg *Config) agrees(servers []serverState) error {
	for _, s := range servers {
		if got, want := s.Server.Metadata[metaElection], cfg.ElectionTimeout.String(); got != want {
			return fmt.Errorf("cannot be in one cluster with node %q: its election timeout is %s, here it is %s", s.Server.Name, got, want)
		}
		if got, want := s.Server.Metadata[metaPartitions], strconv.Itoa(cfg.Partitions); got != want {
			return fmt.Errorf("cannot be in one cluster with node %q: it has %s partitions, here there are %s", s.Server.Name, got, want)
		}
		if got, known := s.Server.Metadata[metaNodes]; known && got != cfg.nodes() { // former versions do not show it
			return fmt.Errorf("cannot be in one cluster with node %q: its list of routes has %s, here it has %s", s.Server.Name, got, cfg.nodes())
		}
	}
	return nil
}

package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/obs"
)

// Bounds of what nodes announce of themselves.
const (
	announceEvery = time.Second
	// seenFor is for how long an announcement shows that its node is there.
	seenFor = 4 * announceEvery
	// keptFor is for how long it is shown at all: nodes of NATS servers have no list.
	keptFor = 10 * time.Minute
	// maxRoll is how many nodes are kept; a further one takes the place of the one that was silent
	// longest.
	maxRoll = 64
)

// roll is what nodes have announced. Times are readings of the clock of leases. The zero value is
// an empty one.
type roll struct {
	mu    sync.Mutex
	nodes map[string]announced
}

// announced is the last announcement of a node.
type announced struct {
	obs.ClusterNode
	at int64
}

// heard takes an announcement.
func (r *roll) heard(note []byte, now int64) error {
	a := announced{at: now}
	if err := json.Unmarshal(note, &a.ClusterNode); err != nil {
		return fmt.Errorf("cannot read what a node announces: %w", err)
	}
	if a.Node == "" {
		return fmt.Errorf("cannot read what a node announces: it has no name")
	}
	a.Seen, a.HeardSeconds, a.Lag = false, nil, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil {
		r.nodes = make(map[string]announced)
	}
	maps.DeleteFunc(r.nodes, func(_ string, old announced) bool { return now-old.at > int64(keptFor) })
	if _, known := r.nodes[a.Node]; !known && len(r.nodes) >= maxRoll {
		oldest := slices.MinFunc(slices.Collect(maps.Values(r.nodes)), func(a, b announced) int { return cmp.Compare(a.at, b.at) })
		delete(r.nodes, oldest.Node)
	}
	r.nodes[a.Node] = a
	return nil
}

// list returns all nodes that were heard or are of ids, and own as it is now. Lags are those behind
// the owner.
func (r *roll) list(own *obs.ClusterNode, ids []string, ownerID string, now int64) []obs.ClusterNode {
	byName := map[string]obs.ClusterNode{own.Node: *own}
	for _, id := range ids {
		if id != own.Node {
			byName[id] = obs.ClusterNode{Node: id}
		}
	}
	r.mu.Lock()
	for name, a := range r.nodes {
		if name == own.Node {
			continue
		}
		silent := time.Duration(now - a.at)
		secs := silent.Seconds()
		a.Seen, a.HeardSeconds = silent < seenFor, &secs
		byName[name] = a.ClusterNode
	}
	r.mu.Unlock()
	end, known := byName[ownerID]
	known = known && end.Index > 0
	list := make([]obs.ClusterNode, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		n := byName[name]
		if known && (n.Seen || n.HeardSeconds != nil) {
			lag := end.Index - min(n.Index, end.Index)
			n.Lag = &lag
		}
		list = append(list, n)
	}
	return list
}

// admin returns the admin address of a node, as it is bound there; "" where none is known.
func (r *roll) admin(node string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[node].Admin
}

// subject is where the nodes of this cluster announce themselves: beside the log of the first
// partition, so that who may write that may do this too.
func (c *cluster) subject() string { return c.cfg.Name + "_0.nodes" }

// self is what this node announces.
func (s *server) self() obs.ClusterNode {
	c := s.options.cluster
	n := obs.ClusterNode{
		Node: c.id, Role: c.role(), Addr: c.addr, Version: s.version, Index: s.kernel.store.index(),
		LeaseSeconds: c.term.Seconds(), ElectionSeconds: c.cfg.ElectionTimeout.Seconds(), Forwarded: c.forwards.Open(), Taken: c.peers.Open(), Seen: true,
	}
	if s.admin != nil {
		n.Admin = s.admin.Addr()
	}
	if c.owns.Load() {
		n.Fence = c.shared.Load().Fence()
	}
	return n
}

// announce has the other nodes know of this one, and this one of them, until the node leaves.
func (s *server) announce() {
	c := s.options.cluster
	if c == nil {
		return
	}
	err := c.member.Hear(c.subject(), func(note []byte) {
		if err := c.roll.heard(note, owner.Now()); err != nil {
			s.log.Debug("a node is not understood", "error", err)
		}
	})
	if err != nil {
		s.log.Warn("cannot hear what other nodes announce of themselves", "error", err)
	}
	c.tasks.Go(func() {
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for {
			note, err := json.Marshal(s.self())
			if err == nil {
				err = c.member.Send(c.subject(), note)
			}
			if err != nil { // the connection is lost, which is in the log
				s.log.Debug("cannot announce this node", "error", err)
			}
			select {
			case <-c.closed.Done():
				return
			case <-tick.C:
			}
		}
	})
}

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"trunkline/engine/cluster/node"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/obs"
	"trunkline/handlers/console"
)

// What nodes ask of each other.
const (
	askState  = "state"
	askMove   = "move"
	askDrain  = "drain"
	askResume = "resume"
)

// question is what a node asks of another one, as JSON.
type question struct {
	Ask       string `json:"ask"`
	Partition int    `json:"partition,omitempty"`
	To        string `json:"to,omitempty"`
}

// reply is the answer: the state of the node as it is then, or why the order is not carried out.
type reply struct {
	nodeState
	Error string `json:"error,omitempty"`
}

// nodeState is what other nodes know of one.
type nodeState struct {
	Node       string                 `json:"node"`
	Drained    bool                   `json:"drained"`
	Full       bool                   `json:"full,omitempty"` // its disk has no room for changes
	Partitions []obs.ClusterPartition `json:"partitions"`
}

const (
	// carryOutWithin bounds an order of another node.
	carryOutWithin = 20 * time.Second
	// mayLag is how many records a node may be behind the owner that is to own the journal next: it
	// applies so many in less than a lease.
	mayLag = 50_000
)

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", console.ErrRefused, fmt.Sprintf(format, args...))
}

// order carries out an order of an operator, by whichever node has to.
func (s *server) order(ctx context.Context, o console.ClusterOrder) error {
	switch o.Verb {
	case "rebalance":
		return s.rebalance(ctx)
	case "move":
		return s.move(ctx, o.Partition, o.Node)
	case "drain", "resume":
		_, err := s.ask(ctx, o.Node, question{Ask: o.Verb})
		return err
	}
	return refuse("this node does not know what %q is", o.Verb)
}

// ask has a node carry out an order, and returns its state then; "" is this one.
func (s *server) ask(ctx context.Context, id string, q question) (st nodeState, err error) {
	c := s.options.cluster
	if id == "" || id == c.id {
		err = s.carryOut(ctx, q)
		return s.state(), err
	}
	text, err := json.Marshal(q)
	if err != nil {
		return st, err
	}
	answer, err := c.member.Ask(ctx, c.cfg.Name, id, text)
	if errors.Is(err, node.ErrNoNode) {
		return st, fmt.Errorf("%w: node %q is not of the cluster, or is not there", console.ErrNotFound, id)
	}
	if err != nil {
		return st, err
	}
	r, err := s.decode(answer)
	if err != nil {
		return st, fmt.Errorf("cannot read the answer of node %q: %w", id, err)
	}
	if r.Error != "" {
		return st, refuse("node %q answers: %s", id, r.Error)
	}
	return r.nodeState, nil
}

// decode reads the answer of a node.
func (s *server) decode(answer []byte) (r reply, err error) {
	if err = json.Unmarshal(answer, &r); err == nil && len(r.Partitions) != len(s.parts) {
		err = fmt.Errorf("it has %d partitions, and here there are %d", len(r.Partitions), len(s.parts))
	}
	return r, err
}

// answer carries out an order of another node.
func (s *server) answer(text []byte) []byte {
	var q question
	err := json.Unmarshal(text, &q)
	if err == nil {
		ctx, cancel := context.WithTimeout(s.options.cluster.closed, carryOutWithin)
		err = s.carryOut(ctx, q)
		cancel()
	}
	r := reply{nodeState: s.state()}
	if err != nil {
		r.Error = err.Error()
	}
	out, _ := json.Marshal(&r) // of texts, numbers and truths
	return out
}

// carryOut does what is asked of this node.
func (s *server) carryOut(ctx context.Context, q question) error {
	switch q.Ask {
	case askState:
		return nil
	case askMove:
		return s.handOver(ctx, q.Partition, q.To)
	case askDrain:
		return s.drainNode(ctx)
	case askResume:
		s.options.cluster.drained.Store(false)
		s.log.Info("this node takes over again")
		return nil
	}
	return refuse("this node does not know what %q is", q.Ask)
}

// state returns what other nodes are to know of this one.
func (s *server) state() nodeState {
	c := s.options.cluster
	st := nodeState{Node: c.id, Drained: c.drained.Load() || c.leaving.Load() || c.damaged(), Full: c.full.Load()}
	for _, r := range s.replicas() {
		st.Partitions = append(st.Partitions, r.view())
	}
	return st
}

// states asks all nodes for theirs.
func (s *server) states(ctx context.Context) (all states, err error) {
	c := s.options.cluster
	text, err := json.Marshal(question{Ask: askState})
	if err != nil {
		return nil, err
	}
	answers, err := c.member.AskAll(ctx, c.cfg.Name, text, len(c.ids))
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if r, err := s.decode(answer); err == nil {
			all = append(all, r.nodeState)
		}
	}
	return all, nil
}

// handOver gives a partition that this node owns to another one.
func (s *server) handOver(ctx context.Context, partition int, to string) error {
	if partition < 0 || partition >= len(s.parts) {
		return fmt.Errorf("%w: partition %d: the cluster has %d, from 0 on", console.ErrNotFound, partition, len(s.parts))
	}
	p := s.parts[partition]
	if !p.current.Load().lease.owns.Load() {
		return refuse("node %q does not own partition %d", s.options.cluster.id, partition)
	}
	h := handOver{to: to, done: make(chan struct{})}
	select {
	case p.orders <- h:
		<-h.done
		return nil
	case <-p.ended:
		return refuse("node %q ends", s.options.cluster.id)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// move has another node own a partition, and returns when it does.
func (s *server) move(ctx context.Context, partition int, to string) error {
	if partition < 0 || partition >= len(s.parts) {
		return fmt.Errorf("%w: partition %d: the cluster has %d, from 0 on", console.ErrNotFound, partition, len(s.parts))
	}
	all, err := s.states(ctx)
	if err != nil {
		return err
	}
	from, err := all.mayMove(partition, to)
	if err != nil {
		return err
	}
	if _, err = s.ask(ctx, from, question{Ask: askMove, Partition: partition, To: to}); err != nil {
		return err
	}
	return s.awaitOwner(ctx, partition, to)
}

// ownerChecks is how long is between two looks for a new owner.
const ownerChecks = 20 * time.Millisecond

// awaitOwner returns when a node owns a partition.
func (s *server) awaitOwner(ctx context.Context, partition int, to string) error {
	for {
		st, err := s.ask(ctx, to, question{Ask: askState})
		if err == nil && st.Partitions[partition].Role == obs.RoleOwner {
			return nil
		}
		if !pause(ctx, ownerChecks) {
			return errors.Join(fmt.Errorf("partition %d was handed over to node %q, which does not own it yet: see 'trunkline cluster status'", partition, to), err)
		}
	}
}

// drainNode has other nodes own what this one owns, and take over from now on.
func (s *server) drainNode(ctx context.Context) error {
	next, err := s.nextOwners(ctx)
	if err != nil {
		return err
	}
	s.options.cluster.drained.Store(true)
	s.log.Info("this node takes nothing over any more")
	return s.handOverAll(ctx, next)
}

// nextOwners returns the nodes that can own what this one owns, by partition.
func (s *server) nextOwners(ctx context.Context) (next map[int]string, err error) {
	all, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	next = make(map[int]string)
	for _, r := range s.replicas() {
		if r.lease.owns.Load() {
			if next[r.partition], err = all.nextOwner(r.partition); err != nil {
				return nil, err
			}
		}
	}
	return next, nil
}

// handOverAll gives partitions to nodes, and returns when those own them.
func (s *server) handOverAll(ctx context.Context, next map[int]string) (err error) {
	for _, partition := range slices.Sorted(maps.Keys(next)) {
		if err = s.handOver(ctx, partition, next[partition]); err != nil {
			return err
		}
	}
	for partition, to := range next {
		if err = s.awaitOwner(ctx, partition, to); err != nil {
			return err
		}
	}
	return nil
}

// rebalance moves partitions until the nodes own as many each, or one more.
func (s *server) rebalance(ctx context.Context) error {
	all, err := s.states(ctx)
	if err != nil {
		return err
	}
	next, err := all.plan(len(s.parts))
	if err != nil {
		return err
	}
	for _, partition := range slices.Sorted(maps.Keys(next)) {
		if err := s.move(ctx, partition, next[partition]); err != nil {
			return err
		}
	}
	s.log.Info("the partitions are balanced", "moved", len(next))
	return nil
}

// states are those of the nodes that answer.
type states []nodeState

// owner returns the node that owns a partition, nil for none.
func (all states) owner(partition int) *nodeState {
	for i := range all {
		if all[i].Partitions[partition].Role == obs.RoleOwner {
			return &all[i]
		}
	}
	return nil
}

// mayMove returns the owner of a partition, if a node can take it over from that.
func (all states) mayMove(partition int, to string) (from string, err error) {
	owner := all.owner(partition)
	if owner == nil {
		return "", refuse("partition %d has no owner that answers", partition)
	}
	for i := range all {
		if all[i].Node == to {
			return owner.Node, all[i].mayOwn(partition, owner)
		}
	}
	return "", fmt.Errorf("%w: node %q is not of the cluster, or is not there", console.ErrNotFound, to)
}

// mayOwn returns why the node cannot take a partition over from its owner, nil if it can.
func (n *nodeState) mayOwn(partition int, owner *nodeState) error {
	own, at := &n.Partitions[partition], &owner.Partitions[partition]
	switch {
	case n.Node == owner.Node:
		return refuse("node %q owns partition %d already", n.Node, partition)
	case n.Drained:
		return refuse("node %q is drained, ends, or has a damaged copy of the journal: it takes nothing over", n.Node)
	case n.Full:
		return refuse("node %q has no room on its disk", n.Node)
	case own.Role != obs.RoleStandby:
		return refuse("node %q does not follow partition %d", n.Node, partition)
	case own.Index+mayLag < at.Index:
		return refuse("node %q is %d records behind the owner of partition %d, and may be %d", n.Node, at.Index-own.Index, partition, mayLag)
	}
	return nil
}

// nextOwner returns the node that takes a partition over from its owner: of those that can, the one
// that owns the least. It is counted as the owner from then on.
func (all states) nextOwner(partition int) (to string, err error) {
	owner := all.owner(partition)
	if owner == nil {
		return "", refuse("partition %d has no owner that answers", partition)
	}
	var best *nodeState
	for i := range all {
		n := &all[i]
		if why := n.mayOwn(partition, owner); why != nil {
			if n != owner {
				err = why
			}
		} else if best == nil || n.owned() < best.owned() {
			best = n
		}
	}
	if best == nil {
		return "", errors.Join(refuse("no other node can own partition %d", partition), err)
	}
	owner.Partitions[partition].Role, best.Partitions[partition].Role = obs.RoleStandby, obs.RoleOwner
	return best.Node, nil
}

// owned counts the partitions that a node owns.
func (n *nodeState) owned() (count int) {
	for i := range n.Partitions {
		if n.Partitions[i].Role == obs.RoleOwner {
			count++
		}
	}
	return count
}

// plan returns which nodes are to own which partitions instead of their owners, so that the nodes
// own as many each, or one more.
func (all states) plan(partitions int) (map[int]string, error) {
	nodes := make([]placement.Node, len(all))
	for i := range all {
		nodes[i] = placement.Node{ID: all[i].Node, Drained: all[i].Drained || all[i].Full}
	}
	current := make(placement.Assignment, partitions)
	for p := range current {
		owner := all.owner(p)
		if owner == nil {
			return nil, refuse("partition %d has no owner that answers", p)
		}
		current[p] = placement.Replicas{owner.Node}
		for i := range all { // the order in which they take over without an order
			if n := &all[(p+i)%len(all)]; n.mayOwn(p, owner) == nil && len(current[p]) < placement.MaxReplicas {
				current[p] = append(current[p], n.Node)
			}
		}
	}
	planned, err := placement.Plan(current, nodes, min(len(all), placement.MaxReplicas))
	next := make(map[int]string)
	for p, to := range planned {
		if to[0] != current[p][0] && slices.Contains(current[p], to[0]) { // others cannot own it yet
			next[p] = to[0]
		}
	}
	return next, err
}

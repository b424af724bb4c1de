package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"trunkline/engine/cluster/node"
	"trunkline/engine/cluster/owner"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
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
	// Until is when the clock of the node shows that it is too late for an order; 0: it never is.
	Until int64 `json:"until,omitempty"`
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
	Clock      int64                  `json:"clock"`          // what it shows there, in nanoseconds
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
	return fmt.Errorf("%w: %s", obs.ErrRefused, fmt.Sprintf(format, args...))
}

// Order carries out an order of an operator, by any node that has to: "rebalance", "move" of a
// partition to a node, "drain" and "resume" of a node.
func (n *Node) Order(ctx context.Context, verb string, partition int, id string) error {
	switch verb {
	case "rebalance":
		return n.rebalance(ctx)
	case askMove:
		return n.move(ctx, partition, id)
	case askDrain, askResume:
		_, err := n.ask(ctx, id, question{Ask: verb})
		return err
	}
	return refuse("this node does not know what %q is", verb)
}

// ask has a node carry out an order, and returns its state then; "" is this one.
func (n *Node) ask(ctx context.Context, id string, q question) (st nodeState, err error) {
	if id == "" || id == n.cfg.ID {
		err = n.carryOut(ctx, q)
		return n.state(), err
	}
	if q.Ask != askState { // a node that stood still would carry it out when the operator has given up
		asking, cancel := context.WithTimeout(ctx, answersWithin)
		st, err = n.ask(asking, id, question{Ask: askState})
		cancel()
		if err != nil {
			return st, err
		}
		if q.Until = 0; st.Clock != 0 { // former versions do not show it
			q.Until = st.Clock + int64(carryOutWithin)
		}
	}
	text, err := json.Marshal(q)
	if err != nil {
		return st, err
	}
	answer, err := n.member.Ask(ctx, n.cfg.Name, id, text)
	if errors.Is(err, node.ErrNoNode) {
		return st, fmt.Errorf("%w: node %q is not of the cluster, or is not there", obs.ErrNotFound, id)
	}
	if err != nil {
		return st, err
	}
	r, err := n.decode(answer)
	if err != nil {
		return st, fmt.Errorf("cannot read the answer of node %q: %w", id, err)
	}
	if r.Error != "" {
		return st, refuse("node %q answers: %s", id, r.Error)
	}
	return r.nodeState, nil
}

// decode reads the answer of a node.
func (n *Node) decode(answer []byte) (r reply, err error) {
	if err = json.Unmarshal(answer, &r); err == nil && len(r.Partitions) != n.cfg.Partitions {
		err = fmt.Errorf("it has %d partitions, and here there are %d", len(r.Partitions), n.cfg.Partitions)
	}
	return r, err
}

// answer carries out an order of another node.
func (n *Node) answer(text []byte) []byte {
	var q question
	err := json.Unmarshal(text, &q)
	if err == nil {
		ctx, cancel := context.WithTimeout(n.closed, carryOutWithin)
		err = n.carryOut(ctx, q)
		cancel()
	}
	r := reply{nodeState: n.state()}
	if err != nil {
		r.Error = err.Error()
	}
	out, _ := json.Marshal(&r) // of texts, numbers and truths
	return out
}

// carryOut does what is asked of this node.
func (n *Node) carryOut(ctx context.Context, q question) error {
	if q.Until != 0 && owner.Now() > q.Until {
		return refuse("node %q got the order too late", n.cfg.ID)
	}
	switch q.Ask {
	case askState:
		return nil
	case askMove:
		return n.handOver(ctx, q.Partition, q.To)
	case askDrain:
		return n.drainNode(ctx)
	case askResume:
		n.drained.Store(false)
		n.log.Info("this node takes over again")
		return nil
	}
	return refuse("this node does not know what %q is", q.Ask)
}

// state returns what other nodes are to know of this one.
func (n *Node) state() nodeState {
	st := nodeState{
		Node:    n.cfg.ID,
		Clock:   owner.Now(),
		Drained: n.drained.Load() || n.leaving.Load() || n.Damaged(),
		Full:    n.full.Load(),
	}
	for _, r := range n.replicas() {
		st.Partitions = append(st.Partitions, r.show())
	}
	return st
}

// states asks all nodes for theirs.
func (n *Node) states(ctx context.Context) (all states, err error) {
	text, err := json.Marshal(question{Ask: askState})
	if err != nil {
		return nil, err
	}
	answers, err := n.member.AskAll(ctx, n.cfg.Name, text, len(n.ids))
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if r, err := n.decode(answer); err == nil {
			all = append(all, r.nodeState)
		}
	}
	return all, nil
}

// handOver gives a partition that this node owns to another one.
func (n *Node) handOver(ctx context.Context, partition int, to string) error {
	if partition < 0 || partition >= n.cfg.Partitions {
		return fmt.Errorf(
			"%w: partition %d: the cluster has %d, from 0 on",
			obs.ErrNotFound,
			partition,
			n.cfg.Partitions,
		)
	}
	l := n.host.Replica(partition).Lease
	if !l.owns.Load() {
		return refuse("node %q does not own partition %d", n.cfg.ID, partition)
	}
	h := &HandOver{To: to, done: make(chan struct{})}
	select {
	case l.orders <- h:
		<-h.done
		return nil
	case <-l.ended.Done():
		return refuse("node %q does not own partition %d any more", n.cfg.ID, partition)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// move has another node own a partition, and returns when it does.
func (n *Node) move(ctx context.Context, partition int, to string) error {
	if partition < 0 || partition >= n.cfg.Partitions {
		return fmt.Errorf(
			"%w: partition %d: the cluster has %d, from 0 on",
			obs.ErrNotFound,
			partition,
			n.cfg.Partitions,
		)
	}
	all, err := n.states(ctx)
	if err != nil {
		return err
	}
	from, err := all.mayMove(partition, to)
	if err != nil {
		return err
	}
	if _, err = n.ask(ctx, from, question{Ask: askMove, Partition: partition, To: to}); err != nil {
		return err
	}
	next, err := n.awaitOwner(ctx, partition, to)
	if err == nil && next != to {
		err = refuse("node %q owns partition %d now: node %q has ended, or another order was given", next, partition, to)
	}
	return err
}

// ownerChecks is how long is between two looks for a new owner.
const ownerChecks = 20 * time.Millisecond

// awaitOwner returns the node that owns a partition which was handed over to a node: another one
// where that has ended, or has got another order.
func (n *Node) awaitOwner(ctx context.Context, partition int, to string) (string, error) {
	term := n.term
	for began := time.Now(); ; {
		asking, cancel := context.WithTimeout(ctx, term)
		st, err := n.ask(asking, to, question{Ask: askState})
		cancel()
		if err == nil && st.Partitions[partition].Role == obs.RoleOwner {
			return to, nil
		}
		if time.Since(began) > term { // others may have taken it over
			if all, err := n.states(ctx); err == nil {
				if n := all.owner(partition); n != nil {
					return n.Node, nil
				}
			}
		}
		if !connection.Pause(ctx, ownerChecks) {
			return "", errors.Join(fmt.Errorf("partition %d was handed over to node %q, which does not own it yet: see 'trunkline cluster status'", partition, to), err)
		}
	}
}

// drainNode has other nodes own what this one owns, and take over from now on.
func (n *Node) drainNode(ctx context.Context) error {
	before := n.drained.Swap(true) // of two nodes that drain at once, neither counts on the other
	next, err := n.nextOwners(ctx)
	if err != nil {
		n.drained.Store(before)
		return err
	}
	n.log.Info("this node takes nothing over any more")
	return n.handOverAll(ctx, next)
}

// nextOwners returns the nodes that can own what this one owns, by partition.
func (n *Node) nextOwners(ctx context.Context) (next map[int]string, err error) {
	for _, r := range n.replicas() {
		for r.begins() && connection.Pause(ctx, ownerChecks) {
		}
	}
	all, err := n.states(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(n nodeState) bool { return !n.Drained }) {
		return nil, refuse("no other node that answers takes anything over")
	}
	next = make(map[int]string)
	for _, r := range n.replicas() {
		if r.owns.Load() {
			if next[r.partition], err = all.nextOwner(r.partition); err != nil {
				return nil, err
			}
		}
	}
	return next, nil
}

// handOverAll gives partitions to nodes, and returns when those own them, or others.
func (n *Node) handOverAll(ctx context.Context, next map[int]string) error {
	for _, partition := range slices.Sorted(maps.Keys(next)) {
		err := n.handOver(ctx, partition, next[partition])
		if err != nil && !errors.Is(err, obs.ErrRefused) { // else it is another node's by now
			return err
		}
	}
	for partition, to := range next {
		if _, err := n.awaitOwner(ctx, partition, to); err != nil {
			return err
		}
	}
	return nil
}

// rebalance moves partitions until the nodes own as many each, or one more.
func (n *Node) rebalance(ctx context.Context) error {
	all, err := n.states(ctx)
	if err != nil {
		return err
	}
	next, err := all.plan(n.cfg.Partitions)
	if err != nil {
		return err
	}
	for _, partition := range slices.Sorted(maps.Keys(next)) {
		if err := n.move(ctx, partition, next[partition]); err != nil {
			return err
		}
	}
	n.log.Info("the partitions are balanced", "moved", len(next))
	return nil
}

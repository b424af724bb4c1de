package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/store"
	"trunkline/engine/stream"
)

// Lease is what a replica has to do with the other nodes: whether it may answer, and which node
// does if not. It is given up with its replica. A nil Lease is that of a server alone.
type Lease struct {
	node      *Node
	partition int
	again     bool // there was a replica before: the streams are waited for without end
	began     time.Time
	view      *owner.View

	owns     atomic.Bool
	beating  atomic.Bool // the first beat of this owner is stored
	lost     chan error  // why the replica must not answer any more
	orders   chan *HandOver
	shared   atomic.Pointer[Store]
	forwards atomic.Pointer[peer.Forwarder] // of a standby
	local    map[string]*upstream.Local     // to the own services, where routers of this node reach them
	next     string                         // the node that a release names; "": none
	ended    context.Context                // the replica is given up
	end      context.CancelFunc
	stopBeat func()
}

// HandOver is an order to give a partition to another node. It is for one lease: a node that owns
// the partition again later keeps it.
type HandOver struct {
	To   string
	done chan struct{}
}

// Done notes that the journal is given up.
func (h *HandOver) Done() { close(h.done) }

// errLost means that another node owns the journal by now, or may. What the replica has in memory
// may be wrong: it has stopped answering, and another one takes its place.
var errLost = errors.New("this node does not own the journal any more")

// NewLease returns that of a replica which begins; nil where there are no other nodes. again: it
// takes the place of another replica, and waits for the streams without end.
func (n *Node) NewLease(partition int, again bool) *Lease {
	if n == nil {
		return nil
	}
	l := &Lease{
		node:      n,
		partition: partition,
		again:     again,
		began:     time.Now(),
		view:      owner.NewView(owner.Now()),
		lost:      make(chan error, 1),
		orders:    make(chan *HandOver),
		stopBeat:  func() {},
	}
	if n.Several() {
		l.local = make(map[string]*upstream.Local)
		for _, service := range n.cfg.Services {
			l.local[service] = upstream.NewLocal()
		}
	}
	l.ended, l.end = context.WithCancel(n.closed)
	return l
}

// Partition returns its number, 0 of a server alone.
func (l *Lease) Partition() int {
	if l == nil {
		return 0
	}
	return l.partition
}

// Ended returns a context that ends with the lease.
func (l *Lease) Ended() context.Context { return l.ended }

// Lost delivers why the replica must not answer any more.
func (l *Lease) Lost() <-chan error { return l.lost }

// Orders delivers orders to give the partition to another node.
func (l *Lease) Orders() <-chan *HandOver { return l.orders }

// Local returns the listener of a service for the routers of this node, nil for none.
func (l *Lease) Local(service string) *upstream.Local { return l.local[service] }

// forwardHold is how much longer than a lease a client waits for an owner.
const forwardHold = 10 * time.Second

// NewForwarder returns one that brings the clients of this node to the owner.
func (l *Lease) NewForwarder() *peer.Forwarder {
	f := peer.NewForwarder(peer.ForwardConfig{Name: stream.RemoteName, Allow: stream.PeerAllowed, Hold: l.node.term + forwardHold, Term: l.node.term,
		Owner: func(ctx context.Context, service, client string) (conn net.Conn, owns context.Context, err error) {
			return l.node.reach(ctx, l.view, service, l.partition, client)
		}})
	l.forwards.Store(f)
	return f
}

// Forwarded counts the clients that another node serves.
func (l *Lease) Forwarded() int {
	if f := l.forwards.Load(); f != nil {
		return f.Open()
	}
	return 0
}

// Upstream returns where a service of the owners of partitions is. An owner may be this node.
func (n *Node) Upstream(service string) upstream.Config {
	dial := func(ctx context.Context, partition int, client string) (net.Conn, context.Context, error) {
		for {
			l := n.host.Replica(partition).Lease
			conn, owns, err := l.reach(ctx, service, client)
			if err == nil || ctx.Err() != nil || l.ended.Err() == nil {
				return conn, owns, err
			}
			if !connection.Pause(ctx, ownerChecks) { // another replica takes the place of this one
				return nil, nil, ctx.Err()
			}
		}
	}
	return upstream.Config{Partitions: n.cfg.Partitions, Dial: dial, Hold: n.term}
}

// reach connects to a service of the owner of the partition.
func (l *Lease) reach(ctx context.Context, service, client string) (net.Conn, context.Context, error) {
	if l.owns.Load() {
		if conn, err := l.local[service].Dial(ctx, client); err == nil {
			return conn, l.ended, nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ended, cancel)()
	return l.node.reach(ctx, l.view, service, l.partition, client)
}

// turnChecks is how often in a term a standby looks whether it may take over.
const turnChecks = 50

// lookShare of a term without a block is when a standby looks at the log whether there is one: the
// server that was to show it may have died.
const lookShare = 2

// turn returns a channel that is closed when this node is to take over, or to look at the log.
func (l *Lease) turn() <-chan struct{} {
	turn, look := make(chan struct{}), owner.Now()+int64(l.node.term/lookShare)
	go func() {
		tick := time.NewTicker(max(l.node.term/turnChecks, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-l.ended.Done():
				return
			case <-tick.C:
			}
			silent := l.view.Silent(owner.Now()) > l.node.term/lookShare && owner.Now() > look
			if silent || l.due() && l.able() {
				close(turn)
				return
			}
		}
	}()
	return turn
}

// due reports whether nothing was heard of an owner for so long that this node may take over.
func (l *Lease) due() bool {
	n := l.node
	rank := l.view.Rank(n.ids, n.cfg.ID, l.partition, n.cfg.Partitions)
	if n.full.Load() {
		rank += fullRanks
	}
	return !n.leaving.Load() && !n.drained.Load() && l.view.Due(owner.Now(), n.term, rank)
}

// fullRanks is how many ranks a node without space on its disk is behind where it would be: two
// halves of a term, so that one with space comes first.
const fullRanks = 2

// able reports whether this node can take over: it reaches a majority, and has a whole copy of the
// journal as far as is known.
func (l *Lease) able() bool { return l.node.able() && !l.Damaged() }

// watch returns that of the copy of the partition, nil before the partition is followed.
func (l *Lease) watch() *copyWatch { return l.node.watches[l.partition].Load() }

// Damaged reports whether the copy of this node is.
func (l *Lease) Damaged() bool { return l.watch().isDamaged() }

// Differing counts the nodes that have another journal than this one.
func (l *Lease) Differing() int { return l.watch().differing() }

// Beats takes what the owner has written.
func (l *Lease) Beats(rec []byte) error {
	b, err := owner.Decode(rec)
	if err != nil {
		return err
	}
	l.view.Saw(b)
	return nil
}

// Stale reports whether another node may own the journal by now.
func (l *Lease) Stale() bool {
	return !l.beating.Load() || owner.Lapsed(owner.Now(), int64(l.shared.Load().Confirmed()), l.node.term)
}

// Own begins the work of an owner: it shows the others that it is there.
func (l *Lease) Own(st *store.Store) {
	n := l.node
	b := owner.Beat{Node: n.cfg.ID, Addr: n.addr, Term: n.term}
	rec, err := b.Encode()
	if err != nil {
		l.Lose(err)
		return
	}
	l.owns.Store(true)
	l.view.Saw(b)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(n.term/owner.BeatShare, time.Millisecond))
		defer tick.Stop()
		for {
			if i := st.Beat(rec); !l.beating.Load() {
				l.beating.Store(st.Log().Await(l.ended, i) == nil)
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	l.stopBeat = sync.OnceFunc(func() {
		close(stop)
		<-done
	})
	n.log.Info(
		"this node owns the journal",
		"node",
		n.cfg.ID,
		"partition",
		l.partition,
		"fence",
		l.shared.Load().Fence(),
	)
}

// Revoke ends the ownership, which another node has by now. Nothing is released.
func (l *Lease) Revoke() { l.owns.Store(false) }

// HandTo has Release name the node that is to be the next owner.
func (l *Lease) HandTo(id string) { l.next = id }

// Release lets another node take over at once, as nothing is answered here any more. The journal
// is still open.
func (l *Lease) Release(st *store.Store) {
	if l == nil || !l.owns.Load() {
		return
	}
	l.stopBeat()
	b := owner.Beat{Node: l.node.cfg.ID, Addr: l.node.addr, Term: l.node.term, Released: true, To: l.next}
	if rec, err := b.Encode(); err == nil {
		st.Beat(rec)
	}
}

// begins reports whether this node has taken the journal over, and does not serve it yet.
func (l *Lease) begins() bool {
	sh := l.shared.Load()
	return sh != nil && sh.Fence() != 0 && !l.owns.Load() && l.ended.Err() == nil
}

// Lose has the replica stop answering at once.
func (l *Lease) Lose(err error) {
	select {
	case l.lost <- fmt.Errorf("%w: %w", errLost, err):
	default:
	}
}

// follows reports whether another node serves what this one follows.
func (l *Lease) follows() bool {
	_, known := l.view.Owner()
	return known && !l.owns.Load() && l.view.Silent(owner.Now()) < silentTerms*l.node.term
}

// silentTerms is for how many terms a standby counts on an owner of which it hears nothing: one is
// over before another node takes over.
const silentTerms = 3

// HasRead reports whether the log was read so far that an owner is in it.
func (l *Lease) HasRead() bool { return l != nil && l.view.Changes() > 0 }

func (l *Lease) role() string {
	switch {
	case l.owns.Load():
		return obs.RoleOwner
	case l.follows():
		return obs.RoleStandby
	}
	return obs.RoleJoining
}

// silent returns how long ago a standby has heard of the journal.
func (l *Lease) silent() time.Duration {
	if l.owns.Load() {
		return 0
	}
	return l.view.Silent(owner.Now())
}

// left is how long this node may go on to answer reads without a further record; 0 for one that
// does not own the journal.
func (l *Lease) left() time.Duration {
	if !l.owns.Load() || l.Stale() {
		return 0
	}
	return owner.Left(owner.Now(), int64(l.shared.Load().Confirmed()), l.node.term)
}

// Interrupt ends the wait for this node's turn.
func (l *Lease) Interrupt() {
	if l != nil {
		l.end()
	}
}

// Close gives the lease up. Its journal is closed.
func (l *Lease) Close() {
	if l == nil {
		return
	}
	l.Interrupt()
	l.stopBeat()
	if f := l.forwards.Load(); f != nil {
		f.Close()
	}
	for _, p := range l.local {
		_ = p.Close()
	}
	l.owns.Store(false)
	l.view.Forget()
}

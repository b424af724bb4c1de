package app

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
	"trunkline/engine/store"
	"trunkline/engine/stream"
)

// lease is what a replica has to do with the other nodes: whether it may answer, and which node
// does if not. It is nil where there are no other nodes, and is given up with its replica.
type lease struct {
	node      *cluster
	partition int
	again     bool // there was a replica before: the streams are waited for without end
	began     time.Time
	view      *owner.View

	owns     atomic.Bool
	beating  atomic.Bool // the first beat of this owner is stored
	lost     chan error  // why the replica must not answer any more
	orders   chan handOver
	shared   atomic.Pointer[sharedStore]
	forwards atomic.Pointer[peer.Forwarder] // of a standby
	local    map[string]*pipes              // to the own services, where routers of this node reach them
	next     string                         // the node that a release names; "": none
	ended    context.Context                // the replica is given up
	end      context.CancelFunc
	stopBeat func()
}

// errLost means that another node owns the journal by now, or may. What the replica has in memory
// may be wrong: it has stopped answering, and another one takes its place.
var errLost = errors.New("this node does not own the journal any more")

// newLease returns that of a replica which begins; nil where there are no other nodes.
func (c *cluster) newLease(partition int, again bool) *lease {
	if c == nil {
		return nil
	}
	l := &lease{node: c, partition: partition, again: again, began: time.Now(), view: owner.NewView(owner.Now()), lost: make(chan error, 1), orders: make(chan handOver), stopBeat: func() {}}
	if c.several() {
		l.local = map[string]*pipes{kernelService: newPipes(), threadsService: newPipes(), linesService: newPipes()}
	}
	l.ended, l.end = context.WithCancel(c.closed)
	return l
}

// forwardHold is how much longer than a lease a client waits for an owner.
const forwardHold = 10 * time.Second

// newForwarder returns one that brings the clients of this node to the owner.
func (l *lease) newForwarder() *peer.Forwarder {
	f := peer.NewForwarder(peer.ForwardConfig{Name: stream.RemoteName, Allow: stream.PeerAllowed, Hold: l.node.term + forwardHold, Term: l.node.term,
		Owner: func(ctx context.Context, service, client string) (conn net.Conn, owns context.Context, err error) {
			return l.node.reach(ctx, l.view, service, l.partition, client)
		}})
	l.forwards.Store(f)
	return f
}

// turnChecks is how often in a term a standby looks whether it may take over.
const turnChecks = 50

// lookShare of a term without a block is when a standby looks at the log whether there is one: the
// server that was to show it may have died.
const lookShare = 2

// turn returns a channel that is closed when this node is to take over, or to look at the log.
func (l *lease) turn() <-chan struct{} {
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
func (l *lease) due() bool {
	c := l.node
	rank := l.view.Rank(c.ids, c.id, l.partition, c.partitions())
	if c.full.Load() {
		rank += fullRanks
	}
	return !c.leaving.Load() && !c.drained.Load() && l.view.Due(owner.Now(), c.term, rank)
}

// fullRanks is how many ranks a node without room on its disk is behind where it would be: two
// halves of a term, so that one with room comes first.
const fullRanks = 2

// able reports whether this node can take over: it reaches a majority, and has a whole copy of the
// journal as far as is known.
func (l *lease) able() bool { return l.node.able() && !l.watch().isDamaged() }

// watch returns that of the copy of the partition, nil before the partition is followed.
func (l *lease) watch() *copyWatch { return l.node.watches[l.partition].Load() }

// beats takes what the owner has written.
func (l *lease) beats(rec []byte) error {
	b, err := owner.Decode(rec)
	if err != nil {
		return err
	}
	l.view.Saw(b)
	return nil
}

// stale reports whether another node may own the journal by now.
func (l *lease) stale() bool {
	return !l.beating.Load() || owner.Lapsed(owner.Now(), int64(l.shared.Load().Confirmed()), l.node.term)
}

// own begins the work of an owner: it shows the others that it is there.
func (l *lease) own(st *store.Store) {
	c := l.node
	b := owner.Beat{Node: c.id, Addr: c.addr, Term: c.term}
	rec, err := b.Encode()
	if err != nil {
		l.lose(err)
		return
	}
	l.owns.Store(true)
	l.view.Saw(b)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(c.term/owner.BeatShare, time.Millisecond))
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
	c.log.Info("this node owns the journal", "node", c.id, "partition", l.partition, "fence", l.shared.Load().Fence())
}

// release lets another node take over at once, as nothing is answered here any more. The journal
// is still open.
func (l *lease) release(st *store.Store) {
	if l == nil || !l.owns.Load() {
		return
	}
	l.stopBeat()
	b := owner.Beat{Node: l.node.id, Addr: l.node.addr, Term: l.node.term, Released: true, To: l.next}
	if rec, err := b.Encode(); err == nil {
		st.Beat(rec)
	}
}

// begins reports whether this node has taken the journal over, and does not serve it yet.
func (l *lease) begins() bool {
	sh := l.shared.Load()
	return sh != nil && sh.Fence() != 0 && !l.owns.Load() && l.ended.Err() == nil
}

// lose has the replica stop answering at once.
func (l *lease) lose(err error) {
	select {
	case l.lost <- fmt.Errorf("%w: %w", errLost, err):
	default:
	}
}

// follows reports whether another node serves what this one follows.
func (l *lease) follows() bool {
	if l == nil {
		return false
	}
	_, known := l.view.Owner()
	return known && !l.owns.Load() && l.view.Silent(owner.Now()) < silentTerms*l.node.term
}

// hasRead reports whether the log was read so far that an owner is in it.
func (l *lease) hasRead() bool { return l != nil && l.view.Changes() > 0 }

// silentTerms is for how many terms a standby counts on an owner of which it hears nothing: one is
// over before another node takes over.
const silentTerms = 3

// interrupt ends the wait for this node's turn.
func (l *lease) interrupt() {
	if l != nil {
		l.end()
	}
}

// close gives the lease up. Its journal is closed.
func (l *lease) close() {
	if l == nil {
		return
	}
	l.interrupt()
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

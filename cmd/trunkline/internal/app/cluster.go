package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/node"
	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/store"
	"trunkline/engine/stream"
)

// cluster is what a server has to do with the other nodes of its cluster; nil where there are none.
// All nodes listen. The one that owns the journal serves; the others follow the journal and forward
// their clients to it, until one of them takes over.
type cluster struct {
	cfg    *config.Cluster
	id     string
	ids    []string // of all nodes, sorted; none where they are not known
	term   time.Duration
	member *node.Node
	peers  *peer.Server
	dial   peer.Config
	addr   string // for other nodes
	view   *owner.View
	log    *slog.Logger

	forwards *peer.Forwarder
	tasks    sync.WaitGroup // listeners of clients and of peers
	owns     atomic.Bool
	leaving  atomic.Bool // the node does not take over any more
	beating  atomic.Bool // the first beat of this owner is stored
	again    bool        // Options.Again
	lost     chan error
	shared   atomic.Pointer[sharedStore]
	replica  atomic.Pointer[replicaWatch]
	closed   context.Context
	close    context.CancelFunc
	stopBeat func()
}

// ErrOwnershipLost means that another node owns the journal by now, or may. What this process has
// in memory may be wrong: it has stopped answering, and starts again.
var ErrOwnershipLost = errors.New("this node does not own the journal any more")

// openCluster joins the other nodes; nil where cluster.mode is off.
func openCluster(ctx context.Context, cfg *config.Config, log *slog.Logger, again bool) (_ *cluster, err error) {
	l := &cfg.Cluster
	if !l.On() {
		return nil, nil
	}
	c := &cluster{cfg: l, term: l.Lease, log: log, again: again, lost: make(chan error, 1), view: owner.NewView(owner.Now()), stopBeat: func() {}}
	c.closed, c.close = context.WithCancel(context.Background())
	if c.id, err = l.ID(); err != nil {
		return nil, err
	}
	if err = c.join(ctx, cfg); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", l.PeerAddr)
	if err == nil {
		if c.peers, err = peer.NewServer(ln, c.dial); err != nil {
			_ = ln.Close()
		}
	}
	if err != nil {
		_ = c.member.Close(ctx)
		return nil, fmt.Errorf("cannot open cluster.peer_addr: %w", err)
	}
	c.addr = cmp.Or(l.AdvertiseAddr, ln.Addr().String())
	c.forwards = peer.NewForwarder(peer.ForwardConfig{Owner: c.reach, Name: stream.RemoteName, Allow: stream.PeerAllowed, Hold: c.term + forwardHold})
	c.tasks.Go(func() {
		if err := c.peers.Serve(); err != nil {
			c.lose(err)
		}
	})
	return c, nil
}

// forwardHold is how much longer than a lease a client waits for an owner.
const forwardHold = 10 * time.Second

// join starts the server of this node, or connects to those of the operator.
func (c *cluster) join(ctx context.Context, cfg *config.Config) error {
	c.dial = peer.Config{Cluster: c.cfg.Name, Node: c.id, Logger: c.log}
	secured, err := cfg.ClusterPeers()
	if err != nil {
		return err
	}
	if secured != nil {
		c.dial.ServerTLS = secured
		c.dial.ClientTLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: secured.Certificates, RootCAs: secured.RootCAs}
	}
	if c.cfg.Mode == config.ClusterNATS {
		servers, err := cfg.ClusterServers(c.log)
		if err == nil {
			c.member, err = node.Connect(ctx, servers)
		}
		return err
	}
	n, err := cfg.ClusterNode()
	if err != nil {
		return err
	}
	n.Logger = c.log
	for _, r := range n.Routes {
		c.ids = append(c.ids, r.Node)
	}
	slices.Sort(c.ids)
	c.member, err = node.Start(ctx, n)
	return err
}

// reach connects to the owner of the journal in the name of a client.
func (c *cluster) reach(ctx context.Context, service, client string) (net.Conn, context.Context, error) {
	for {
		b, owns, err := c.view.Await(ctx)
		if err != nil {
			return nil, nil, err
		}
		conn, err := peer.Dial(ctx, b.Addr, &c.dial, service, client)
		if err == nil {
			return conn, owns, nil
		}
		if r := peer.Refusal(0); errors.As(err, &r) && r != peer.NotOwner {
			c.log.Warn("the owner does not take what is forwarded", "node", b.Node, "service", service, "err", err)
			return nil, nil, err
		}
		select { // the owner has ended, or another one is about to be
		case <-time.After(c.term / owner.BeatShare):
		case <-ctx.Done():
			return nil, nil, errors.Join(ctx.Err(), err)
		}
	}
}

// rank is the place of this node among those that may take over.
func (c *cluster) rank() int {
	last, _ := c.view.Owner()
	if c.ids == nil {
		h := fnv.New32a()
		_, _ = h.Write([]byte(c.id))
		return int(h.Sum32() % unknownRanks)
	}
	r := 0
	for _, id := range c.ids {
		if id == c.id {
			break
		}
		if id != last.Node {
			r++
		}
	}
	return r
}

// unknownRanks is how many places nodes have that do not know each other.
const unknownRanks = 3

// turnChecks is how often in a term a standby looks whether it may take over.
const turnChecks = 20

// turn returns a channel that is closed when this node is to take over.
func (c *cluster) turn() <-chan struct{} {
	turn := make(chan struct{})
	go func() {
		tick := time.NewTicker(max(c.term/turnChecks, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-c.closed.Done():
				return
			case <-tick.C:
			}
			if c.due() && c.able() {
				close(turn)
				return
			}
		}
	}()
	return turn
}

// due reports whether nothing was heard of an owner for so long that this node may take over.
func (c *cluster) due() bool {
	return !c.leaving.Load() && c.view.Due(owner.Now(), c.term, c.rank())
}

// able reports whether this node reaches a majority, without which it cannot take over, and has a
// whole copy of the journal.
func (c *cluster) able() bool {
	ctx, cancel := context.WithTimeout(c.closed, c.term)
	defer cancel()
	h := c.member.Health(ctx)
	return h.Connected && (h.Quorum || c.cfg.Mode == config.ClusterNATS) && !c.replica.Load().isDamaged()
}

// beats takes what the owner has written.
func (c *cluster) beats(rec []byte) error {
	b, err := owner.Decode(rec)
	if err != nil {
		return err
	}
	c.view.Saw(b)
	return nil
}

// stale reports whether another node may own the journal by now.
func (c *cluster) stale() bool {
	return !c.beating.Load() || owner.Lapsed(owner.Now(), int64(c.shared.Load().Confirmed()), c.term)
}

// own begins the work of an owner: it shows the others that it is there. The listeners of the node
// are its own from now on.
func (c *cluster) own(st *store.Store) {
	b := owner.Beat{Node: c.id, Addr: c.addr, Term: c.term}
	rec, err := b.Encode()
	if err != nil {
		c.lose(err)
		return
	}
	c.owns.Store(true)
	c.view.Saw(b)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(c.term/owner.BeatShare, time.Millisecond))
		defer tick.Stop()
		for {
			if i := st.Beat(rec); !c.beating.Load() {
				c.beating.Store(st.Log().Await(c.closed, i) == nil)
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	c.stopBeat = sync.OnceFunc(func() {
		close(stop)
		<-done
	})
	c.log.Info("this node owns the journal", "node", c.id, "fence", c.shared.Load().Fence())
}

// release lets another node take over at once, as nothing is answered here any more. The journal
// is still open.
func (c *cluster) release(st *store.Store) {
	if c == nil || !c.owns.Load() {
		return
	}
	c.stopBeat()
	b := owner.Beat{Node: c.id, Addr: c.addr, Term: c.term, Released: true}
	if rec, err := b.Encode(); err == nil {
		st.Beat(rec)
	}
}

// lose has the server stop answering at once.
func (c *cluster) lose(err error) {
	select {
	case c.lost <- fmt.Errorf("%w: %w", ErrOwnershipLost, err):
	default:
	}
}

// follows reports whether another node serves what this one follows.
func (c *cluster) follows() bool {
	if c == nil {
		return false
	}
	_, known := c.view.Owner()
	return known && !c.owns.Load() && c.view.Silent(owner.Now()) < silentTerms*c.term
}

// silentTerms is for how many terms a standby counts on an owner of which it hears nothing: one is
// over before another node takes over.
const silentTerms = 3

// losses delivers why the node must not answer any more.
func (c *cluster) losses() <-chan error {
	if c == nil {
		return nil
	}
	return c.lost
}

// interrupt ends the wait for this node's turn.
func (c *cluster) interrupt() {
	if c == nil {
		return
	}
	c.leaving.Store(true)
	c.close()
}

// shutdown leaves the cluster. The journal is closed.
func (c *cluster) shutdown(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.interrupt()
	c.stopBeat()
	c.forwards.Close()
	err := errors.Join(c.peers.Close(), c.member.Close(ctx))
	c.tasks.Wait()
	return err
}

package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
)

// cluster is what a server has to do with the other nodes of its cluster; nil where there are none.
// All nodes listen. The journal has one partition or several, and a node has a lease of each: it
// owns the partition and serves it, or follows it.
type cluster struct {
	cfg    *config.Cluster
	id     string
	ids    []string // of all nodes, sorted; none where they are not known
	term   time.Duration
	member *node.Node
	peers  *peer.Server
	dial   peer.Config
	dialer *peer.Dialer
	addr   string // for other nodes
	roll   roll
	// watches are those of the copies of the partitions, nil before one is followed.
	watches []atomic.Pointer[copyWatch]
	log     *slog.Logger

	serving sync.WaitGroup // the listener for other nodes
	leaving atomic.Bool    // the node ends, and takes nothing over any more
	drained atomic.Bool    // the node takes nothing over until it is resumed
	full    atomic.Bool    // the disk of the node has no room for changes
	dead    atomic.Bool    // the node cannot go on
	failed  chan error     // why
	closed  context.Context
	close   context.CancelFunc
}

// ErrOwnershipLost means that this process can own no journal any more, and another one may: its
// server has stopped. It has stopped answering.
var ErrOwnershipLost = errors.New("this process cannot be a node any more")

// openCluster joins the other nodes; nil where cluster.mode is off.
func openCluster(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *cluster, err error) {
	l := &cfg.Cluster
	if !l.On() {
		return nil, nil
	}
	c := &cluster{cfg: l, term: l.Lease, log: log, failed: make(chan error, 1), watches: make([]atomic.Pointer[copyWatch], l.Partitions)}
	c.closed, c.close = context.WithCancel(context.Background())
	if c.id, err = l.ID(); err != nil {
		return nil, err
	}
	if err = c.join(ctx, cfg); err != nil {
		return nil, err
	}
	if c.several() {
		c.dial.MaxConnections = c.taken(cfg)
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
	c.dialer = peer.NewDialer(&c.dial)
	c.addr = cmp.Or(l.AdvertiseAddr, ln.Addr().String())
	c.serving.Go(func() {
		if err := c.peers.Serve(); err != nil {
			c.lose(err)
		}
	})
	if l.Mode == config.ClusterEmbedded {
		c.serving.Go(c.watchServer)
		if err = c.member.Hear(c.copiesSubject(), c.hearCopies); err != nil {
			c.log.Warn("cannot hear what other nodes have of the journal", "err", err)
		}
	}
	return c, nil
}

// join starts the server of this node, or connects to those of the operator.
func (c *cluster) join(ctx context.Context, cfg *config.Config) error {
	c.dial = peer.Config{Cluster: c.cfg.Name, Node: c.id, Term: c.term, Logger: c.log}
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
			ctx, cancel := context.WithTimeout(ctx, c.cfg.JoinTimeout)
			defer cancel()
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

// partitions is how many the journal has.
func (c *cluster) partitions() int {
	if c == nil {
		return 1
	}
	return c.cfg.Partitions
}

// several reports whether the journal has more than one partition.
func (c *cluster) several() bool { return c.partitions() > 1 }

// legs is how many connections a partition takes where a node takes so many clients: those of each
// node where there are several partitions.
func (c *cluster) legs(clients int) int {
	if !c.several() {
		return clients
	}
	return clients * cmp.Or(len(c.ids), unknownNodes)
}

// taken is how many connections this node takes from others where there are several partitions:
// those of kernel clients, and of agent threads over HTTP and over lines.
func (c *cluster) taken(cfg *config.Config) int {
	return c.partitions() * c.legs(cfg.Kernel.MaxConnections+2*cfg.Threads.MaxConnections)
}

// unknownNodes is how many nodes there may be that do not know each other.
const unknownNodes = 64

// able reports whether this node reaches a majority: one that does not cannot take over.
func (c *cluster) able() bool {
	ctx, cancel := context.WithTimeout(c.closed, c.term)
	defer cancel()
	h := c.member.Health(ctx)
	return h.Connected && (h.Quorum || c.cfg.Mode == config.ClusterNATS)
}

// reach connects to the owner of a partition in the name of a client. known is the view that leads
// there. An owner that does not answer is waited for until it is replaced.
func (c *cluster) reach(ctx context.Context, known *owner.View, service string, partition int, client string) (net.Conn, context.Context, error) {
	for {
		b, owns, err := known.Await(ctx)
		if err != nil {
			return nil, nil, err
		}
		attempt, cancel := context.WithCancel(ctx)
		replaced := context.AfterFunc(owns, cancel)
		conn, err := c.dialer.Dial(attempt, b.Addr, service, partition, client)
		replaced()
		cancel()
		if err == nil {
			return conn, owns, nil
		}
		if r := peer.Refusal(0); errors.As(err, &r) && r != peer.NotOwner {
			c.log.Warn("the owner does not take what is forwarded", "node", b.Node, "service", service, "partition", partition, "err", err)
			return nil, nil, err
		}
		select { // the owner has ended, or another one is about to be
		case <-owns.Done():
		case <-time.After(c.term / owner.BeatShare):
		case <-ctx.Done():
			return nil, nil, errors.Join(ctx.Err(), err)
		}
	}
}

// lose has the node end at once.
func (c *cluster) lose(err error) {
	c.dead.Store(true)
	select {
	case c.failed <- fmt.Errorf("%w: %w", ErrOwnershipLost, err):
	default:
	}
}

// watchEvery is how often a node looks whether its server still keeps the journal.
const watchEvery = 2 * time.Second

// watchServer has the node end where its server has stopped keeping the journal, as it does for
// good on a disk without room: only a new process starts it, and the node would go on without a
// copy of its own. A connection that breaks is there again at the second look.
func (c *cluster) watchServer() {
	for missed := false; pause(c.closed, watchEvery); {
		h := c.member.Health(c.closed)
		if missed && !h.Connected && c.closed.Err() == nil {
			c.lose(fmt.Errorf("the server of this node keeps no journal any more: %s", h.Problem))
			return
		}
		missed = !h.Connected
	}
}

// unopenedBy returns the error of a server that could not join its cluster: ErrOwnershipLost where
// it had joined before, so that it tries until the others are there.
func (o *Options) unopenedBy(err error) error {
	if o.Again {
		return fmt.Errorf("%w: %w", ErrOwnershipLost, err)
	}
	return err
}

// losses delivers why the node cannot go on.
func (c *cluster) losses() <-chan error {
	if c == nil {
		return nil
	}
	return c.failed
}

// leave has the node take nothing over any more.
func (c *cluster) leave() {
	if c != nil {
		c.leaving.Store(true)
	}
}

// shutdown leaves the cluster. All journals are closed.
func (c *cluster) shutdown(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.leave()
	c.close()
	c.dialer.Close()
	err := errors.Join(c.peers.Close(), c.member.Close(ctx))
	c.serving.Wait()
	return err
}

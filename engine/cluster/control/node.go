package control

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

	"trunkline/engine/cluster/node"
	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/peer"
	"trunkline/engine/connection"
)

// Config is what a Node is made of. Embedded or Servers is set.
type Config struct {
	Name string // of the cluster
	ID   string // of the node
	Mode string // cluster.mode, to show
	// Embedded is the server of this process, and Servers are those of an operator.
	Embedded *node.Config
	Servers  *node.Servers
	// PeerAddr is bound for other nodes, which reach it at AdvertiseAddr; "": as it is bound.
	PeerAddr, AdvertiseAddr string
	// PeerTLS is for both sides of a connection between nodes. nil: it is not encrypted.
	PeerTLS *tls.Config
	// Lease is the term of a lease, and JoinTimeout how long a start waits for the other nodes.
	Lease, JoinTimeout time.Duration
	// Election is cluster.election_timeout_ms, to show.
	Election   time.Duration
	Partitions int // of the journal
	Replicas   int // nodes that keep each change
	// Clients is how many clients a node takes, in connections with owners. Services are those that
	// routers of this node reach in this process. Both are for several partitions.
	Clients  int
	Services []string
	Logger   *slog.Logger
}

// Node is what a server has to do with the other nodes of its cluster. All nodes listen. The
// journal has one partition or several, and a node has a Lease of each: it owns the partition and
// serves it, or follows it. A nil Node is a server alone, with one partition.
type Node struct {
	cfg    Config
	ids    []string // of all nodes, sorted; none where they are not known
	term   time.Duration
	host   Host
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
	full    atomic.Bool    // the disk of the node has no space for changes
	dead    atomic.Bool    // the node cannot go on
	failed  chan error     // why
	closed  context.Context
	close   context.CancelFunc
}

// Host is the server of a Node.
type Host struct {
	Version string
	// Admin returns the admin address, "" for none.
	Admin func() string
	// Replica returns what serves a partition or follows it now.
	Replica func(partition int) Replica
	// Full reports whether a disk has no space for changes.
	Full func() bool
}

// Replica is what a server has of a partition for the time of one lease.
type Replica struct {
	*Lease
	Index uint64 // the last record that there is
}

// ErrOwnershipLost means that this process can own no journal any more, and another one may: its
// server has stopped. It has stopped answering.
var ErrOwnershipLost = errors.New("this process cannot be a node any more")

// New returns a node that has not joined the others. Shutdown ends it.
func New(cfg Config) *Node {
	n := &Node{
		cfg:     cfg,
		term:    cfg.Lease,
		log:     cfg.Logger,
		failed:  make(chan error, 1),
		watches: make([]atomic.Pointer[copyWatch], cfg.Partitions),
	}
	n.closed, n.close = context.WithCancel(context.Background())
	if e := cfg.Embedded; e != nil {
		for _, r := range e.Routes {
			n.ids = append(n.ids, r.Node)
		}
		slices.Sort(n.ids)
	}
	var client *tls.Config
	if t := cfg.PeerTLS; t != nil {
		client = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: t.Certificates, RootCAs: t.RootCAs}
	}
	n.dial = peer.Config{
		Cluster: cfg.Name, Node: cfg.ID, Term: n.term, ServerTLS: cfg.PeerTLS, ClientTLS: client, MaxConnections: n.taken(cfg.Clients), Logger: n.log,
	}
	n.dialer = peer.NewDialer(&n.dial)
	return n
}

// Join starts the server of this node, or connects to those of the operator, and opens the listener
// for other nodes. After an error the node is closed.
func (n *Node) Join(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			n.close()
			n.dialer.Close()
		}
	}()
	if n.cfg.Servers != nil {
		joining, cancel := context.WithTimeout(ctx, n.cfg.JoinTimeout)
		n.member, err = node.Connect(joining, *n.cfg.Servers)
		cancel()
	} else {
		n.member, err = node.Start(ctx, *n.cfg.Embedded)
	}
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", n.cfg.PeerAddr)
	if err == nil {
		if n.peers, err = peer.NewServer(ln, n.dial); err != nil {
			_ = ln.Close()
		}
	}
	if err != nil {
		_ = n.member.Close(ctx)
		return fmt.Errorf("cannot open cluster.peer_addr: %w", err)
	}
	n.addr = cmp.Or(n.cfg.AdvertiseAddr, ln.Addr().String())
	n.serving.Go(func() {
		if err := n.peers.Serve(); err != nil {
			n.lose(err)
		}
	})
	if n.cfg.Embedded != nil {
		n.serving.Go(n.watchServer)
		if err := n.member.Hear(n.copiesSubject(), n.hearCopies); err != nil {
			n.log.Warn("cannot hear what other nodes have of the journal", "err", err)
		}
	}
	return nil
}

// Attach names the server of the node. Everything but Join, NewLease and Shutdown comes after it.
func (n *Node) Attach(h Host) {
	if n != nil {
		n.host = h
	}
}

// Begin announces the node, carries out orders of other nodes, and hands over what this node owns
// while its disk has no space.
func (n *Node) Begin() error {
	n.announce()
	if err := n.member.Answer(n.cfg.Name, n.cfg.ID, n.answer); err != nil {
		return err
	}
	n.serving.Go(n.watchSpace)
	return nil
}

// Partitions is how many the journal has.
func (n *Node) Partitions() int {
	if n == nil {
		return 1
	}
	return n.cfg.Partitions
}

// Several reports whether the journal has more than one partition.
func (n *Node) Several() bool { return n.Partitions() > 1 }

// Closed returns a context that ends as the node leaves the cluster.
func (n *Node) Closed() context.Context { return n.closed }

// Legs is how many connections a partition takes where a node takes so many clients: those of each
// node where there are several partitions.
func (n *Node) Legs(clients int) int {
	if !n.Several() {
		return clients
	}
	return clients * cmp.Or(len(n.ids), unknownNodes)
}

// taken is how many connections this node takes from others, 0 for the default: there is one
// partition.
func (n *Node) taken(clients int) int {
	if !n.Several() {
		return 0
	}
	return n.cfg.Partitions * n.Legs(clients)
}

// SetClients changes Config.Clients.
func (n *Node) SetClients(clients int) {
	if n.Several() {
		n.peers.SetMaxConnections(n.taken(clients))
	}
}

// unknownNodes is how many nodes there may be that do not know each other.
const unknownNodes = 64

// Service returns the listener of what other nodes forward to a service of a partition.
func (n *Node) Service(name string, partition int) net.Listener {
	return n.peers.Service(name, partition)
}

// Taken counts the clients of other nodes that this one serves.
func (n *Node) Taken() int { return n.peers.Open() }

// Drained reports whether the node takes nothing over, as an operator has ordered.
func (n *Node) Drained() bool { return n.drained.Load() }

// Admin returns the admin address of a node, as it is bound there; "" where none is known.
func (n *Node) Admin(id string) string { return n.roll.admin(id) }

// able reports whether this node reaches a majority: one that does not cannot take over.
func (n *Node) able() bool {
	ctx, cancel := context.WithTimeout(n.closed, n.term)
	defer cancel()
	h := n.member.Health(ctx)
	return h.Connected && (h.Quorum || n.cfg.Servers != nil)
}

// reach connects to the owner of a partition in the name of a client. known is the view that leads
// there. An owner that does not answer is waited for until it is replaced.
func (n *Node) reach(
	ctx context.Context,
	known *owner.View,
	service string,
	partition int,
	client string,
) (net.Conn, context.Context, error) {
	for {
		b, owns, err := known.Await(ctx)
		if err != nil {
			return nil, nil, err
		}
		attempt, cancel := context.WithCancel(ctx)
		replaced := context.AfterFunc(owns, cancel)
		conn, err := n.dialer.Dial(attempt, b.Addr, service, partition, client)
		replaced()
		cancel()
		if err == nil {
			return conn, owns, nil
		}
		if r := peer.Refusal(0); errors.As(err, &r) && r != peer.NotOwner {
			n.log.Warn(
				"the owner does not take what is forwarded",
				"node",
				b.Node,
				"service",
				service,
				"partition",
				partition,
				"err",
				err,
			)
			return nil, nil, err
		}
		select { // the owner has ended, or another one is about to be
		case <-owns.Done():
		case <-time.After(n.term / owner.BeatShare):
		case <-ctx.Done():
			return nil, nil, errors.Join(ctx.Err(), err)
		}
	}
}

// lose has the node end at once.
func (n *Node) lose(err error) {
	n.dead.Store(true)
	select {
	case n.failed <- fmt.Errorf("%w: %w", ErrOwnershipLost, err):
	default:
	}
}

// Dead reports whether the node cannot go on: what it serves may be another node's.
func (n *Node) Dead() bool { return n.dead.Load() }

// watchEvery is how often a node looks whether its server still keeps the journal.
const watchEvery = 2 * time.Second

// watchServer has the node end where its server has stopped keeping the journal, as it does for
// good on a disk without room: only a new process starts it, and the node would go on without a
// copy of its own. A connection that breaks is there again at the second look.
func (n *Node) watchServer() {
	for missed := false; connection.Pause(n.closed, watchEvery); {
		h := n.member.Health(n.closed)
		if missed && !h.Connected && n.closed.Err() == nil {
			n.lose(fmt.Errorf("the server of this node keeps no journal any more: %s", h.Problem))
			return
		}
		missed = !h.Connected
	}
}

// Losses delivers why the node cannot go on.
func (n *Node) Losses() <-chan error {
	if n == nil {
		return nil
	}
	return n.failed
}

// Leave has the node take nothing over any more.
func (n *Node) Leave() {
	if n != nil {
		n.leaving.Store(true)
	}
}

// Shutdown leaves the cluster. All journals are closed.
func (n *Node) Shutdown(ctx context.Context) error {
	if n == nil {
		return nil
	}
	n.Leave()
	n.close()
	n.dialer.Close()
	if n.member == nil { // it has not joined
		return nil
	}
	err := errors.Join(n.peers.Close(), n.member.Close(ctx))
	n.serving.Wait()
	return err
}

// spaceEvery is how often a node checks whether its disk has space for changes. Two checks have to
// find none: a write may be held up for a moment.
const spaceEvery = 2 * time.Second

// watchSpace has other nodes own what this one owns while its disk has no space for changes. Where
// none of them can, this one stays the owner, and answers what it is asked to read.
func (n *Node) watchSpace() {
	why := ""
	for was := false; connection.Pause(n.closed, spaceEvery); {
		now := n.host.Full()
		n.full.Store(now && was)
		if was = now; !n.full.Load() {
			why = ""
			continue
		}
		if n.Standing().Owned == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(n.closed, carryOutWithin)
		err := n.giveWay(ctx)
		cancel()
		if err != nil && err.Error() != why { // once, as it goes on for long
			why = err.Error()
			n.log.Warn(
				"the disk of this node has no room for changes, and it owns what no other node takes over",
				"error",
				err,
			)
		}
	}
}

// giveWay hands over what this node owns.
func (n *Node) giveWay(ctx context.Context) error {
	next, err := n.nextOwners(ctx)
	if err != nil {
		return err
	}
	if err = n.handOverAll(ctx, next); err == nil {
		n.log.Warn("the disk of this node has no room for changes: other nodes own what it owned", "next", next)
	}
	return err
}

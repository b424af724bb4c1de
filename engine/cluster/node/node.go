package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// Policy of the connection to a server. A request that a lost connection leaves open fails at once:
// what a client library would send again later must not meet another owner of the journal.
const (
	reconnectWait   = 250 * time.Millisecond
	pingInterval    = 5 * time.Second
	pingsOut        = 2
	connectTimeout  = 10 * time.Second
	recentProblem   = 30 * time.Second // how long the latest error counts as the reason of a lack
	pollWhileJoins  = 200 * time.Millisecond
	noReconnectData = -1 // bytes of messages kept while there is no connection: none
)

// Node is the membership of this process in a cluster. Its methods may be called by several
// goroutines.
type Node struct {
	conn   *nats.Conn
	server membership
}

// membership is what differs between a server of this process and those of an operator.
type membership interface {
	// health fills in what is known beside the connection.
	health(ctx context.Context, h *Health)
	// agree returns why the nodes that are seen cannot work together, errNotYet if that may
	// change.
	agree(ctx context.Context) error
	// stop ends what the membership started, at the end of ctx without regard to others.
	stop(ctx context.Context) error
}

// errNotYet means that what is missing may come.
var errNotYet = errors.New("not all are there yet")

// Conn returns the connection to the cluster: its streams and its bus. It lives until Close, and
// connects again by itself, but sends nothing again: publishers to streams do not either
// (jetstream.WithRetryAttempts(0)).
func (n *Node) Conn() *nats.Conn { return n.conn }

// AwaitQuorum returns once a majority of the nodes has elected a leader that this one follows, and
// nil; or an error that describes what is missing when ctx ends, and at once if the nodes can never
// work together.
func (n *Node) AwaitQuorum(ctx context.Context) error {
	tick := time.NewTicker(pollWhileJoins)
	defer tick.Stop()
	var wait string // what the nodes that answered lack
	for {
		h := n.Health(ctx)
		if h.Quorum && h.Current {
			err := n.server.agree(ctx)
			switch {
			case errors.Is(err, errNotYet):
				wait = err.Error()
			case err == nil || ctx.Err() == nil:
				return err
			}
		} else if ctx.Err() == nil || wait == "" { // else what was asked is cut short
			wait = h.lack()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot join cluster %q: %s: %w", h.Cluster, wait, ctx.Err())
		case <-tick.C:
		}
	}
}

// Close leaves the cluster: the connection ends, and a server of this process hands its leaderships
// to others and stops, at the end of ctx without regard to others. The journal is closed before. A
// second Close does nothing. Close returns when the server has stopped, which takes some seconds
// while it helps another node to catch up.
func (n *Node) Close(ctx context.Context) error {
	n.conn.Close()
	if err := n.server.stop(ctx); err != nil {
		return fmt.Errorf("cannot leave the cluster in order: %w", err)
	}
	return nil
}

// policy returns the options that every connection has. what is its name in the log.
func policy(node, what string, log *slog.Logger) []nats.Option {
	log = log.With("connection", what)
	return []nats.Option{
		nats.Name("trunkline " + node), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(noReconnectData), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(pingsOut),
		nats.Timeout(connectTimeout),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // not by Close
				log.Warn("the connection to the cluster is lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { log.Info("connected to the cluster again", "server", c.ConnectedServerName()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("an error of the cluster's connection", "error", err)
		}),
	}
}

const (
	// maxNote is the longest note, in bytes.
	maxNote = 4 << 10
	// notesWaiting is how many notes wait for their reader; further ones are lost.
	notesWaiting = 256
)

// Send sends a note to all nodes that hear a subject, this one too. It may be lost. One that is
// longer than maxNote is an error.
func (n *Node) Send(subject string, note []byte) error {
	if len(note) > maxNote {
		return fmt.Errorf("cannot send a note of %d bytes, at most %d", len(note), maxNote)
	}
	return n.conn.Publish(subject, note)
}

// Hear calls f with each note of a subject that comes, one after the other, until Close. A note is
// lent until f returns; those of more than maxNote are left out.
func (n *Node) Hear(subject string, f func(note []byte)) error {
	sub, err := n.conn.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Data) <= maxNote {
			f(m.Data)
		}
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(notesWaiting, notesWaiting*maxNote)
}

// Package proxy serves clients of agent threads on a node of a cluster with several partitions. It
// finds the partition of a workspace in the token of a request, which only the owner of that
// partition verifies: a forged token is refused there.
//
//	Web     HTTP and MCP, by the request: any may have another token than the one before
//	Lines   threads/1, by the connection: its first line has the token, whose workspace stays
//	leg     a connection of one client of Web to the owner of one partition, kept between requests
//
// What has no token, or one that cannot be read, and the paths that need none go to partition 0,
// which answers as one server does.
//
// # HTTP
//
// net/http reads requests with the limits of package web, so that what is malformed gets the same
// answers. A request goes on with its raw target and its header, except Connection; the body
// follows as it comes. An answer is passed on with its header and its body. It may come before the
// body of the request has ended: the rest still goes to the owner, which drops it, or ends the
// connection. A body that breaks off is cut off for the owner as well, and the owner answers.
//
// Where no owner is found, the answer is 503. A request whose owner is lost gets no answer: it may
// have been done. No request is sent twice. A client that has ended its sending direction, or is
// gone, has its request done as with one server, and is answered if that takes no longer than
// goneWithin.
//
// # Lines
//
// A client whose owner is lost, or ends the connection, loses it behind what was answered before.
// In a drain each connection ends for its owner as if the client had ended its sending direction,
// so that the owner answers what it has taken.
//
// # Bounds
//
// A client of Web has at most one leg for each partition; a leg without a request for legIdle ends,
// before the owner would end it. While a request is forwarded there are two buffers of copyBytes
// for it, and for a connection of lines those of two io.Copy. A first line has at most
// lines.MaxGuestLine bytes.
//
// Each owner counts failed authentications of an address for itself.
package proxy

import (
	"context"
	"log/slog"
	"net"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/stream"
	"trunkline/handlers/threads/token"
)

// Config holds the settings of a Web or of Lines. Partitions, Dial and IDs are required.
type Config struct {
	upstream.Config
	// MaxConnections is how many clients may be connected. 0: the default of the server of one
	// partition.
	MaxConnections int
	// IDs appends a new request id (threads §2.1).
	IDs func(dst []byte) []byte
	// Files counts the descriptors of clients of Lines; nil: they are not counted. Those of Web are
	// counted by its listeners (stream.Files.Listener).
	Files  *stream.Files
	Logger *slog.Logger
}

// noOwner is the message to a client that is not served now.
const noOwner = "no node serves the workspace now"

// router finds and dials partitions.
type router struct {
	cfg    Config
	owners upstream.Owners
	ctx    context.Context // of what is connected; ended by Shutdown
	stop   context.CancelFunc
}

func newRouter(cfg Config) router {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := router{cfg: cfg, owners: upstream.New(cfg.Config)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// partition returns that of the workspace in a token, 0 without one.
func (r *router) partition(bearer string) int {
	workspace := token.Workspace(bearer)
	if workspace == "" {
		return 0
	}
	return int(r.owners.Partition(placement.Workspace, workspace))
}

// dial connects to the owner of a partition.
func (r *router) dial(partition int, client string) (net.Conn, context.Context, error) {
	nc, owned, err := r.owners.Connect(r.ctx, partition, client)
	if err != nil {
		r.cfg.Logger.Debug("a client finds no owner", "remote", client, "partition", partition, "err", err)
	}
	return nc, owned, err
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

package route

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

package route

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/stream"
	"trunkline/handlers/threads/token"
)

// defaultHold is the default of Config.Hold.
const defaultHold = 10 * time.Second

// Config holds the settings of a Web or of Lines. Partitions, Dial and IDs are required.
type Config struct {
	// Partitions is how many partitions the cluster has, at least 1.
	Partitions int
	// Dial connects to the owner of a partition, in the name of a client, and waits for an owner
	// until ctx ends. owned ends when that owner has lost the partition: then the connection is
	// closed, and its late answers are not used. conn has CloseWrite, as clients may end their
	// sending direction.
	Dial func(ctx context.Context, partition int, client string) (conn net.Conn, owned context.Context, err error)
	// Hold bounds a Dial. 0: 10 s.
	Hold time.Duration
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

func (c Config) withDefaults() Config {
	c.Hold = cmp.Or(c.Hold, defaultHold)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// noOwner is the message to a client that is not served now.
const noOwner = "no node serves the workspace now"

// router finds and dials partitions.
type router struct {
	cfg  Config
	keys placement.Keyspace
	ctx  context.Context // of what is connected; ended by Shutdown
	stop context.CancelFunc
}

func newRouter(cfg Config) router {
	r := router{cfg: cfg.withDefaults()}
	r.keys, _ = placement.NewKeyspace(cfg.Partitions) // else all is in partition 0
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// partition returns that of the workspace in a token, 0 without one.
func (r *router) partition(bearer string) int {
	workspace := token.Workspace(bearer)
	if workspace == "" {
		return 0
	}
	return int(r.keys.Partition(placement.Workspace, workspace))
}

// dial connects to the owner of a partition.
func (r *router) dial(partition int, client string) (net.Conn, context.Context, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.Hold)
	defer cancel()
	nc, owned, err := r.cfg.Dial(ctx, partition, client)
	if err != nil {
		r.cfg.Logger.Debug("a client finds no owner", "remote", client, "partition", partition, "err", err)
	}
	return nc, owned, err
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// Package upstream connects the clients of a node to the owners of partitions. Routers of protocols
// share it: those of handlers/ipc/route and of handlers/threads/proxy.
package upstream

import (
	"cmp"
	"context"
	"net"
	"time"

	"trunkline/engine/cluster/placement"
)

// defaultHold is the default of Config.Hold.
const defaultHold = 10 * time.Second

// Config is where the owners of partitions are.
type Config struct {
	// Partitions is how many partitions the cluster has.
	Partitions int
	// Dial connects to the owner of a partition, in the name of a client, and waits for an owner
	// until ctx ends. conn has CloseWrite, and speaks the protocol without TLS. owned ends when
	// that owner has lost the partition: then the connection is closed, and its late answers are
	// not used.
	Dial func(ctx context.Context, partition int, client string) (conn net.Conn, owned context.Context, err error)
	// Hold bounds a Dial. 0: 10 s.
	Hold time.Duration
}

// Owners finds and connects to the owners of partitions.
type Owners struct {
	placement.Keyspace
	cfg Config
}

// New returns Owners. For a number of partitions that no cluster has, all is in partition 0.
func New(cfg Config) (o Owners) {
	o.cfg = cfg
	o.cfg.Hold = cmp.Or(cfg.Hold, defaultHold)
	o.Keyspace, _ = placement.NewKeyspace(cfg.Partitions)
	return o
}

// Connect is Config.Dial within Config.Hold.
func (o *Owners) Connect(
	ctx context.Context,
	partition int,
	client string,
) (conn net.Conn, owned context.Context, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Hold)
	defer cancel()
	return o.cfg.Dial(ctx, partition, client)
}

// Cut closes a connection at once: the end of TLS would wait for the other side.
func Cut(conn net.Conn) error {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	return conn.Close()
}

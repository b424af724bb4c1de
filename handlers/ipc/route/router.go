package route

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/wire"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/handlers/ipc"
)

// Limits and defaults of Config.
const (
	// maxPartitions is the most partitions that a Router serves: a stream has a bit for each.
	maxPartitions      = 64
	defaultMaxInFlight = 1024
	defaultMaxCalls    = 1 << 16
)

// Config holds the settings of a Router. Dial and Partitions are required, the latter from 2 to
// maxPartitions; other zero fields take the defaults of kernel-ipc §6, or those named there.
type Config struct {
	upstream.Config
	// MaxFrameBytes is that of the services, too.
	MaxFrameBytes  int
	MaxConnections int
	// MaxInFlight is how many requests of a connection may have no reply before it is not read. 0:
	// 1024.
	MaxInFlight int
	// MaxCalls is how many queries, streams and cancellations of a connection may be without their
	// end before it is not read. 0: 65536.
	MaxCalls                                 int
	ReadTimeout, WriteTimeout, ShutdownGrace time.Duration
	// Refuse appends the frame for a connection beyond MaxConnections (ipc.Service.AppendRefusal).
	// nil: it is closed without one.
	Refuse func(dst []byte) []byte
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxFrameBytes = cmp.Or(c.MaxFrameBytes, wire.DefaultMaxFrame)
	c.MaxConnections = cmp.Or(c.MaxConnections, stream.DefaultMaxConnections)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, defaultMaxInFlight)
	c.MaxCalls = cmp.Or(c.MaxCalls, defaultMaxCalls)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, ipc.DefaultReadTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, ipc.DefaultWriteTimeout)
	c.ShutdownGrace = cmp.Or(c.ShutdownGrace, ipc.DefaultShutdownGrace)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Router serves the clients of a node. Its methods may be called from any goroutine.
type Router struct {
	cfg     Config
	owners  upstream.Owners
	routing *ipc.Routing
	clients *stream.Host
	legs    *stream.Host

	ctx    context.Context // ended by Shutdown, behind the clients
	stop   context.CancelFunc
	wg     sync.WaitGroup // goroutines of legs
	broken atomic.Int64
}

// New returns a running Router; end it with Shutdown.
func New(cfg Config) (*Router, error) {
	cfg = cfg.withDefaults()
	if cfg.Partitions < 2 || cfg.Partitions > maxPartitions {
		return nil, fmt.Errorf("cannot route to %d partitions: want 2 to %d", cfg.Partitions, maxPartitions)
	}
	r := &Router{cfg: cfg, owners: upstream.New(cfg.Config), routing: ipc.NewRouting()}
	r.ctx, r.stop = context.WithCancel(context.Background())
	limits := connection.Limits{
		UnsentBytes: unsentBytes, ChunkBytes: connection.DefaultChunkBytes, FrameBytes: cfg.MaxFrameBytes + frame.PrefixSize,
		FrameWithin: int64(cfg.ReadTimeout), DrainWithin: int64(cfg.ShutdownGrace),
	}
	// A leg without work ends before the service would end it: a request must not meet that.
	limits.IdleAfter = int64(cfg.ReadTimeout / 2)
	r.legs = stream.NewHost(stream.Config{
		Protocol: "leg", MaxConnections: cfg.MaxConnections * cfg.Partitions, Limits: limits, Logger: cfg.Logger,
	})
	limits.IdleAfter, limits.SendWithin = int64(cfg.ReadTimeout), int64(cfg.WriteTimeout)
	r.clients = stream.NewHost(stream.Config{
		Protocol: "ipc", MaxConnections: cfg.MaxConnections, Limits: limits, Open: r.open, Refuse: cfg.Refuse, Logger: cfg.Logger,
	})
	return r, nil
}

// Serve accepts clients, over TLS where ln is a listener of crypto/tls, until Shutdown; it closes
// ln and returns nil then.
func (r *Router) Serve(ln net.Listener) error { return r.clients.ServeListener(ln) }

// SetMaxConnections changes Config.MaxConnections. Clients above a lower limit stay connected.
func (r *Router) SetMaxConnections(n int) {
	r.clients.Gate.SetMax(n)
	r.legs.Gate.SetMax(n * r.cfg.Partitions)
}

// Shutdown drains the clients (kernel-ipc §2.7) for at most Config.ShutdownGrace, or until ctx
// ends, then closes what is left.
func (r *Router) Shutdown(ctx context.Context) error {
	err := r.clients.Shutdown(ctx)
	r.stop()
	if closed := r.legs.Close(ctx); err == nil {
		err = closed
	}
	r.wg.Wait()
	return err
}

// Stats are the counts of a Router: clients and legs that are open now, and clients that lost
// their connection with a leg.
type Stats struct{ Clients, Legs, Broken int64 }

// Stats reads the counts.
func (r *Router) Stats() Stats {
	return Stats{int64(r.clients.Gate.Open()), int64(r.legs.Gate.Open()), r.broken.Load()}
}

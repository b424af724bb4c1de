package runtime

import (
	"cmp"
	"log/slog"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/connection"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/threadstore"
)

// The limits of the state machines, under names that one struct can embed.
type (
	KernelConfig        = kernel.Config
	BusConfig           = bus.Config
	OrchestrationConfig = orchestration.Config
)

// Config holds the limits of the state machines, and what they share. Zero fields take the
// defaults. What connects the machines with each other and with the journal is set by New.
type Config struct {
	KernelConfig        // a negative DequeueLease: no lease
	BusConfig           //
	OrchestrationConfig //
	Threads             threadstore.Config
	// MaxFrameBytes bounds a message of the bus, and a reply of the pipelines.
	MaxFrameBytes int
	// KernelQueueCapacity bounds what waits to be executed; as many queries and one more may be
	// pending.
	KernelQueueCapacity int
	// CleanupInterval is the time between two garbage collections.
	CleanupInterval time.Duration
	// IdempotencyTTL is how long the outcome of a tool call is kept.
	IdempotencyTTL time.Duration
	// IdempotencyWindow is for how long the answer to a request with an idempotency_key is kept,
	// MaxIdempotencyKeys how many there are, and MaxIdempotencyBytes what they have together.
	IdempotencyWindow   time.Duration
	MaxIdempotencyKeys  int
	MaxIdempotencyBytes int64
	// Journaled has every change recorded in the journal that Recover brings.
	Journaled bool
	// SnapshotBytes and SnapshotInterval are as in store.Config.
	SnapshotBytes    int64
	SnapshotInterval time.Duration
	// Partitions is how many processes of a cluster share the keys, and Partition which of them
	// this one is: what it names itself, it also owns. 0 or 1: there is no other.
	Partition, Partitions int
	// Now overrides the clock that the connection's owner reads, for tests.
	Now    func() connection.Instant
	Logger *slog.Logger
}

// Defaults of Config (kernel-ipc §6). Those of the machines are theirs.
const (
	DefaultQueueCapacity      = bus.DefaultQueryCapacity - 1
	DefaultDequeueLease       = 30 * time.Second
	DefaultCleanupInterval    = 5 * time.Minute
	DefaultProcessRetention   = 24 * time.Hour
	DefaultIdempotencyWindow  = 24 * time.Hour
	DefaultMaxIdempotencyKeys = 100_000
)

func (c Config) withDefaults() Config {
	c.MaxFrameBytes = cmp.Or(c.MaxFrameBytes, wire.DefaultMaxFrame)
	c.KernelQueueCapacity = cmp.Or(c.KernelQueueCapacity, DefaultQueueCapacity)
	c.DequeueLease = cmp.Or(c.DequeueLease, DefaultDequeueLease)
	c.CleanupInterval = cmp.Or(c.CleanupInterval, DefaultCleanupInterval)
	c.ProcessRetention = cmp.Or(c.ProcessRetention, DefaultProcessRetention)
	c.IdempotencyWindow = cmp.Or(c.IdempotencyWindow, DefaultIdempotencyWindow)
	c.MaxIdempotencyKeys = cmp.Or(c.MaxIdempotencyKeys, DefaultMaxIdempotencyKeys)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// owns returns whether the partition owns a key that it is about to give; nil: there is only one
// partition.
func (c *Config) owns(kind placement.Kind) func(key []byte) bool {
	if c.Partitions <= 1 {
		return nil
	}
	keys, err := placement.NewKeyspace(c.Partitions)
	if err != nil || c.Partition < 0 || c.Partition >= c.Partitions {
		panic("runtime: Config.Partition is not one of Config.Partitions")
	}
	own := placement.Partition(c.Partition)
	return func(key []byte) bool { return keys.PartitionOf(kind, key) == own }
}

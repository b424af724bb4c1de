package placement

import (
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// MaxPartitions is the most partitions that a cluster has.
const MaxPartitions = 1 << 20

// Partition is the number of a partition, from 0 on.
type Partition uint32

// Kind is what a key names. Equal keys of different kinds have partitions of their own. The numbers
// are part of the hash and never change.
type Kind uint8

// The kinds of keys.
const (
	Process   Kind = 1 // a pid: processes and sessions
	Workspace Kind = 2 // a workspace_id: agent threads
	Principal Kind = 3 // a caller of tools: its idempotency keys
)

// Keyspace maps keys to partitions. It is a value and never changes.
type Keyspace struct{ partitions uint64 }

// NewKeyspace returns the keyspace of that many partitions, from 1 to MaxPartitions.
func NewKeyspace(partitions int) (Keyspace, error) {
	if partitions < 1 || partitions > MaxPartitions {
		return Keyspace{}, fmt.Errorf("cannot have %d partitions: want 1 to %d", partitions, MaxPartitions)
	}
	return Keyspace{uint64(partitions)}, nil
}

// Partition returns the partition of a key: the high half of mix(XXH64(key) + kind·φ) times the
// number of partitions, φ being 2⁶⁴ over the golden ratio. It is fixed for ever, because rows lie
// where it has put them. It does not allocate.
func (k Keyspace) Partition(kind Kind, key string) Partition {
	high, _ := bits.Mul64(mix(xxhash.Sum64String(key)+uint64(kind)*golden), k.partitions)
	return Partition(high)
}

const golden = 0x9e3779b97f4a7c15

// mix is the finalizer of splitmix64: every bit of x changes half of the bits.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

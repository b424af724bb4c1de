// Package placement decides which partition a key belongs to. It is pure: no socket, no goroutine,
// no clock. Equal input gives equal output on every node and on every architecture; there is no
// floating point.
//
// A partition is the unit of ownership and of order (durability §6.1). Their number is fixed when a
// cluster is created, and so is the function from keys to them. Who owns a partition now is in its
// log; engine/cluster/owner decides who takes over, and engine/cluster/control who is to own it
// instead.
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
	_         Kind = 3 // taken by earlier versions
	User      Kind = 4 // a user_id: its rate windows
	Topic     Kind = 5 // a type of events, commands or queries
	Query     Kind = 6 // a query_id: the answer to a query
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

// Partition returns the partition of a key: the high 64 bits of XXH64 of the key, with the kind as
// its seed, times the number of partitions. It is fixed for ever, because rows lie where it has put
// them. It does not allocate.
func (k Keyspace) Partition(kind Kind, key string) Partition {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(kind))
	_, _ = d.WriteString(key) // it never fails
	return k.of(&d)
}

// PartitionOf is Partition for a key in bytes.
func (k Keyspace) PartitionOf(kind Kind, key []byte) Partition {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(kind))
	_, _ = d.Write(key) // it never fails
	return k.of(&d)
}

func (k Keyspace) of(d *xxhash.Digest) Partition {
	high, _ := bits.Mul64(d.Sum64(), k.partitions)
	return Partition(high)
}

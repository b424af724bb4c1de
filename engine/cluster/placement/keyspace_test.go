package placement_test

import (
	"fmt"
	"math"
	"testing"

	"trunkline/engine/cluster/placement"
)

// TestKeysKeepTheirPartitions holds the function from keys to partitions: rows lie where it has put
// them. None of these lines ever changes.
func TestKeysKeepTheirPartitions(t *testing.T) {
	f := func(partitions int, kind placement.Kind, key string, want placement.Partition) {
		t.Helper()
		k, err := placement.NewKeyspace(partitions)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Partition(kind, key); got != want {
			t.Errorf("%d partitions, kind %d, %q: %d, want %d", partitions, kind, key, got, want)
		}
		if got := k.PartitionOf(kind, []byte(key)); got != want {
			t.Errorf("%d partitions, kind %d, %q in bytes: %d, want %d", partitions, kind, key, got, want)
		}
	}
	f(1, placement.Process, "anything", 0)
	f(6, placement.Process, "", 5)
	f(6, placement.Process, "pid-1", 3)
	f(6, placement.Process, "pid-2", 2)
	f(6, placement.Workspace, "acme", 1)
	f(6, placement.Kind(3), "acme", 0)
	f(1000, placement.Process, "pid-1", 570)
	f(1000, placement.Workspace, "acme", 190)
	f(1000, placement.Kind(3), "acme", 141)
	f(1000, placement.Workspace, "größe/日本", 249)
	f(100_000, placement.Process, "a-process-id-that-is-longer-than-thirty-two-bytes", 28843)
	f(placement.MaxPartitions, placement.Process, "pid-1", 597880)
	f(placement.MaxPartitions, placement.Kind(3), "acme", 148616)
	f(1000, placement.User, "acme", 75)
	f(1000, placement.Topic, "acme", 954)
	f(1000, placement.Query, "acme", 386)
}

func TestNumbersOfPartitions(t *testing.T) {
	f := func(n int, ok bool) {
		t.Helper()
		if _, err := placement.NewKeyspace(n); (err == nil) != ok {
			t.Errorf("%d partitions: %v", n, err)
		}
	}
	f(-1, false)
	f(0, false)
	f(1, true)
	f(placement.MaxPartitions, true)
	f(placement.MaxPartitions+1, false)
}

// TestKeysSpread: numbered keys, as clients make them, fill partitions as chance does. The sum of
// squares of what is off is that of χ²: its mean is the number of partitions.
func TestKeysSpread(t *testing.T) {
	const partitions, perPartition = 1000, 100
	k, err := placement.NewKeyspace(partitions)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []placement.Kind{placement.Process, placement.Workspace, placement.Kind(3)} {
		var count [partitions]int
		for i := range partitions * perPartition {
			count[k.Partition(kind, fmt.Sprint("pid-", i))]++
		}
		sum := 0.0
		for _, n := range count {
			sum += math.Pow(float64(n-perPartition), 2) / perPartition
		}
		if off := math.Abs(sum-partitions) / math.Sqrt(2*partitions); off > 4 {
			t.Errorf("kind %d: χ² is %.0f for %d partitions, %.1f deviations off", kind, sum, partitions, off)
		}
	}
}

//go:build !race

package placement_test

import (
	"testing"

	"trunkline/engine/cluster/placement"
)

func TestNoAllocs(t *testing.T) {
	k, err := placement.NewKeyspace(1000)
	if err != nil {
		t.Fatal(err)
	}
	pid := []byte("a-process-id-that-is-longer-than-thirty-two-bytes")
	if n := testing.AllocsPerRun(100, func() {
		k.Partition(placement.Workspace, "a-workspace-id-that-is-longer-than-thirty-two-bytes")
		k.PartitionOf(placement.Process, pid)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

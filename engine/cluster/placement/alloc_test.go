//go:build !race

package placement_test

import (
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
)

func TestNoAllocs(t *testing.T) {
	k, err := placement.NewKeyspace(1000)
	if err != nil {
		t.Fatal(err)
	}
	pid := []byte("a-process-id-that-is-longer-than-thirty-two-bytes")
	cfg := &placement.Config{Node: "b", Timing: placement.DefaultTiming()}
	own, _ := placement.Start(cfg, 0, placement.Replicas{"a", "b"})
	if n := testing.AllocsPerRun(100, func() {
		k.Partition(placement.Workspace, "a-workspace-id-that-is-longer-than-thirty-two-bytes")
		k.PartitionOf(placement.Process, pid)
		o, _ := own.Step(placement.Event{Kind: placement.Rebuilt})
		o, _ = o.Step(placement.Event{Kind: placement.Observed, Node: "a", Now: time.Second})
		o, _ = o.Step(placement.Event{Kind: placement.Tick, Now: o.Due()})
		o, _ = o.Step(placement.Event{Kind: placement.ClaimWon, Sent: 2 * time.Second, Now: 2 * time.Second})
		if !o.MayServe(2*time.Second) || o.Hint() != "a" {
			t.Error("b does not serve")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

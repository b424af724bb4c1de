package crash

import (
	"context"
	"slices"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// TestLossIsSeen: a server that keeps nothing does not pass as one that keeps everything.
func TestLossIsSeen(t *testing.T) {
	if !rounds.Long() {
		t.Skip("kills servers that lose everything, in the long form")
	}
	rig := newRig(t, "")
	defer rig.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	careless := newGame(&options{disk: 1 << 10}, leg{mode: "memory"}, 0, rig.Binary, rig.Dir)
	faults, err := careless.play(ctx, 1)
	if err != nil || len(faults) < maxFaults {
		t.Errorf("a server without a store passed: %v, %v", err, faults)
	}
	if careless.count[violations].Load() != historiesAtOnce {
		t.Errorf("histories of a server without a store: %d violations", careless.count[violations].Load())
	}
}

func TestLegs(t *testing.T) {
	f := func(mode string, legs ...string) {
		t.Helper()
		var got []string
		for _, l := range (&options{mode: mode}).legs() {
			got = append(got, l.String())
		}
		if !slices.Equal(got, legs) {
			t.Errorf("%q: %v", mode, got)
		}
	}
	f("all", "memory", "always", "interval, frequent snapshots", "always, frequent snapshots", "interval")
	f("always", "always", "always, frequent snapshots")
	f("interval", "interval", "interval, frequent snapshots")
	f("memory", "memory")
	f("both")
}

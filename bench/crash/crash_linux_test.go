package crash

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

// TestCrash plays a few rounds in each mode; a server that keeps nothing shows that the evaluates
// see a loss.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills servers")
	}
	temp := t.TempDir()
	path, err := load.FindBinary("", "trunkline/cmd/trunkline", temp)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	o := &options{mode: "all", seed: uint64(time.Now().UnixNano()), disk: 1 << 10}
	games := 0
	game := func(l leg) *game {
		games++
		return newGame(o, l, games, path, temp)
	}
	total := &tally{}
	for _, l := range o.legs() {
		g := game(l)
		play := g.play
		if l.mode == "memory" {
			play = g.playMemory
		}
		faults, err := play(ctx, 3)
		if err != nil || len(faults) > 0 {
			t.Errorf("%s: %v, %s", l, err, strings.Join(faults, "\n"))
		}
		total.merge(&g.count)
	}
	total.table().Print(t.Output())
	for c := range total {
		if optional := count(c) == historiesUnknown || count(c) == violations || count(c) >= endedBy; !optional && total[c].Load() == 0 {
			t.Errorf("count %d is zero", c)
		}
	}
	if total[violations].Load()+total[historiesUnknown].Load() > 0 {
		t.Error("not every history was explained")
	}
	careless := game(leg{mode: "memory"})
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

package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// TestPowerLoss: a server loses its power while clients make processes, with snapshots in between.
// In mode always nothing that was acknowledged is lost. In mode interval the end of it may be: what
// is left of each client is what it had done first, and is not lost again.
func TestPowerLoss(t *testing.T) {
	for _, mode := range []string{"always", "interval"} {
		t.Run(mode, func(t *testing.T) {
			disk := newCrashDisk(t)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			chance := rand.New(rand.NewPCG(seed, 0))
			var kept []string
			for round := range rounds.Few(1, 2) {
				s := startStoreServer(t, disk.dir, mode, round)
				time.Sleep(time.Duration(50+chance.IntN(1500)) * time.Millisecond) // an interval is a second
				s.kill()
				if round%2 == 0 {
					disk.lose(nil)
				} else {
					disk.lose(chance)
				}
				acked := s.answered()
				missing := holds(t, disk.dir, append(kept, acked...))
				t.Logf("round %d: %d acknowledged, %d lost", round, len(acked), len(missing))
				switch {
				case mode == "always" && len(missing) > 0:
					t.Fatalf("%d of %d are lost: %v", len(missing), len(acked), missing[:min(10, len(missing))])
				case slices.ContainsFunc(missing, func(pid string) bool { return slices.Contains(kept, pid) }):
					t.Fatal("what was left after one power loss is lost with the next")
				}
				checkPrefix(t, acked, missing)
				kept = slices.DeleteFunc(append(kept, acked...), func(pid string) bool { return slices.Contains(missing, pid) })
			}
		})
	}
}

// checkPrefix checks that a client whose processes are lost has lost the last ones.
func checkPrefix(t *testing.T, acked, missing []string) {
	t.Helper()
	lost := make(map[string]bool)
	for _, pid := range missing {
		lost[pid] = true
	}
	ended := make(map[string]string)
	for _, pid := range acked { // those of one client are in order
		of := pid[:strings.LastIndex(pid, "-")]
		switch {
		case lost[pid] && ended[of] == "":
			ended[of] = pid
		case !lost[pid] && ended[of] != "":
			t.Fatalf("%s is there, and %s before it is lost", pid, ended[of])
		}
	}
}

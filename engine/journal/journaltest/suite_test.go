package journaltest

import (
	"testing"

	"go.uber.org/goleak"

	"trunkline/engine/journal"
	"trunkline/engine/journal/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// on returns a place on a disk in memory.
func on(o memstore.Options) Place {
	d := memstore.New(o)
	mode := journal.Always
	if o.Interval {
		mode = journal.Interval
	}
	return Place{Mode: mode, Open: d.Open, Crash: d.Crash, Kill: d.Kill}
}

func TestAlways(t *testing.T) {
	Suite(t, func(*testing.T) Place { return on(memstore.Options{Seed: 1}) })
}

func TestInterval(t *testing.T) {
	Suite(t, func(*testing.T) Place { return on(memstore.Options{Seed: 2, Interval: true}) })
}

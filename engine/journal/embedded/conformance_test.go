package embedded

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/journaltest"
)

// TestConformance runs the suite of every store on a disk in memory that can lose its power.
func TestConformance(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			journaltest.Suite(t, func(*testing.T) journaltest.Place { return inMemory(mode) })
		})
	}
}

// TestConformanceOnDisk runs it on a directory, without crashes: those are in TestKillNine.
func TestConformanceOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("the same on a disk in memory is in TestConformance")
	}
	journaltest.Suite(t, func(t *testing.T) journaltest.Place {
		dir := t.TempDir()
		return journaltest.Place{Mode: journal.Always, Open: func() (journal.Store, error) {
			return Open(quiet(Config{Dir: dir, Mode: journal.Always}))
		}}
	})
}

var errCrash = errors.New("the machine is gone")

func inMemory(mode journal.Mode) journaltest.Place {
	disk := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(3, uint64(mode)))
	var open *Store
	end := func(percent int) {
		open.fs.sink(errCrash) // first: what is acknowledged is in the clone
		disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	}
	return journaltest.Place{
		Mode: mode,
		Open: func() (s journal.Store, err error) {
			open, err = Open(quiet(Config{Dir: "journal", Mode: mode, FS: disk}))
			return open, err
		},
		Crash: func() { end(rng.IntN(100)) },
		Kill:  func() { end(100) },
	}
}

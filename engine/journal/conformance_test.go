package journal_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/kit/memstore"
)

// on returns a place on a disk of blocks.
func on(o memstore.Options) Place {
	d := memstore.New(o)
	mode := journal.Always
	if o.Interval {
		mode = journal.Interval
	}
	return Place{Mode: mode, Open: d.Open, Crash: d.Crash, Kill: d.Kill}
}

func TestAlways(t *testing.T) {
	runSuite(t, func(*testing.T) Place { return on(memstore.Options{Seed: 1}) })
}

func TestInterval(t *testing.T) {
	runSuite(t, func(*testing.T) Place { return on(memstore.Options{Seed: 2, Interval: true}) })
}

// TestEmbedded runs the suite on the embedded store, whose disk in memory can lose its power.
func TestEmbedded(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		t.Run(mode.String(), func(t *testing.T) {
			runSuite(t, func(*testing.T) Place { return inMemory(mode) })
		})
	}
}

// TestEmbeddedOnDisk runs it on a directory, without crashes: those are in TestKillNine of the
// embedded store.
func TestEmbeddedOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("the same on a disk in memory is in TestEmbedded")
	}
	runSuite(t, func(t *testing.T) Place {
		dir := t.TempDir()
		return Place{Mode: journal.Always, Open: func() (journal.Store, error) {
			return openEmbedded(embedded.Config{Dir: dir, Mode: journal.Always})
		}}
	})
}

func openEmbedded(cfg embedded.Config) (journal.Store, error) {
	cfg.SyncEvery = 24 * time.Hour // never by itself
	cfg.FreeBytes = func() (uint64, error) { return 1 << 40, nil }
	return embedded.Open(cfg)
}

var errCrash = errors.New("the machine is gone")

func inMemory(mode journal.Mode) Place {
	disk := memdisk.New()
	rng := rand.New(rand.NewPCG(3, uint64(mode)))
	gone := new(atomic.Bool)
	end := func(percent int) {
		gone.Store(true) // first: what is acknowledged is in the clone
		disk = memdisk.Of(disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
	}
	return Place{
		Mode: mode,
		Open: func() (journal.Store, error) {
			dead := new(atomic.Bool)
			gone = dead
			fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if dead.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					return errCrash
				}
				return nil
			}))
			return openEmbedded(embedded.Config{Dir: "journal", Mode: mode, FS: fs})
		},
		Crash: func() { end(rng.IntN(100)) },
		Kill:  func() { end(100) },
	}
}

package journal_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/journal/embedded/memdisk"
	"trunkline/engine/journal/memstore"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/memstream"
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

// TestReplicated runs the suite on a stream that several nodes could share, with a memory for its
// local copies.
func TestReplicated(t *testing.T) {
	for name, faults := range map[string]memstream.Faults{
		"Whole": {},
		"Lossy": {Lose: 3, LoseAnswer: 3, Double: 100, Delay: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) { runSuite(t, func(*testing.T) Place { return replicatedOn(faults) }) })
	}
}

// replicatedOn returns a place on a stream in memory. The death of the process takes its connection
// with it; a power loss takes what the local store has not synced as well.
func replicatedOn(faults memstream.Faults) Place {
	log, disk, seed := memstream.New(), memstore.New(memstore.Options{Seed: 4}), uint64(0)
	var client *memstream.Client
	var open journal.Store
	end := func(disk func()) {
		client.Kill()
		disk()
		_ = open.Close() // it asks no more
	}
	return Place{
		Mode: journal.Always,
		Open: func() (journal.Store, error) {
			local, err := disk.Open()
			if err != nil {
				return nil, err
			}
			seed++
			client = log.Client(seed, faults)
			store, err := replicated.Open(context.Background(), replicated.Config{Stream: client, Chunks: client, Local: local, Lease: time.Second})
			if err != nil {
				return nil, errors.Join(err, local.Close())
			}
			open = store
			return store, nil
		},
		Crash: func() { end(disk.Crash) },
		Kill:  func() { end(disk.Kill) },
	}
}

package embedded

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// cutter is a file system that loses its power at some operations: at each it keeps what a disk
// might then hold, and what had to be there.
type cutter struct {
	mem  *memdisk.Disk
	ops  atomic.Int64
	at   int64                // the cut is at this operation
	must func() journal.Index // safe at any time

	mu   sync.Mutex
	rng  *rand.Rand
	cuts []cut
}

type cut struct {
	fs   *vfs.MemFS
	must journal.Index
	what string
}

// String implements errorfs.Injector.
func (c *cutter) String() string { return "cutter" }

// MaybeError implements errorfs.Injector. It never gives an error.
func (c *cutter) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && c.ops.Add(1) == c.at {
		c.take(fmt.Sprint("before operation ", op.Kind, " on ", op.Path))
	}
	return nil
}

func (c *cutter) take(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	must := c.must() // before the clone: more may be there, less may not
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 60, 100}[c.rng.IntN(4)], RNG: c.rng}
	c.cuts = append(c.cuts, cut{c.mem.CrashClone(cfg), must, what})
}

// TestPowerLoss cuts the power at random operations of a busy store. Always loses nothing
// acknowledged; Interval nothing that was acknowledged before the last sync began; neither shows a
// changed block, a hole, or half a snapshot.
func TestPowerLoss(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			lost := 0
			for seed := range rounds.Of(8, 8) {
				for _, c := range liveAndCut(t, mode, uint64(seed)) {
					lost += reopenAfter(t, mode, c, seed)
				}
			}
			t.Logf("%d acknowledged blocks lost", lost)
			if mode == journal.Always && lost != 0 {
				t.Fatal("always lost acknowledged blocks")
			}
		})
	}
}

func liveAndCut(t *testing.T, mode journal.Mode, seed uint64) []cut {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var must atomic.Uint64
	c := &cutter{mem: memdisk.New(), rng: rand.New(rand.NewPCG(seed, 2)), at: 1 + rng.Int64N(700), must: must.Load}
	s := mustOpen(t, Config{Dir: "a/b", Mode: mode, FS: errorfs.Wrap(c.mem, c)})
	for i := uint64(1); i <= 150; i++ {
		mustWrite(t, s, i, i, rng.IntN(12000))
		if mode == journal.Always {
			must.Store(i)
		} else if rng.IntN(10) == 0 {
			s.syncAndMark()
			must.Store(i)
		}
		if i%70 == 0 {
			writeSnapshot(t, s, i, 5)
			must.Store(i)
		}
	}
	c.take("at the end")
	mustClose(t, s)
	must.Store(150)
	c.take("after Close")
	return c.cuts
}

// reopenAfter opens what a cut left, and returns how many acknowledged blocks are missing.
func reopenAfter(t *testing.T, mode journal.Mode, c cut, seed int) int {
	t.Helper()
	s, err := Open(quiet(Config{Dir: "a/b", Mode: mode, FS: c.fs}))
	if err != nil {
		t.Fatalf("seed %d, cut %s: %v", seed, c.what, err)
	}
	defer mustClose(t, s)
	last, err := prefixOf(s)
	if err != nil {
		t.Fatalf("seed %d, cut %s: %v", seed, c.what, err)
	}
	list, err := s.ListSnapshots()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range list {
		if err := checkSnapshot(s, g, 5); err != nil {
			t.Fatalf("seed %d, cut %s: %v", seed, c.what, err)
		}
	}
	if last >= 71 && len(list) == 0 && c.must >= 71 {
		t.Fatalf("seed %d, cut %s: blocks up to %d and no generation", seed, c.what, last)
	}
	mustWrite(t, s, last+1, last+1, 100)
	if last < c.must {
		t.Errorf("seed %d, cut %s: blocks up to %d, want %d", seed, c.what, last, c.must)
		return int(c.must - last)
	}
	return 0
}

func writeSnapshot(t testing.TB, s *Store, g uint64, chunks int) {
	t.Helper()
	w, err := s.BeginSnapshot(g)
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunks {
		if err := w.Write(blockOf(g<<8+uint64(i), 20000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit([]byte("meta")); err != nil {
		t.Fatal(err)
	}
}

func checkSnapshot(s *Store, g journal.Snapshot, chunks int) error {
	n := 0
	err := s.ReadSnapshot(g.Number, func(chunk []byte) error {
		n++
		return checkBlock(g.Number<<8+uint64(n-1), chunk)
	})
	if err == nil && (n != chunks || string(g.Meta) != "meta") {
		err = fmt.Errorf("generation %d: %d chunks, meta %q", g.Number, n, g.Meta)
	}
	return err
}

// TestSyncedInEveryMode: what the contract calls synced is there after a power loss that leaves
// nothing else.
func TestSyncedInEveryMode(t *testing.T) {
	for _, mode := range bothModes {
		percent := 0
		f := func(name string, do func(s *Store) error, want journal.Index) *Store {
			t.Helper()
			mem := vfs.NewCrashableMem()
			s := mustOpen(t, Config{Dir: "d", Mode: mode, FS: mem})
			mustWrite(t, s, 1, 10, 100)
			s.syncAndMark()
			mustWrite(t, s, 11, 20, 100)
			if err := do(s); err != nil {
				t.Fatal(name, err)
			}
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
			mustClose(t, s)
			s = mustOpen(t, Config{Dir: "d", Mode: mode, FS: left})
			if got, err := prefixOf(s); err != nil || got != want {
				t.Fatalf("%s in mode %s: blocks up to %d (%v), want %d", name, mode, got, err, want)
			}
			return s
		}
		mustClose(t, f("sync", (*Store).Sync, 20))
		mustClose(t, f("cut", func(s *Store) error { return s.CutBlocks(5) }, 4))
		percent = 100
		mustClose(t, f("cut, and nothing lost", func(s *Store) error { return s.CutBlocks(5) }, 4))
		percent = 0
		s := f("generation", func(s *Store) error { writeSnapshot(t, s, 9, 5); return nil }, 20)
		list, err := s.ListSnapshots()
		if err != nil || len(list) != 1 || checkSnapshot(s, list[0], 5) != nil {
			t.Fatal(list, err)
		}
		mustClose(t, s)
	}
}

// TestSnapshotIsReadFromFiles: verifying it would prove nothing if it came from memory.
func TestSnapshotIsReadFromFiles(t *testing.T) {
	s := mustOpen(t, Config{Dir: "d", FS: vfs.NewMem()})
	defer mustClose(t, s)
	w, err := s.BeginSnapshot(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Write(blockOf(1, 20000)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Stats().TableBytes; got != 0 {
		t.Fatalf("%d bytes in files before Commit", got)
	}
	if err := w.Commit(nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().TableBytes; got < 3*20000 {
		t.Fatalf("%d bytes in files after Commit", got)
	}
}

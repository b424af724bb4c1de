package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// interrupted is the directory of a process that died while it wrote a snapshot.
func interrupted(t *testing.T, mode journal.Mode) string {
	t.Helper()
	s := mustOwn(t, Config{Dir: t.TempDir(), Mode: mode, SnapshotRate: -1})
	defer mustClose(t, s)
	mustWrite(t, s, 1, 20, 300)
	writeSnapshot(t, s, 1, 5)
	if _, err := tryLarge(s, 2); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.IncomingBytes < chunkFileBytes || st.DiskBytes < st.IncomingBytes {
		t.Fatalf("%d bytes incoming, %d in all", st.IncomingBytes, st.DiskBytes)
	}
	dir := copyDir(t, s.cfg.Dir)
	if names, err := os.ReadDir(filepath.Join(dir, incomingDir)); err != nil || len(names) != 2 {
		t.Fatalf("%v %v, want 2 files", names, err)
	}
	return dir
}

// TestLeftovers: what an interrupted snapshot left is listed by an inspection, left out of a copy,
// and gone after an opening.
func TestLeftovers(t *testing.T) {
	for _, mode := range bothModes {
		dir := interrupted(t, mode)
		v, err := Inspect(Config{Dir: dir})
		if err != nil || v.Damage() != nil {
			t.Fatal(err, v.Damage())
		}
		files, err := v.Files()
		isIncoming := func(f FileInfo) bool { return f.Kind == fileIncoming }
		if err != nil || !slices.ContainsFunc(files, isIncoming) {
			t.Errorf("files %v (%v)", files, err)
		}
		if list, err := v.ListSnapshots(); err != nil || len(list) != 1 {
			t.Errorf("generations %v (%v)", list, err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		dest := filepath.Join(t.TempDir(), "copy")
		if err := Copy(t.Context(), Config{Dir: dir}, dest, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dest, incomingDir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the copy has what is incoming: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, incomingDir)); err != nil {
			t.Errorf("an inspection removed it: %v", err)
		}
		for _, dir := range []string{dir, dest} {
			s := mustOwn(t, Config{Dir: dir, Mode: mode})
			if _, err := os.Stat(s.incomingPath()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is there after an opening: %v", err)
			}
			wantPrefix(t, s, 20)
			writeSnapshot(t, s, 2, 5)
			wantSnapshots(t, s, 5, 1, 2)
			mustClose(t, s)
		}
	}
}

// TestSecondNameOfATable: a crash after the files were taken over leaves them under both names.
// Only one goes.
func TestSecondNameOfATable(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	s := mustOwn(t, cfg)
	writeSnapshot(t, s, 1, 5)
	mustClose(t, s)
	second := filepath.Join(cfg.Dir, incomingDir, "000000.chunks")
	err := os.MkdirAll(filepath.Dir(second), 0o700)
	if err = errors.Join(err, os.Link(newest(t, cfg.Dir, ".sst"), second)); err != nil {
		t.Fatal(err)
	}
	s = mustOwn(t, cfg)
	wantSnapshots(t, s, 5, 1)
	mustClose(t, s)
}

// TestLeftoversThatStay: they keep no one from working with the journal; only a snapshot states
// that it cannot be written.
func TestLeftoversThatStay(t *testing.T) {
	dir := interrupted(t, journal.Always)
	var stay atomic.Bool
	stay.Store(true)
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if filepath.Base(op.Path) == incomingDir && op.Kind == errorfs.OpRemoveAll && stay.Load() {
			return syscall.EPERM
		}
		return nil
	}))
	var book kit.Text
	s := mustOwn(t, Config{Dir: dir, FS: fs, Logger: book.Logger()})
	defer mustClose(t, s)
	if !book.Has("unfinished snapshot") {
		t.Error("nobody was told")
	}
	wantPrefix(t, s, 20)
	mustWrite(t, s, 21, 25, 100)
	if _, err := s.BeginSnapshot(2); !errors.Is(err, syscall.EPERM) {
		t.Errorf("begin: %v", err)
	}
	mustWrite(t, s, 26, 30, 100)
	stay.Store(false)
	writeSnapshot(t, s, 2, 5)
	wantSnapshots(t, s, 5, 1, 2)
}

// TestPowerLossInASnapshot cuts the power at random operations while a snapshot is written and
// taken over, beside blocks. Afterwards it is there as a whole or not at all; once committed it is
// there; and nothing else of it is.
func TestPowerLossInASnapshot(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			whole, all := 0, 0
			_, ops := cutInASnapshot(t, mode, 0, 0)
			for seed := range rounds.Of(1, 1) {
				rng := rand.New(rand.NewPCG(uint64(seed), 3))
				at := 1 + rng.Int64N(ops)
				if seed%2 == 1 {
					at = ops - rng.Int64N(min(ops, 14)) // at its end most can go wrong
				}
				cuts, _ := cutInASnapshot(t, mode, uint64(seed), at)
				all += len(cuts)
				for _, c := range cuts {
					whole += afterCut(t, mode, c, fmt.Sprintf("seed %d, cut %d of %d %s", seed, at, ops, c.what))
				}
			}
			t.Logf("%d of %d cuts left the generation", whole, all)
		})
	}
}

// cutInASnapshot writes snapshot 2 after snapshot 1, with the power cut at one of its operations
// and after it. What must be there is counted as 100 for each snapshot and 1 for each synced block.
func cutInASnapshot(t *testing.T, mode journal.Mode, seed uint64, at int64) (cuts []cut, ops int64) {
	t.Helper()
	var must atomic.Uint64
	c := &cutter{mem: memdisk.New(), rng: rand.New(rand.NewPCG(seed, 4)), must: must.Load}
	s := mustOwn(t, Config{Dir: "d", Mode: mode, FS: errorfs.Wrap(c.mem, c), SnapshotRate: -1})
	mustWrite(t, s, 1, 9, 100)
	writeLarge(t, s, 1)
	must.Store(109)
	before := c.ops.Load()
	c.at = before + at
	w, err := tryLarge(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, 10, 19, 100)
	if mode == journal.Always {
		must.Store(119)
	}
	if err := w.Commit([]byte("meta")); err != nil {
		t.Fatal(err)
	}
	must.Store(219)
	ops = c.ops.Load() - before
	if at > 0 {
		c.take("after it")
	}
	if err := s.DropSnapshot(1); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	return c.cuts, ops
}

// afterCut opens what a cut left, and returns 1 if the snapshot is there.
func afterCut(t *testing.T, mode journal.Mode, c cut, name string) (whole int) {
	t.Helper()
	s, err := Open(quiet(Config{Dir: "d", Mode: mode, FS: c.fs}))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer mustClose(t, s)
	last, err := prefixOf(s)
	if err != nil || last < c.must%100 {
		t.Fatalf("%s: blocks up to %d (%v), want %d", name, last, err, c.must%100)
	}
	list, err := s.ListSnapshots()
	if err != nil || uint64(len(list)) < c.must/100 {
		t.Fatalf("%s: generations %v (%v), want %d", name, list, err, c.must/100)
	}
	if len(list) == 2 && last < 19 {
		t.Fatalf("%s: the generation without the blocks before it, which end at %d", name, last)
	}
	if err = s.own(); err != nil { // the first change sweeps what was incoming
		t.Fatalf("%s: %v", name, err)
	}
	wantSnapshots(t, s, largeChunks, []uint64{1, 2}[:len(list)]...)
	if len(list) == 1 {
		writeLarge(t, s, 2)
		wantSnapshots(t, s, largeChunks, 1, 2)
	}
	return len(list) - 1
}

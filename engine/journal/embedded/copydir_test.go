package embedded

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

func TestCopyOpensLikeTheOriginal(t *testing.T) {
	for _, mode := range bothModes {
		dir, dest := crashed(t, mode), filepath.Join(t.TempDir(), "a", "b")
		before, told := fingerprint(t, dir), int64(0)
		err := Copy(t.Context(), Config{Dir: dir}, dest, func(done, total int64) {
			if done < told || done > total {
				t.Errorf("%d of %d after %d", done, total, told)
			}
			told = done
		})
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, before, fingerprint(t, dir))
		wantSame(t, before, fingerprint(t, dest))
		if told == 0 {
			t.Error("nothing was told")
		}
		s := mustOpen(t, Config{Dir: dest, Mode: mode})
		wantPrefix(t, s, damageBlocks)
		mustClose(t, s)
	}
}

func TestCopyRefuses(t *testing.T) {
	dir := crashed(t, journal.Always)
	there := t.TempDir()
	if err := Copy(t.Context(), Config{Dir: dir}, there, nil); !errors.Is(err, ErrThere) {
		t.Errorf("over a directory: %v", err)
	}
	if err := Copy(t.Context(), Config{Dir: there}, there+"/x", nil); !errors.Is(err, ErrNoJournal) {
		t.Errorf("of nothing: %v", err)
	}
	s := mustOpen(t, Config{Dir: dir})
	if err := Copy(t.Context(), Config{Dir: dir}, there+"/x", nil); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("beside a server: %v", err)
	}
	mustClose(t, s)
	if _, err := os.Stat(there + "/x"); err == nil {
		t.Error("something was made")
	}
}

func TestCopyThatEndsEarlyLeavesNothing(t *testing.T) {
	dir, dest := crashed(t, journal.Always), filepath.Join(t.TempDir(), "x")
	ctx, cancel := context.WithCancel(t.Context())
	err := Copy(ctx, Config{Dir: dir}, dest, func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := os.Stat(dest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part was left: %v", err)
	}
	if s, err := Open(quiet(Config{Dir: dir})); err != nil {
		t.Errorf("the original is not free: %v", err)
	} else {
		mustClose(t, s)
	}
}

// TestHalfACopyIsRefused: the stamp comes last, so that what a crash leaves is not taken for a
// journal.
func TestHalfACopyIsRefused(t *testing.T) {
	dir := crashed(t, journal.Always)
	if err := os.Remove(filepath.Join(dir, stampName)); err != nil {
		t.Fatal(err)
	}
	var damage *journal.DamageError
	if _, err := Open(quiet(Config{Dir: dir})); !errors.As(err, &damage) {
		t.Errorf("open: %v", err)
	}
	if _, err := Inspect(Config{Dir: dir}); !errors.As(err, &damage) {
		t.Errorf("inspect: %v", err)
	}
}

// TestRowsWithoutAJournal: rows do not make a directory a journal. Its stamp is lost, and a new
// journal would not fit them.
func TestRowsWithoutAJournal(t *testing.T) {
	dir := t.TempDir()
	addRows(t, dir)
	var damage *journal.DamageError
	if _, err := Open(quiet(Config{Dir: dir})); !errors.As(err, &damage) {
		t.Errorf("open: %v", err)
	}
	if _, err := Inspect(Config{Dir: dir}); !errors.Is(err, ErrNoJournal) {
		t.Errorf("inspect: %v", err)
	}
}

// late is a file system on which another process is faster: it runs when dir is about to be made.
type late struct {
	vfs.FS
	dir string
	run func()
}

// MkdirAll implements vfs.FS.
func (l *late) MkdirAll(dir string, perm os.FileMode) error {
	if dir == l.dir {
		l.run()
	}
	return l.FS.MkdirAll(dir, perm)
}

// TestTwoFillOneDirectory: of two that make one directory at once, one does, and the other changes
// nothing in it.
func TestTwoFillOneDirectory(t *testing.T) {
	dir, other := crashed(t, journal.Always), crashed(t, journal.Interval)
	copied := func(dest string) func() {
		return func() {
			if err := Copy(t.Context(), Config{Dir: other}, dest, nil); err != nil {
				t.Error(err)
			}
		}
	}
	f := func(what string, run func(cfg Config, dest string) error) {
		t.Helper()
		dest := filepath.Join(t.TempDir(), "x")
		err := run(Config{Dir: dir, FS: &late{FS: disk, dir: dest, run: copied(dest)}}, dest)
		if !errors.Is(err, ErrThere) || errors.Is(err, journal.ErrLocked) {
			t.Errorf("%s, when the other is done: %v", what, err)
		}
		wantSame(t, fingerprint(t, other), fingerprint(t, dest))

		dest = filepath.Join(t.TempDir(), "x")
		var s *Store
		err = run(Config{Dir: dir, FS: &late{FS: disk, dir: dest, run: func() { s = mustOpen(t, Config{Dir: dest}) }}}, dest)
		if !errors.Is(err, ErrThere) || errors.Is(err, journal.ErrLocked) {
			t.Errorf("%s, while the other is at work: %v", what, err)
		}
		mustWrite(t, s, 1, 3, 100)
		mustClose(t, s)
		s = mustOpen(t, Config{Dir: dest})
		wantPrefix(t, s, 3)
		mustClose(t, s)
	}
	f("copy", func(cfg Config, dest string) error { return Copy(t.Context(), cfg, dest, nil) })
	f("restore", func(cfg Config, dest string) error { return Restore(t.Context(), cfg, dest, nil) })
}

// TestBuild: what was built takes the place of a directory that is missing or empty, and it is
// locked from the beginning.
func TestBuild(t *testing.T) {
	build := func(at string) error {
		s := mustOpen(t, Config{Dir: at})
		mustWrite(t, s, 1, 9, 100)
		addRows(t, at)
		return s.Close()
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "a", "b"), t.TempDir()} {
		err := Build(dir, func(at string) error {
			if err := Build(dir, build); !errors.Is(err, journal.ErrLocked) && !errors.Is(err, ErrNotEmpty) {
				t.Errorf("two at once: %v", err)
			}
			if _, err := Open(quiet(Config{Dir: dir})); !errors.Is(err, journal.ErrLocked) {
				t.Errorf("a server meanwhile: %v", err)
			}
			return build(at)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, buildingDir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the place is left: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, RowsDir, "ROWS")); err != nil {
			t.Error(err)
		}
		s := mustOpen(t, Config{Dir: dir})
		wantPrefix(t, s, 9)
		if err := Build(dir, build); !errors.Is(err, journal.ErrLocked) || !errors.Is(err, ErrNotEmpty) {
			t.Errorf("over a store in use: %v", err)
		}
		mustClose(t, s)
		if err := Build(dir, build); errors.Is(err, journal.ErrLocked) || !errors.Is(err, ErrNotEmpty) {
			t.Errorf("over a store: %v", err)
		}
	}
	empty, broken := t.TempDir(), errors.New("broken")
	half := func(at string) error { return errors.Join(build(at), broken) }
	if err := Build(empty, half); !errors.Is(err, broken) {
		t.Error(err)
	}
	if names, _ := os.ReadDir(empty); len(names) != 0 {
		t.Errorf("left %v", names)
	}
	missing := filepath.Join(empty, "missing")
	if err := Build(missing, half); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
	if err := build(filepath.Join(empty, buildingDir)); err != nil { // what a crash leaves
		t.Fatal(err)
	}
	if _, err := Open(quiet(Config{Dir: empty})); !errors.As(err, new(*journal.DamageError)) {
		t.Errorf("a server on what a crash left: %v", err)
	}
}

// TestPowerLossInABuild cuts the power while what was built is moved to its place: it is refused,
// or it is whole.
func TestPowerLossInABuild(t *testing.T) {
	half, whole := 0, 0
	for seed := range uint64(rounds.Pick(16, rounds.Of(16, 60))) {
		mode := bothModes[seed%2]
		c := &cutter{mem: memdisk.New(), rng: rand.New(rand.NewPCG(seed, 5)), must: func() journal.Index { return 30 }}
		d := target{to: errorfs.Wrap(c.mem, c), dest: "a/x"}
		err := d.within(func() error {
			const at = "a/x/" + buildingDir
			s := mustOpen(t, Config{Dir: at, Mode: mode, FS: c.mem})
			mustWrite(t, s, 1, 30, 900)
			mustClose(t, s)
			c.at = c.ops.Load() + 1 + rand.New(rand.NewPCG(seed, 6)).Int64N(14)
			return d.adopt(at)
		})
		if err != nil {
			t.Fatal(err)
		}
		c.take("after it")
		for _, cut := range c.cuts {
			stamped, _ := checkStamp(cut.fs, "a/x", mode)
			s, err := Open(quiet(Config{Dir: "a/x", Mode: mode, FS: cut.fs}))
			if err != nil && !stamped {
				half++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, cut %s: %v", seed, cut.what, err)
			}
			wantPrefix(t, s, 30)
			whole++
			mustClose(t, s)
		}
	}
	if half == 0 || whole == 0 {
		t.Errorf("%d cuts left half a journal, %d a whole one", half, whole)
	}
}

// sized is a file system of two disks: one below "a", the other one elsewhere.
type sized struct {
	vfs.FS
	a, b vfs.DiskUsage
	err  error
}

// GetDiskUsage implements vfs.FS.
func (s *sized) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if _, err := s.FS.Stat(path); err != nil {
		return vfs.DiskUsage{}, err
	}
	if strings.HasPrefix(path, "a") {
		return s.a, s.err
	}
	return s.b, s.err
}

// TestLeavesRoom: the least room for a copy to the disk of a server, one byte less, and a copy to
// another disk.
func TestLeavesRoom(t *testing.T) {
	mem := vfs.NewMem()
	s := mustOpen(t, Config{Dir: "a/store", FS: mem})
	mustWrite(t, s, 1, 30, 900)
	mustClose(t, s)
	files, err := (&holding{fs: readFS{mem}, dir: "a/store"}).contents()
	if err != nil {
		t.Fatal(err)
	}
	need := uint64(MinFreeBytes)
	for _, f := range files {
		need += uint64(f.Bytes)
	}
	f := func(what, dest string, fsys sized, want error) {
		t.Helper()
		fsys.FS = mem
		if err := leavesRoom(&fsys, "a/store", dest); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	least, less := vfs.DiskUsage{TotalBytes: 9, AvailBytes: need}, vfs.DiskUsage{TotalBytes: 9, AvailBytes: need - 1}
	f("the least room", "a/x/y", sized{a: least}, nil)
	f("a byte less", "a/x/y", sized{a: less}, ErrFull)
	f("a byte less, beside", "a", sized{a: less}, ErrFull)
	f("another disk", "x", sized{a: less, b: vfs.DiskUsage{TotalBytes: 8}}, nil)
	f("not known", "a/x", sized{a: less, err: errors.New("not known")}, nil)
}

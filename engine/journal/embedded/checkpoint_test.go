package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// slowRead is a file system on which, while it is armed, a log grows when a reader has come to
// where it ended at the open.
type slowRead struct {
	vfs.FS
	s     *Store
	armed atomic.Bool
	write func()
	grown int
}

// over reports whether the log is written over an older one, which is longer.
func (r *slowRead) over(t *testing.T) bool {
	names, err := filepath.Glob(filepath.Join(r.s.cfg.Dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		tail, growing := r.s.fs.written(name)
		info, err := os.Stat(name)
		return growing && err == nil && info.Size() > tail+1<<20
	})
}

// Open implements vfs.FS.
func (r *slowRead) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := r.FS.Open(name, opts...)
	if err != nil || !r.armed.Load() {
		return f, err
	}
	if tail, growing := r.s.fs.written(name); growing {
		return &slowFile{File: f, r: r, left: tail}, nil
	}
	return f, nil
}

type slowFile struct {
	vfs.File
	r    *slowRead
	left int64 // until the end that the file had
}

// Read implements vfs.File.
func (f *slowFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if before := f.left; before > 0 {
		if f.left -= int64(n); f.left <= 0 {
			f.r.grown++
			f.r.write()
		}
	}
	return n, err
}

// TestCheckpointBesideWrites: the log, which is written over an older one, grows while it is
// copied. The checkpoint holds all that was acknowledged before, it is whole, and it is a store
// like any other. Writing goes on while it is made: the test would not end otherwise.
func TestCheckpointBesideWrites(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			dir, at := t.TempDir(), t.TempDir()
			fs := &slowRead{FS: disk}
			s := mustOpen(t, Config{Dir: dir, Mode: mode, FS: fs})
			fs.s = s
			next := journal.Index(1)
			fs.write = func() {
				mustWrite(t, s, next, next+39, 3000)
				next += 40
			}
			for !fs.over(t) {
				mustWrite(t, s, next, next+9, 200<<10)
				next += 10
			}
			for i := range rounds.Pick(4, rounds.Of(4, 8)) {
				fs.write()
				if i == 2 {
					writeSnapshot(t, s, 7, 5)
				}
				acked, grown := next-1, fs.grown
				to := filepath.Join(at, string(rune('a'+i)))
				fs.armed.Store(true)
				err := s.Checkpoint(to, func(rows string) error {
					fs.write()
					addRows(t, filepath.Dir(rows))
					return os.Rename(filepath.Join(filepath.Dir(rows), RowsDir), rows)
				})
				fs.armed.Store(false)
				if err != nil {
					t.Fatal(err)
				}
				if written := next - 1 - acked; fs.grown != grown+1 || written != 80 {
					t.Errorf("the log has grown %d times under its reader, %d blocks were written meanwhile", fs.grown-grown, written)
				}
				wantWhole(t, to, mode, acked+40)
			}
			mustClose(t, s)
			s = mustOpen(t, Config{Dir: dir, Mode: mode})
			wantPrefix(t, s, next-1)
			mustClose(t, s)
		})
	}
}

// wantWhole opens a checkpoint, and a copy of it, which must hold all blocks up to acked.
func wantWhole(t *testing.T, dir string, mode journal.Mode, acked journal.Index) {
	t.Helper()
	dest := filepath.Join(t.TempDir(), "copy")
	if err := Copy(t.Context(), Config{Dir: dir}, dest, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dest, RowsDir, "ROWS")); err != nil {
		t.Error(err)
	}
	v, err := Inspect(Config{Dir: dest})
	if err != nil {
		t.Fatal(err)
	}
	if v.Damage() != nil || len(v.LostMarks()) > 0 || v.Mode() != mode {
		t.Errorf("damage %v, lost %v, mode %v", v.Damage(), v.LostMarks(), v.Mode())
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, Config{Dir: dest, Mode: mode})
	defer mustClose(t, s)
	if got, err := prefixOf(s); err != nil || got < acked {
		t.Fatalf("up to %d (%v), acknowledged %d", got, err, acked)
	}
	last, err := prefixOf(s)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, last+1, last+3, 100)
}

func TestCheckpointRefuses(t *testing.T) {
	dir, at := t.TempDir(), t.TempDir()
	free := atomic.Uint64{}
	free.Store(1 << 40)
	s := mustOpen(t, Config{Dir: dir, FreeBytes: func() (uint64, error) { return free.Load(), nil }})
	mustWrite(t, s, 1, 10, 100)
	if err := s.Checkpoint(at, nil); !errors.Is(err, ErrThere) {
		t.Errorf("over a directory: %v", err)
	}
	to, broken := filepath.Join(at, "x"), errors.New("broken")
	err := s.Checkpoint(to, func(rows string) error { return errors.Join(os.Mkdir(rows, 0o700), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("an error of the rows: %v", err)
	}
	if names, _ := os.ReadDir(at); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
	if err := s.Checkpoint(to, nil); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	free.Store(0)
	s.space.look(time.Now())
	if err := s.Checkpoint(filepath.Join(at, "y"), nil); !errors.Is(err, ErrFull) {
		t.Errorf("on a full disk: %v", err)
	}
	mustClose(t, s)
	if err := s.Checkpoint(filepath.Join(at, "z"), nil); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestPowerLossInACheckpoint cuts the power at each kind of moment of a checkpoint. Half a
// checkpoint is never taken for a whole one, and the original has lost nothing.
func TestPowerLossInACheckpoint(t *testing.T) {
	half, whole := 0, 0
	for seed := range uint64(rounds.Pick(12, rounds.Of(12, 40))) {
		mode := bothModes[seed%2]
		c := &cutter{mem: memdisk.New(), rng: rand.New(rand.NewPCG(seed, 2)), must: func() journal.Index { return 60 }}
		var ops, at atomic.Int64
		s := mustOpen(t, Config{Dir: "a/b", Mode: mode, FS: errorfs.Wrap(c.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && ops.Add(1) == at.Load() {
				c.take(fmt.Sprint("before operation ", op.Kind, " on ", op.Path))
			}
			return nil
		}))})
		mustWrite(t, s, 1, 30, 9000)
		writeSnapshot(t, s, 1, 5)
		mustWrite(t, s, 31, 60, 9000)
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		at.Store(ops.Load() + 1 + rand.New(rand.NewPCG(seed, 3)).Int64N(60))
		if err := s.Checkpoint("a/copy", nil); err != nil {
			t.Fatal(err)
		}
		c.take("after it")
		mustClose(t, s)
		for _, cut := range c.cuts {
			reopenAfter(t, mode, cut, int(seed))
			stamped, _ := checkStamp(cut.fs, "a/copy", mode)
			made, err := Open(quiet(Config{Dir: "a/copy", Mode: mode, FS: cut.fs}))
			if err != nil && !stamped {
				half++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, cut %s: it has its stamp, and does not open: %v", seed, cut.what, err)
			}
			want := journal.Index(0) // nothing was made yet, and Open makes a new one
			if stamped {
				want = 60
				whole++
			}
			wantPrefix(t, made, want)
			mustClose(t, made)
		}
	}
	if half == 0 || whole == 0 {
		t.Errorf("%d cuts left half a checkpoint, %d a whole one", half, whole)
	}
}

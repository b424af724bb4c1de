package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
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

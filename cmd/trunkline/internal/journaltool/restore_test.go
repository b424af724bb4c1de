package journaltool

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

// TestArchiveAndRestore: a backup in one file, or in a directory, becomes a store like the
// original.
func TestArchiveAndRestore(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		dir, at := made(t, plan{mode: mode, groups: 6, snapshots: []int{1, 3}}), t.TempDir()
		file := filepath.Join(at, "backup.tar")
		n, sum, err := Archive(t.Context(), dir, file, nothing{})
		must(t, err)
		b, err := os.ReadFile(file)
		must(t, err)
		if n == 0 || sum != sha256.Sum256(b) || !IsArchive(file) || IsArchive(dir) {
			t.Errorf("%d bytes, %x", n, sum)
		}
		if _, _, err = Archive(t.Context(), dir, file, nothing{}); !errors.Is(err, embedded.ErrThere) {
			t.Errorf("over a file: %v", err)
		}
		for i, from := range []string{file, dir} {
			to := filepath.Join(at, string(rune('a'+i)))
			copied, err := Restore(t.Context(), from, to, nothing{})
			must(t, err)
			if r := verified(t, to); copied == 0 || !r.Sound || r.LastIndex != 67 || len(r.Snapshots) != 2 {
				t.Errorf("%d bytes of %s: %+v", copied, from, r)
			}
			if _, err = Restore(t.Context(), from, to, nothing{}); !errors.Is(err, embedded.ErrNotEmpty) {
				t.Errorf("over a store: %v", err)
			}
		}
		if names, _ := os.ReadDir(at); len(names) != 3 {
			t.Errorf("left %v", names)
		}
	}
}

// TestHalfAnArchiveIsNoFile: a file has its name when it is whole.
func TestHalfAnArchiveIsNoFile(t *testing.T) {
	dir, at := made(t, plan{groups: 6, snapshots: []int{1, 3}}), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := Archive(ctx, dir, filepath.Join(at, "x.tar"), &canceler{n: 2, cancel: cancel})
	if names, _ := os.ReadDir(at); !errors.Is(err, context.Canceled) || len(names) != 0 {
		t.Errorf("%v, left %v", err, names)
	}
	came := filepath.Join(at, "came.tar")
	_, _, err = Archive(t.Context(), dir, came, comes{came})
	if b, also := os.ReadFile(came); !errors.Is(err, embedded.ErrThere) || string(b) != "another" || also != nil {
		t.Errorf("over a file that came meanwhile: %v, %q, %v", err, b, also)
	}
	if names, _ := os.ReadDir(at); len(names) != 1 {
		t.Errorf("left %v", names)
	}
	if _, _, err = Archive(t.Context(), dir, filepath.Join(dir, "x.tar"), nothing{}); !errors.Is(err, ErrInside) {
		t.Errorf("inside: %v", err)
	}
	_, err = Restore(t.Context(), filepath.Join(at, "none.tar"), filepath.Join(at, "x"), nothing{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// comes is a Meter that makes a file.
type comes struct{ path string }

func (comes) Begin(string, string, uint64) {}

func (c comes) Set(uint64) { _ = os.WriteFile(c.path, []byte("another"), 0o600) }

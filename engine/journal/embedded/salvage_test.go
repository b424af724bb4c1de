package embedded

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
)

// TestAcceptedLoss: the refusal of a damaged log names the first index that is lost; accepting it
// keeps everything before, and the log as it was; without the acceptance nothing changes.
func TestAcceptedLoss(t *testing.T) {
	dir := crashed(t, journal.Always)
	path := newest(t, dir, ".log")
	edit(t, path, func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b })
	bad, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(dir, "999999.log") // as if the log had gone on in another file
	if err := os.WriteFile(later, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	var lost journal.Index
	for range 2 {
		_, err := Open(quiet(Config{Dir: dir}))
		var damage *journal.DamageError
		if !errors.As(err, &damage) || damage.Where != path || damage.Index < 100 || damage.Index >= damageBlocks-50 {
			t.Fatalf("got %v", err)
		}
		lost = damage.Index
	}
	s := mustOpen(t, Config{Dir: dir, AcceptLoss: true})
	wantPrefix(t, s, lost-1)
	mustWrite(t, s, lost, lost+5, 100)
	mustClose(t, s)
	s = mustOpen(t, Config{Dir: dir})
	wantPrefix(t, s, lost+5)
	mustClose(t, s)
	for _, name := range []string{path, later} {
		kept, err := os.ReadFile(filepath.Join(dir, asideDir, filepath.Base(name)))
		if err != nil || !bytes.Equal(kept, bad) {
			t.Errorf("%s is not kept as it was: %v", name, err)
		}
	}
}

// TestAcceptedLossOfASortedFile: that one is not mended, and stays refused.
func TestAcceptedLossOfASortedFile(t *testing.T) {
	s := mustOwn(t, Config{Dir: t.TempDir()})
	mustWrite(t, s, 1, 9, 100)
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	dir := copyDir(t, s.cfg.Dir)
	mustClose(t, s)
	if err := os.Remove(newest(t, dir, ".sst")); err != nil {
		t.Fatal(err)
	}
	var damage *journal.DamageError
	if _, err := Open(quiet(Config{Dir: dir, AcceptLoss: true})); !errors.As(err, &damage) {
		t.Fatalf("got %v, want damage", err)
	}
}

func TestIsLater(t *testing.T) {
	f := func(name string, want bool) {
		t.Helper()
		if isLater(name, "000012.log") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	f("000013.log", true)
	f("1000000.log", true)
	f("000012.log", false)
	f("000011.log", false)
	f("000013.sst", false)
	f("x", false)
}

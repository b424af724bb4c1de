package embedded

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
)

// tombstones is a closed store with two SSTables of one size that hold nothing but deletions;
// it returns them too.
func tombstones(t *testing.T, mode journal.Mode) (dir string, names []string) {
	t.Helper()
	s := mustOpen(t, Config{Dir: t.TempDir(), Mode: mode})
	sorted := func(f func() error) (made []string) {
		before := inventory(t, s.cfg.Dir)
		if err := errors.Join(f(), s.flush()); err != nil {
			t.Fatal(err)
		}
		for name := range inventory(t, s.cfg.Dir) {
			if _, ok := before[name]; !ok && filepath.Ext(name) == ".sst" {
				made = append(made, name)
			}
		}
		return made
	}
	for first := journal.Index(1); first < 40; first += 10 {
		sorted(func() error { mustWrite(t, s, first, first+9, 1000); return nil })
	}
	for _, upTo := range []journal.Index{5, 15} {
		names = append(names, sorted(func() error { return s.DropBlocks(upTo) })...)
	}
	mustClose(t, s)
	return s.cfg.Dir, names
}

// TestSwappedTombstones: pebble panics in the background on two such files that were exchanged. A
// start refuses them, and an inspection finds them.
func TestSwappedTombstones(t *testing.T) {
	for _, mode := range bothModes {
		dir, names := tombstones(t, mode)
		if len(names) != 2 {
			t.Fatal("want two files of deletions, got", names)
		}
		a, errA := os.Stat(filepath.Join(dir, names[0]))
		b, errB := os.Stat(filepath.Join(dir, names[1]))
		if errors.Join(errA, errB) != nil || a.Size() != b.Size() {
			t.Fatal("want two files of one size:", a, b, errA, errB)
		}
		s := mustOwn(t, Config{Dir: copyDir(t, dir), Mode: mode})
		mustClose(t, s)
		if err := swap(dir, names[0], names[1]); err != nil {
			t.Fatal(err)
		}
		before := inventory(t, dir)
		var damage *journal.DamageError
		if s, err := Open(quiet(Config{Dir: dir, Mode: mode})); !errors.As(err, &damage) {
			t.Errorf("%s: opened: %v", mode, err)
			if err == nil {
				mustWrite(t, s, 100, 100, 10)
				_ = s.flush()
				mustClose(t, s)
			}
		} else {
			t.Log(err)
		}
		v, err := Inspect(Config{Dir: dir})
		if err != nil || v.Damage() == nil || v.Mendable() {
			t.Errorf("%s: an inspection finds nothing: %v", mode, err)
		}
		if v != nil {
			err = v.Close()
		}
		if after := inventory(t, dir); err != nil || !maps.Equal(before, after) {
			t.Error(err, difference(before, after))
		}
	}
}

package embedded

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
)

// without removes all files of dir that fit the patterns.
func without(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) == 0 {
			t.Fatal("no file", pattern, err)
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestVanishedLogs: the loss of logs is damage, also where a mark is lost with them. The loss of
// one mark is logged and mended; that of both is damage, which an operator can accept.
func TestVanishedLogs(t *testing.T) {
	const warning = "lost one of its two marks"
	modes, crashed := inTurn(), copies(t)
	f := func(name string, closed bool, lost []string, refused, warned bool) {
		for _, mode := range modes() {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				dir := crashed(t, mode)
				if closed {
					mustClose(t, mustOwn(t, Config{Dir: dir, Mode: mode}))
				}
				without(t, dir, lost...)
				before := inventory(t, dir)
				v, err := Inspect(Config{Dir: dir})
				if err != nil || (v.Damage() != nil) != refused || warned && len(v.LostMarks()) != 1 {
					t.Fatal("an inspection finds", err)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				var book kit.Text
				s, err := Open(quiet(Config{Dir: dir, Mode: mode, Logger: book.Logger()}))
				var damage *journal.DamageError
				if errors.As(err, &damage) != refused || book.Has(warning) != warned {
					t.Fatalf("refused with %v, warned %v, want %v and %v", err, book.Has(warning), refused, warned)
				}
				if !refused {
					mended(t, s)
					return
				}
				if after := inventory(t, dir); !maps.Equal(before, after) {
					t.Error(difference(before, after))
				}
				s = mustOwn(t, Config{Dir: dir, Mode: mode, AcceptLoss: true})
				if last, err := prefixOf(s); err != nil || last+1 != damage.Index {
					t.Errorf("accepted: blocks up to %d, and damage at %d (%v)", last, damage.Index, err)
				}
				mended(t, s)
			})
		}
	}
	f("first mark of a killed store", false, []string{markName}, false, true)
	f("second mark, or a store of an earlier version", false, []string{secondMarkName}, false, true)
	f("logs of a killed store", false, []string{"*.log"}, true, false)
	f("logs and the first mark", false, []string{"*.log", markName}, true, false)
	f("logs and the second mark", false, []string{"*.log", secondMarkName}, true, false)
	f("both marks", false, []string{markName, secondMarkName}, true, false)
	f("all of it", false, []string{"*.log", markName, secondMarkName}, true, false)
	f("both marks of a closed store", true, []string{markName, secondMarkName}, true, false)
}

// mended closes a store that has its marks again, and opens it once more.
func mended(t *testing.T, s *Store) {
	t.Helper()
	last, err := prefixOf(s)
	if err == nil {
		err = s.WriteBlock(last+1, blockOf(last+1, 100))
	}
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	var book kit.Text
	s = mustOpen(t, Config{Dir: s.cfg.Dir, Mode: s.cfg.Mode, Logger: book.Logger()})
	wantPrefix(t, s, last+1)
	mustClose(t, s)
	if book.Has("mark") {
		t.Error("the marks are not as a start leaves them")
	}
}

// TestClosedStoreLacksItsTail: after an orderly close the whole log is marked, so that one that
// lacks its last file is refused, with either mark alone too.
func TestClosedStoreLacksItsTail(t *testing.T) {
	for _, lost := range [][]string{nil, {markName}, {secondMarkName}} {
		for _, mode := range bothModes {
			cfg := Config{Dir: t.TempDir(), Mode: mode}
			s := mustOpen(t, cfg)
			mustWrite(t, s, 1, 20, 3000)
			mustClose(t, s)
			without(t, cfg.Dir, append(lost, "*.log")...)
			var damage *journal.DamageError
			if _, err := Open(quiet(cfg)); !errors.As(err, &damage) {
				t.Errorf("%s without %q: %v", mode, lost, err)
			}
		}
	}
}

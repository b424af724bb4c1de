package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
)

const damageBlocks = 450 // of 3000 bytes: two SSTables and a log that is not sorted yet

// crashed is the directory of a store in use, as the death of its process leaves it. Blocks up to
// damageBlocks-50 are marked.
func crashed(t *testing.T, mode journal.Mode) string {
	t.Helper()
	s := mustOpen(t, Config{Dir: t.TempDir(), Mode: mode})
	defer s.Close()
	addRows(t, s.cfg.Dir)
	writeSnapshot(t, s, 1, 5)
	mustWrite(t, s, 1, damageBlocks-50, 3000)
	s.syncAndMark()
	mustWrite(t, s, damageBlocks-49, damageBlocks, 3000)
	return copyDir(t, s.cfg.Dir)
}

// copies returns a function that returns a copy of what crashed leaves in a mode, which is made
// once.
func copies(t *testing.T) func(t *testing.T, mode journal.Mode) string {
	made := map[journal.Mode]string{}
	return func(part *testing.T, mode journal.Mode) string {
		part.Helper()
		if made[mode] == "" {
			made[mode] = crashed(t, mode)
		}
		return copyDir(part, made[mode])
	}
}

// newest returns the file with the highest number that ends with suffix.
func newest(t *testing.T, dir, suffix string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		t.Fatal("no file", suffix, err)
	}
	return slices.Max(names)
}

// edit changes the bytes of a file.
func edit(t *testing.T, name string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// verdict opens a directory and reads everything: all, a prefix of at least the mark, or refused
// and where.
func verdict(t *testing.T, dir string, mode journal.Mode) (what, where string) {
	t.Helper()
	var book kit.Text
	s, err := Open(quiet(Config{Dir: dir, Mode: mode, Logger: book.Logger()}))
	var last journal.Index
	if err == nil {
		defer s.Close()
		last, err = prefixOf(s)
	}
	if err == nil {
		err = s.ReadSnapshot(1, func([]byte) error { return nil })
	}
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return "refused", strings.TrimPrefix(damage.Where, dir)
	case err != nil:
		return "error", err.Error()
	case last == damageBlocks:
		return "all", ""
	case last >= damageBlocks-50 && book.Has("read up to the last whole block"):
		return "prefix", ""
	}
	t.Errorf("blocks up to %d, and no word", last)
	return "bad", ""
}

func TestDamage(t *testing.T) {
	modes, crashed := inTurn(), copies(t)
	logFile := func(t *testing.T, dir string) string { return newest(t, dir, ".log") }
	table := func(t *testing.T, dir string) string { return newest(t, dir, ".sst") }
	flip := func(share float64) func(b []byte) []byte {
		return func(b []byte) []byte { b[int(share*float64(len(b)-1))] ^= 0x10; return b }
	}
	hole := func(b []byte) []byte { clear(b[len(b)/3 : len(b)/3+4096]); return b }
	gone := func(t *testing.T, name string) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	f := func(name string, file func(*testing.T, string) string, change func([]byte) []byte, want string) {
		for _, mode := range modes() {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				dir := crashed(t, mode)
				path := file(t, dir)
				if change == nil {
					gone(t, path)
				} else {
					edit(t, path, change)
				}
				got, where := verdict(t, dir, mode)
				if got != want {
					t.Fatalf("%s (%s), want %s", got, where, want)
				}
				t.Logf("%s %s", got, where)
				if name := filepath.Base(path); want == "refused" && where != "" && !strings.Contains(name, where[1:]) {
					t.Errorf("the error names %q, not %s", where, name)
				}
			})
		}
	}
	f("nothing", logFile, func(b []byte) []byte { return b }, "all")
	f("torn", logFile, func(b []byte) []byte { return b[:len(b)-10] }, "prefix")
	f("end zeroed", logFile, func(b []byte) []byte { clear(b[len(b)-4096:]); return b }, "prefix")
	f("garbage appended", logFile, func(b []byte) []byte { return append(b, slices.Repeat([]byte{0xa7}, 5000)...) }, "all")
	f("flip in the last block", logFile, flip(0.999), "prefix")
	f("flip in a synced block", logFile, flip(0.3), "refused")
	f("hole in synced blocks", logFile, hole, "refused")
	f("log cut in synced blocks", logFile, func(b []byte) []byte { return b[:len(b)/2] }, "refused")
	f("log empty", logFile, func(b []byte) []byte { return nil }, "refused")
	f("log missing", logFile, nil, "refused")
	f("flip in a SSTable", table, flip(0.5), "refused")
	f("hole in a SSTable", table, hole, "refused")
	f("SSTable cut", table, func(b []byte) []byte { return b[:len(b)/2] }, "refused")
	f("SSTable missing", table, nil, "refused")
	one := func(pattern string) func(t *testing.T, dir string) string {
		return func(t *testing.T, dir string) string {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(names) == 0 {
				t.Fatal("no file", pattern, err)
			}
			return names[len(names)-1]
		}
	}
	f("manifest missing", one("MANIFEST-*"), nil, "refused")
	f("name of the manifest missing", one("marker.manifest.*"), nil, "refused")
	f("stamp missing", one(stampName), nil, "refused")
	f("flip in the stamp", one(stampName), flip(0.6), "refused")
	f("mark missing", one(markName), nil, "all")
	f("flip in the mark", one(markName), flip(0.5), "all")
}

// TestSwappedFiles exchanges two SSTables of one size: what is read must be an error, or caught
// by its indexes.
func TestSwappedFiles(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Config{Dir: dir})
	for i := uint64(0); i < 4; i++ {
		mustWrite(t, s, i*10+1, i*10+10, 2000)
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	for _, move := range [][2]string{{names[1], "x"}, {names[2], names[1]}, {"x", names[2]}} {
		if err := os.Rename(filepath.Join(dir, filepath.Base(move[0])), filepath.Join(dir, filepath.Base(move[1]))); err != nil {
			t.Fatal(err)
		}
	}
	if s, err = Open(quiet(Config{Dir: dir})); err == nil {
		_, err = prefixOf(s)
		s.Close()
	}
	if err == nil {
		t.Fatal("nobody noticed")
	}
	t.Log(err)
}

// TestClosedMeansWhole: after Close there is no torn end, so that what is missing then is damage,
// until an operator accepts it.
func TestClosedMeansWhole(t *testing.T) {
	for _, mode := range bothModes {
		cfg := Config{Dir: t.TempDir(), Mode: mode}
		s := mustOpen(t, cfg)
		mustWrite(t, s, 1, 20, 3000)
		mustClose(t, s)
		edit(t, newest(t, cfg.Dir, ".log"), func(b []byte) []byte { return b[:len(b)-1000] })
		for range 2 { // the refusal changes nothing
			var damage *journal.DamageError
			if _, err := Open(quiet(cfg)); !errors.As(err, &damage) || damage.Index != 20 {
				t.Fatalf("%s: got %v, want damage at 20", mode, err)
			}
		}
		cfg.AcceptLoss = true
		s = mustOpen(t, cfg)
		wantPrefix(t, s, 19)
		mustClose(t, s)
		if s, err := Open(quiet(Config{Dir: cfg.Dir, Mode: mode})); err == nil {
			t.Errorf("%s: what was only read is given up", mode)
			mustClose(t, s)
		}
		s = mustOpen(t, cfg)
		mustWrite(t, s, 20, 20, 3000)
		mustClose(t, s)
		cfg.AcceptLoss = false
		s = mustOpen(t, cfg)
		wantPrefix(t, s, 20)
		mustClose(t, s)
	}
}

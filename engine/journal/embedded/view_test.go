package embedded

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/journal"
)

// fingerprint is all that a directory holds, but for LOCK, which has no content.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := filepath.Glob(filepath.Join(dir, RowsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, rows...) {
		if b, err := os.ReadFile(name); err == nil && filepath.Base(name) != "LOCK" {
			all[strings.TrimPrefix(name, dir)] = fmt.Sprintf("%d %x", len(b), sha256.Sum256(b))
		}
	}
	return all
}

func wantSame(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name := range before {
		if after[name] != before[name] {
			t.Errorf("%s was changed", name)
		}
	}
	for name := range after {
		if before[name] == "" {
			t.Errorf("%s was made", name)
		}
	}
}

// seen is what a view shows: the last block it can read, and what it states of the damage.
func seen(t *testing.T, dir string) (last journal.Index, where string, torn bool) {
	t.Helper()
	v, err := Inspect(Config{Dir: dir})
	if err == nil {
		defer func() {
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}()
		file, _ := v.Torn()
		torn = file != ""
		err = v.Blocks(0, func(first journal.Index, block []byte) error {
			if first != last+1 {
				return fmt.Errorf("block %d after block %d", first, last)
			}
			last = first
			return checkBlock(first, block)
		})
		if err == nil {
			err = v.ReadSnapshot(1, func([]byte) error { return nil })
		}
		if d := v.Damage(); d != nil && err == nil {
			if err = d; d.Index != last+1 {
				t.Errorf("damage at %d, but blocks up to %d are shown", d.Index, last)
			}
		}
	}
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return last, damage.Where, torn
	case err != nil:
		t.Fatal(err)
	}
	return last, "", torn
}

// TestViewOfDamage looks at every damage of the table of TestDamage: it never changes the
// directory, shows what is before the damage, and names the file.
func TestViewOfDamage(t *testing.T) {
	modes, crashed := inTurn(), copies(t)
	flip := func(share float64) func(b []byte) []byte {
		return func(b []byte) []byte { b[int(share*float64(len(b)-1))] ^= 0x10; return b }
	}
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	type want struct {
		from, to journal.Index // the last block shown is between
		named    bool          // the error names the file that was changed
		torn     bool
	}
	const all = damageBlocks
	whole, some, none := want{from: all, to: all}, want{from: 1, to: all - 51, named: true}, want{to: all, named: true}
	tail := want{from: all - 50, to: all - 1, torn: true}
	f := func(name, pattern string, change func([]byte) []byte, w want) {
		for _, mode := range modes() {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				dir := crashed(t, mode)
				path := newest(t, dir, pattern)
				if change == nil {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				} else {
					edit(t, path, change)
				}
				before := fingerprint(t, dir)
				last, where, torn := seen(t, dir)
				wantSame(t, before, fingerprint(t, dir))
				if last < w.from || last > w.to || torn != w.torn || w.named != (where != "") {
					t.Errorf("blocks up to %d, damage in %q, torn %v, want %+v", last, where, torn, w)
				}
				if file := strings.TrimPrefix(where, dir); w.named && file != "" && !strings.Contains(filepath.Base(path), file[1:]) {
					t.Errorf("the error names %q, not %s", where, filepath.Base(path))
				}
			})
		}
	}
	f("nothing", ".log", func(b []byte) []byte { return b }, whole)
	f("torn", ".log", func(b []byte) []byte { return b[:len(b)-10] }, tail)
	f("end zeroed", ".log", func(b []byte) []byte { clear(b[len(b)-4096:]); return b }, tail)
	f("flip in the last block", ".log", flip(0.999), tail)
	f("flip in a synced block", ".log", flip(0.3), some)
	f("log cut in synced blocks", ".log", cut, some)
	f("log missing", ".log", nil, some)
	f("flip in an SSTable", ".sst", flip(0.5), none)
	f("SSTable cut", ".sst", cut, none)
	f("SSTable missing", ".sst", nil, none)
	f("manifest missing", "MANIFEST-*", nil, none)
	f("stamp missing", stampName, nil, none)
	f("flip in the stamp", stampName, flip(0.6), none)
	f("mark missing", markName, nil, whole)
	f("flip in the mark", markName, flip(0.5), whole)
}

func TestViewTakesTheModeOfTheDirectory(t *testing.T) {
	for _, mode := range bothModes {
		dir := t.TempDir()
		s := mustOpen(t, Config{Dir: dir, Mode: mode})
		mustWrite(t, s, 1, 3, 100)
		if _, err := Inspect(Config{Dir: dir}); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("beside a server: %v", err)
		}
		mustClose(t, s)
		v, err := Inspect(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if v.Mode() != mode || v.Damage() != nil {
			t.Errorf("mode %s, %v", v.Mode(), v.Damage())
		}
		if first, closed, ok := v.Marked(); first != 3 || !closed || !ok {
			t.Errorf("mark %d %v %v", first, closed, ok)
		}
		if _, err := Open(quiet(Config{Dir: dir, Mode: mode})); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("a server beside it: %v", err)
		}
		if err := errors.Join(v.Close(), v.Close()); err != nil {
			t.Error(err)
		}
		if err := v.Blocks(0, nil); err == nil {
			t.Error("a closed view reads")
		}
	}
}

func TestViewRefusesEveryChange(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Config{Dir: dir})
	mustWrite(t, s, 1, 3, 100)
	mustClose(t, s)
	before := fingerprint(t, dir)
	v, err := Inspect(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, begin := v.BeginSnapshot(1)
	for i, err := range []error{v.WriteBlock(4, nil), v.DropBlocks(2), v.CutBlocks(2), v.DropSnapshot(1), v.Sync(), begin} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	fs := v.fs
	_, create := fs.Create(dir+"/x", "")
	_, open := fs.OpenReadWrite(dir+"/MARK", "")
	_, reuse := fs.ReuseForWrite(dir+"/MARK", dir+"/x", "")
	for i, err := range []error{create, open, reuse, fs.Link(dir+"/MARK", dir+"/x"), fs.Remove(dir + "/MARK"), fs.RemoveAll(dir),
		fs.Rename(dir+"/MARK", dir+"/x"), fs.MkdirAll(dir+"/x", 0o700)} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("file system %d: %v", i, err)
		}
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	wantSame(t, before, fingerprint(t, dir))
}

func TestNoJournalIsMade(t *testing.T) {
	f := func(name string, prepare func(dir string) error) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "x")
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		_, there := os.Stat(dir)
		if _, err := Inspect(Config{Dir: dir}); !errors.Is(err, ErrNoJournal) {
			t.Errorf("%s: %v", name, err)
		}
		if _, now := os.Stat(dir); (now == nil) != (there == nil) {
			t.Errorf("%s: the directory was made", name)
		}
		if names, _ := filepath.Glob(dir + "/LOCK"); len(names) > 0 {
			t.Errorf("%s: a lock was made", name)
		}
	}
	f("missing", func(string) error { return nil })
	f("empty", func(dir string) error { return os.Mkdir(dir, 0o700) })
	f("a file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) })
	f("something else", func(dir string) error {
		return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/notes.txt", []byte("x"), 0o600))
	})
	if _, err := Inspect(Config{}); err == nil {
		t.Error("a directory without a name")
	}
}

func TestFilesOfADirectory(t *testing.T) {
	dir := crashed(t, journal.Always)
	if err := errors.Join(os.Mkdir(dir+"/damaged", 0o700), os.WriteFile(dir+"/damaged/000001.log", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	v, err := Inspect(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	files, err := v.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{fileLog, fileTable, fileManifest, fileMark, fileStamp, fileDamaged, fileRows, fileOther} {
		if !slices.ContainsFunc(files, func(f FileInfo) bool { return f.Kind == kind }) {
			t.Errorf("no file of kind %s", kind)
		}
	}
	if slices.ContainsFunc(files, func(f FileInfo) bool { return filepath.Base(f.Name) == "LOCK" }) {
		t.Error("LOCK is listed")
	}
}

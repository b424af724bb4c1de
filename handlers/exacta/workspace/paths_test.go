package workspace

import (
	"os"
	slashed "path"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"trunkline/engine/projects/relpath"
)

// localByLibrary is relpath.Valid in the words of the standard library.
func localByLibrary(rel string) bool {
	drive := len(rel) > 1 && rel[1] == ':' && unicode.IsLetter(rune(rel[0])) && rel[0] < 0x80
	return filepath.IsLocal(rel) && rel != "." && slashed.Clean(rel) == rel && !strings.Contains(rel, `\`) && !drive && utf8.ValidString(rel) &&
		!strings.ContainsFunc(rel, unicode.IsControl) && len(rel) <= relpath.MaxBytes && strings.Count(rel, "/") < relpath.MaxComponents
}

// FuzzPaths gives any path to reading and writing in a tree with links, beside the standard library
// (exacta §4.17): what is read is the file at that place, reached without a link; what is written
// is there and nowhere else, and is taken back.
func FuzzPaths(f *testing.F) {
	for _, rel := range []string{
		"", ".", "..", "real.txt", "d/f.txt", "d/../real.txt", "/real.txt", "//a", "a/", "d//f.txt", "./a", "near.txt", "out/secret.txt", "in/f.txt", "real.txt/b", "d", "pipe", "zero", "loop/x", "REAL.txt", "D/F.txt", ".git/x", ".Exacta/state.json",
		`d\b`, "c:/x", "new/x/y", "a\x00", "\xff", "é", "e\u0301", "d/b ", "...", "..a", "a..", "~", "$HOME", "%2e%2e/x", strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("n/", 19) + "x",
	} {
		f.Add(rel)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		if got, want := relpath.Valid(rel), localByLibrary(rel); got != want {
			t.Fatalf("%q is valid: %v, want %v", rel, got, want)
		}
		root, outside := hostile(t)
		p := open(t, root, Options{})
		defer p.Close()
		file := filepath.Join(root, rel)
		st, err := os.Lstat(file)
		resolved, _ := filepath.EvalSymlinks(file)
		plain := relpath.Valid(rel) && err == nil && st.Mode().IsRegular() && resolved == file && checkPath(rel) == nil
		b, _, fault := p.Read(rel)
		if (fault == nil) != plain {
			t.Fatalf("%q: %q %v, plain: %v", rel, b, fault, plain)
		}
		if plain { // others may be a pipe, which ends never
			if want, err := os.ReadFile(file); err != nil || string(b) != string(want) {
				t.Fatalf("%q: %q, want %q %v", rel, b, want, err)
			}
		}
		if fault != nil && (fault.Row() == nil || strings.Contains(fault.Detail, root)) {
			t.Fatalf("%q: %v", rel, fault)
		}
		before, around := snapshot(t, root), snapshot(t, outside)
		pt, fault := p.NewPoint(id1, DiffSetPoint, now)
		ok(t, fault)
		fault = pt.Add(Change{Path: rel, Op: Create, Data: []byte("new")})
		if fault == nil {
			fault = pt.Commit(nil)
		}
		if fault == nil {
			got, err := os.ReadFile(file)
			if resolved, _ := filepath.EvalSymlinks(file); err != nil || string(got) != "new" || resolved != file {
				t.Fatalf("%q was written: %q %v, at %s", rel, got, err, resolved)
			}
		}
		ok(t, pt.Undo(0))
		if got := snapshot(t, root); got != before || snapshot(t, outside) != around {
			t.Fatalf("%q leaves %q and %q", rel, got, snapshot(t, outside))
		}
	})
}

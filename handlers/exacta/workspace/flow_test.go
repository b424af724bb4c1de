package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// write makes files below root, with their directories.
func write(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for rel, text := range files {
		path := filepath.Join(root, rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// canonicalTemp returns an empty directory without links in its path.
func canonicalTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens a project and closes it at the end of the test. Its fsync does nothing: tests stop
// programs, not machines.
func open(t testing.TB, root string, o Options) *Project {
	t.Helper()
	o.Lazy = true
	p, f := Open(root, o)
	if f != nil {
		t.Fatal(f)
	}
	t.Cleanup(p.Close)
	return p
}

// ok fails the test for a fault.
func ok(t testing.TB, f *errcode.Fault) {
	t.Helper()
	if f != nil {
		t.Fatal(f)
	}
}

// want checks the code of a fault and the front of its detail.
func want(t testing.TB, f *errcode.Fault, code string) {
	t.Helper()
	if f == nil || f.Code != code {
		t.Fatalf("%v, want %s", f, code)
	}
}

const (
	id1 = "14275667-7c61-5ef4-8f2b-68ae2515b834"
	now = "2026-01-15T00:00:00.000Z"
)

func TestSetOfChangesAndBack(t *testing.T) {
	root := canonicalTemp(t)
	write(t, root, map[string]string{"README.md": "# Demo\n", "old.txt": "old"})
	if err := os.Chmod(filepath.Join(root, "README.md"), 0o751); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(
		Change{Path: "README.md", Op: Modify, Data: []byte("# Demo\nBye.\n"), Pre: Sum([]byte("# Demo\n"))},
		Change{Path: "a/b/new.txt", Op: Create, Data: []byte("n")},
		Change{Path: "a/b/new2.txt", Op: Create},
		Change{Path: "old.txt", Op: Delete, Pre: Sum([]byte("old"))},
	))
	if got := snapshot(t, root); got != before {
		t.Fatal("Add changed the tree")
	}
	ok(t, pt.Prepare())
	steps := 0
	ok(t, pt.Commit(func(k, n int) { steps += k*10 + n }))
	if steps != 100+16 {
		t.Errorf("progress %d", steps)
	}
	ok(t, pt.Seal())
	after := snapshot(t, root)
	if after != "README.md 0751 # Demo\nBye.\n|a/|a/b/|a/b/new.txt 0644 n|a/b/new2.txt 0644 |" {
		t.Errorf("%q", after)
	}
	loaded, f := p.LoadPoint(id1)
	ok(t, f)
	if !loaded.Sealed || len(loaded.Entries) != 4 || string(loaded.encode()) != string(pt.encode()) {
		t.Errorf("%+v", loaded)
	}
	ok(t, loaded.Undo(0))
	if got := snapshot(t, root); got != before {
		t.Errorf("%q, want %q", got, before)
	}
}

// TestModes: a new file has 0644 masked by the umask, a changed one keeps its mode, with all bits
// (exacta §4.17). It is not parallel: the umask belongs to the process.
func TestModes(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	root := canonicalTemp(t)
	write(t, root, map[string]string{"old": "1", "gone": "2"})
	for name, mode := range map[string]os.FileMode{"old": 0o777 | os.ModeSetuid, "gone": 0o466} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	modeOf := func(name string) os.FileMode {
		st, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode()
	}
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(Change{Path: "d/new", Op: Create}, Change{Path: "old", Op: Modify, Pre: Sum([]byte("1"))},
		Change{Path: "gone", Op: Delete, Pre: Sum([]byte("2"))}))
	ok(t, pt.Commit(nil))
	if modeOf("d/new") != 0o600 || modeOf("d") != os.ModeDir|0o700 || modeOf("old") != 0o777|os.ModeSetuid {
		t.Errorf("%v %v %v", modeOf("d/new"), modeOf("d"), modeOf("old"))
	}
	ok(t, pt.Undo(0))
	if modeOf("gone") != 0o466 || modeOf("old") != 0o777|os.ModeSetuid {
		t.Errorf("%v %v", modeOf("gone"), modeOf("old"))
	}
	if _, mode, f := p.Read("old"); f != nil || mode != 0o777 {
		t.Errorf("%v %v", mode, f)
	}
}

// TestEmptySet: a point without entries is valid (exacta §4.12).
func TestEmptySet(t *testing.T) {
	p := open(t, canonicalTemp(t), Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add())
	ok(t, pt.Commit(nil))
	ok(t, pt.Seal())
	pt, f = p.LoadPoint(id1)
	ok(t, f)
	if !pt.Sealed || len(pt.Entries) != 0 {
		t.Errorf("%+v", pt)
	}
	ok(t, pt.Undo(0))
}

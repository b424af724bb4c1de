package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestConflictsStay: a file that another program changed keeps its bytes, the others are restored,
// and the point stays with the blob (exacta §4.8).
func TestConflictsStay(t *testing.T) {
	root, _ := scene(t)
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(changes()...))
	ok(t, pt.Commit(nil))
	write(t, root, map[string]string{"m.txt": "the user's\n", "n/e/own.txt": "own"})
	p.Close()

	p = open(t, root, Options{})
	undone, f := p.Recover()
	ok(t, f)
	if len(undone) != 1 || undone[0].ID != id1 || undone[0].Fault == nil {
		t.Fatalf("%v", undone)
	}
	want(t, undone[0].Fault, "FS-006")
	if m := undone[0].Fault.Message(); m != "Rollback could not restore 1 file(s)." {
		t.Error(m)
	}
	after := "d/|d/x.txt 0700 gone\n|d/y.txt 0644 stays\n|m.txt 0644 the user's\n|n/|n/e/|n/e/own.txt 0644 own|"
	if got := snapshot(t, root); got != after {
		t.Errorf("%q", got)
	}
	if again, f := p.Recover(); f != nil || len(again) != 0 {
		t.Errorf("%v %v", again, f)
	}
	for i := range keptPoints + 2 {
		_, f := p.NewPoint("x"+strconv.Itoa(i), PlanPoint, now)
		ok(t, f)
	}
	ok(t, p.Prune())
	pt, f = p.LoadPoint(id1)
	ok(t, f)
	if b, err := os.ReadFile(filepath.Join(root, pt.rel(), pt.Entries[0].Blob)); err != nil || string(b) != "old\n" {
		t.Errorf("blob %q %v", b, err)
	}
	write(t, root, map[string]string{"m.txt": "new\n"})
	ok(t, pt.Undo(0))
	if b, _, f := p.Read("m.txt"); f != nil || string(b) != "old\n" {
		t.Errorf("%q %v", b, f)
	}
}

// TestUndoRules has each state of a target at Undo.
func TestUndoRules(t *testing.T) {
	f := func(name, code, after string, meanwhile func(root string) error) {
		t.Helper()
		root, before := scene(t)
		p := open(t, root, Options{})
		pt, f := perform(p, DiffSetPoint)
		ok(t, f)
		if err := meanwhile(root); err != nil {
			t.Fatal(err)
		}
		f = pt.Undo(0)
		if code == "" {
			after = before
		}
		if f != nil && f.Code != code || f == nil && code != "" || snapshot(t, root) != after {
			t.Errorf("%s: %v, tree %q", name, f, snapshot(t, root))
		}
	}
	const conflict = "FS-006"
	f("untouched", "", "", func(string) error { return nil })
	f("restored by hand", "", "", func(root string) error {
		return os.WriteFile(filepath.Join(root, "m.txt"), []byte("old\n"), 0o644)
	})
	f("created file removed", "", "", func(root string) error { return os.Remove(filepath.Join(root, "n/e/w.txt")) })
	f("created folder removed", "", "", func(root string) error { return os.RemoveAll(filepath.Join(root, "n")) })
	f("modified file removed", conflict, "d/|d/x.txt 0700 gone\n|d/y.txt 0644 stays\n|", func(root string) error {
		return os.Remove(filepath.Join(root, "m.txt"))
	})
	f("target is a link", conflict, "d/|d/x.txt 0700 gone\n|d/y.txt 0644 stays\n|m.txt L---------|", func(root string) error {
		_ = os.Remove(filepath.Join(root, "m.txt"))
		return os.Symlink("d/y.txt", filepath.Join(root, "m.txt"))
	})
	f("folder is a link", conflict, "d/|d/x.txt 0700 gone\n|d/y.txt 0644 stays\n|m.txt 0644 old\n|n L---------|q/|q/e/|q/e/w.txt 0644 w|", func(root string) error {
		if err := os.Rename(filepath.Join(root, "n"), filepath.Join(root, "q")); err != nil {
			return err
		}
		return os.Symlink("q", filepath.Join(root, "n"))
	})
	f("deleted file made again", conflict,
		"d/|d/x.txt 0644 mine|d/y.txt 0644 stays\n|m.txt 0644 old\n|", func(root string) error {
			return os.WriteFile(filepath.Join(root, "d/x.txt"), []byte("mine"), 0o644)
		})
	f("blob damaged", conflict, "d/|d/y.txt 0644 stays\n|m.txt 0644 old\n|", func(root string) error {
		return os.WriteFile(filepath.Join(root, ".exacta/rollback", id1, "3.bin"), []byte("forged"), 0o600)
	})
	f("blob missing", conflict, "d/|d/x.txt 0700 gone\n|d/y.txt 0644 stays\n|m.txt 0644 new\n|", func(root string) error {
		return os.Remove(filepath.Join(root, ".exacta/rollback", id1, "1.bin"))
	})
	f("folder of the deleted file removed", "", "", func(root string) error {
		if err := os.Rename(filepath.Join(root, "d/y.txt"), filepath.Join(root, "y")); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(root, "d")); err != nil {
			return err
		}
		return restoreLater(root)
	})
}

// restoreLater puts y.txt back into a new folder d, as a user may.
func restoreLater(root string) error {
	if err := os.Mkdir(filepath.Join(root, "d"), 0o755); err != nil {
		return err
	}
	return os.Rename(filepath.Join(root, "y"), filepath.Join(root, "d/y.txt"))
}

// TestDeletedWithItsFolder: the folder of a deleted file is made again.
func TestDeletedWithItsFolder(t *testing.T) {
	root := canonicalTemp(t)
	write(t, root, map[string]string{"a/b/c.txt": "c"})
	before := snapshot(t, root)
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(Change{Path: "a/b/c.txt", Op: Delete, Pre: Sum([]byte("c"))}))
	ok(t, pt.Commit(nil))
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	ok(t, pt.Undo(0))
	if got := snapshot(t, root); got != before {
		t.Errorf("%q", got)
	}
}

// TestChangedBeforeCommit: a target that changes after Add or Prepare stops the set.
func TestChangedBeforeCommit(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		for _, rel := range []string{"m.txt", "n/e/w.txt", "d/x.txt"} {
			root, _ := scene(t)
			p := open(t, root, Options{})
			pt, f := p.NewPoint(id1, DiffSetPoint, now)
			ok(t, f)
			ok(t, pt.Add(changes()...))
			if prepared {
				ok(t, pt.Prepare())
			}
			write(t, root, map[string]string{rel: "meanwhile"})
			want(t, pt.Commit(nil), "VAL-005")
			_ = pt.Undo(0)
			if b, _, f := p.Read(rel); f != nil || string(b) != "meanwhile" || strings.Contains(snapshot(t, root), ".tmp.") {
				t.Errorf("%s: %q %v %q", rel, b, f, snapshot(t, root))
			}
		}
	}
}

// TestNewestPointsAreKept (exacta §4.18), all made at one time.
func TestNewestPointsAreKept(t *testing.T) {
	p := open(t, canonicalTemp(t), Options{})
	for i := range 2*keptPoints + 1 {
		if i == keptPoints {
			p.lastSeq = -1 // as after a new start
		}
		kind := PlanPoint
		if i == 2 {
			kind = DiffSetPoint
		}
		_, f := p.NewPoint("p"+strconv.Itoa(i), kind, now)
		ok(t, f)
	}
	write(t, p.Root(), map[string]string{".exacta/rollback/empty/1.bin": "x", ".exacta/rollback/empty/manifest.json.tmp": "{",
		".exacta/rollback/bad/manifest.json": "{", ".exacta/rollback/lost/1.bin": "x"})
	ok(t, p.Prune("p4"))
	entries, err := os.ReadDir(filepath.Join(p.Root(), ".exacta/rollback"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if s := strings.Join(got, " "); s != "bad lost p11 p12 p13 p14 p15 p16 p17 p18 p19 p2 p20 p4" {
		t.Error(s)
	}
	_, f := p.NewPoint("p20", PlanPoint, now)
	want(t, f, "ST-002")
}

// TestDamagedManifests are refused and named, and stay (exacta §3.7 ST-002).
func TestDamagedManifests(t *testing.T) {
	root, _ := scene(t)
	p := open(t, root, Options{})
	pt, f := perform(p, DiffSetPoint)
	ok(t, f)
	good := string(pt.encode())
	before := snapshot(t, root)
	try := func(old, with string) {
		t.Helper()
		text := strings.Replace(good, old, with, 1)
		if old != "" && text == good {
			t.Fatalf("%q is not in %s", old, good)
		}
		write(t, root, map[string]string{".exacta/rollback/" + id1 + "/manifest.json": text})
		_, f := p.LoadPoint(id1)
		want(t, f, "ST-002")
		if undone, f := p.Recover(); f != nil || len(undone) != 1 || undone[0].Fault == nil || undone[0].Fault.Code != "ST-002" || snapshot(t, root) != before {
			t.Errorf("%v %v", undone, f)
		}
	}
	try(`{"schema`, `["schema`)
	try(`"schema_version":1`, `"schema_version":2`)
	try(id1, "other")
	try(`"kind":"diffset"`, `"kind":"x"`)
	try(`"sealed":true`, `"sealed":0`)
	try(`"path":"m.txt"`, `"path":"../m.txt"`)
	try(`"path":"m.txt"`, `"path":".git/config"`)
	try(`"path":"m.txt"`, `"path":"/m.txt"`)
	try(`"op":"modify"`, `"op":"create"`)
	try(`"op":"modify"`, `"op":"delete"`)
	try(`"op":"create"`, `"op":"modify"`)
	try(`"blob":"1.bin"`, `"blob":"../1.bin"`)
	try(`"blob":"1.bin"`, `"blob":"x.bin"`)
	try(`"blob":"1.bin"`, `"blob":null`)
	try(`"created_dirs":["n","n/e"]`, `"created_dirs":["d"]`)
	try(`"created_dirs":["n","n/e"]`, `"created_dirs":["n/.."]`)
	try(`"order":2`, `"order":1`)
	try(`"mode":420`, `"mode":65536`)
	try(`"pre_sha256":"`, `"pre_sha256":"0`)
	try(`"entries":[`, `"entries":[1,`)
}

// TestOrdersOfAManifest: they ascend from any base (exacta §4.18).
func TestOrdersOfAManifest(t *testing.T) {
	root, before := scene(t)
	p := open(t, root, Options{})
	pt, f := perform(p, DiffSetPoint)
	ok(t, f)
	pt.Sealed = false
	for i := range pt.Entries {
		pt.Entries[i].Order = 7*i - 7
	}
	write(t, root, map[string]string{".exacta/rollback/" + id1 +
		"/manifest.json": string(p.sign("rollback/"+id1, pt.encode()))})
	undone, f := p.Recover()
	ok(t, f)
	if len(undone) != 1 || undone[0].Fault != nil || snapshot(t, root) != before {
		t.Errorf("%v %q", undone, snapshot(t, root))
	}
}

// TestStrangersAmongPoints: what is no point, or has lost its manifest, is named and stays.
func TestStrangersAmongPoints(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	write(t, root, map[string]string{".exacta/rollback/a file": "x", ".exacta/rollback/file": "x", ".exacta/rollback/lost/1.bin": "x",
		".exacta/rollback/left/manifest.json.tmp": "x"})
	if err := os.Symlink("lost", filepath.Join(root, ".exacta/rollback/link")); err != nil {
		t.Fatal(err)
	}
	found, f := p.Recover()
	ok(t, f)
	if len(found) != 4 {
		t.Errorf("%v", found)
	}
	for _, r := range found {
		want(t, r.Fault, "ST-002")
	}
}

// TestPointThatCannotBeDropped does not keep others.
func TestPointThatCannotBeDropped(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	for n := range keptPoints + 3 {
		pt, f := p.NewPoint("p"+strconv.Itoa(n+10), PlanPoint, now)
		ok(t, f)
		ok(t, pt.Seal())
	}
	all := filepath.Join(root, storeName, "rollback")
	if err := os.MkdirAll(filepath.Join(all, "p11", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f := p.Prune(); f == nil {
		t.Error("a folder in a point was removed")
	}
	list, err := os.ReadDir(all)
	if err != nil || len(list) != keptPoints+1 {
		t.Errorf("%d points, %v", len(list), err)
	}
}

// TestNoProgramGetsRights: a manifest that another program wrote does not make a file setuid. One
// that is so stays so.
func TestNoProgramGetsRights(t *testing.T) {
	for _, had := range []os.FileMode{0, os.ModeSetuid | os.ModeSetgid} {
		root := canonicalTemp(t)
		p := open(t, root, Options{})
		write(t, root, map[string]string{"tool": "old"})
		path := filepath.Join(root, "tool")
		if err := os.Chmod(path, had|0o755); err != nil {
			t.Fatal(err)
		}
		pt, f := p.NewPoint(id1, DiffSetPoint, now)
		ok(t, f)
		ok(t, pt.Add(Change{Path: "tool", Op: Modify, Data: []byte("new"), Pre: Sum([]byte("old"))}))
		ok(t, pt.Commit(nil))
		pt.Entries[0].Mode = 0o7755
		write(t, root, map[string]string{".exacta/rollback/" + id1 +
			"/manifest.json": string(p.sign("rollback/"+id1, pt.encode()))})
		if undone, f := p.Recover(); f != nil || len(undone) != 1 || undone[0].Fault != nil {
			t.Fatalf("%v %v", undone, f)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "old" || st.Mode() != had|0o755 {
			t.Errorf("%v %q, want %v", st.Mode(), b, had|0o755)
		}
	}
}

// TestGreatestSeq: a project that comes with a point of it has points that can be read all the
// same.
func TestGreatestSeq(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, PlanPoint, now)
	ok(t, f)
	pt.seq = maxSeq
	ok(t, pt.Seal())
	again := open(t, canonicalTemp(t), Options{})
	if err := os.CopyFS(filepath.Join(again.Root(), storeName, "rollback"), os.DirFS(filepath.Join(root, storeName, "rollback"))); err != nil {
		t.Fatal(err)
	}
	const id2 = "00000000-0000-4000-8000-0000000000ff"
	_, f = again.NewPoint(id2, PlanPoint, now)
	ok(t, f)
	_, f = again.LoadPoint(id2)
	ok(t, f)
}

// TestTargetsThatWereNotReplaced: what another program made of them before is no conflict, and
// what was replaced is taken back.
func TestTargetsThatWereNotReplaced(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"edited":  func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"removed": os.Remove,
		"link":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("a", path)) },
		"folder":  func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		root, twin := canonicalTemp(t), canonicalTemp(t)
		for _, dir := range []string{root, twin} {
			write(t, dir, map[string]string{"a": "old", "b": "old", "c": "old"})
		}
		p := open(t, root, Options{})
		pt, f := p.NewPoint(id1, DiffSetPoint, now)
		ok(t, f)
		for _, path := range []string{"a", "b", "c"} {
			ok(t, pt.Add(Change{Path: path, Op: Modify, Data: []byte("new"), Pre: Sum([]byte("old"))}))
		}
		ok(t, pt.Prepare())
		for _, dir := range []string{root, twin} {
			if err := change(filepath.Join(dir, "b")); err != nil {
				t.Fatal(err)
			}
		}
		if pt.Commit(nil) == nil {
			t.Errorf("%s: replaced", name)
		}
		ok(t, pt.Undo(0))
		if after := snapshot(t, root); after != snapshot(t, twin) {
			t.Errorf("%s: %q, want %q", name, after, snapshot(t, twin))
		}
	}
}

// TestNewFileWhoseDirectoryBecameAFile is gone: there is nothing to take back.
func TestNewFileWhoseDirectoryBecameAFile(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(Change{Path: "n/m/new", Op: Create, Data: []byte("new")}))
	ok(t, pt.Commit(nil))
	if err := os.RemoveAll(filepath.Join(root, "n")); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"n": "mine"})
	before := snapshot(t, root)
	ok(t, pt.Undo(0))
	if after := snapshot(t, root); after != before {
		t.Errorf("%q, want %q", after, before)
	}
}

package workspace

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hostile makes a tree with links, pipes and folders in the places of files.
func hostile(t *testing.T) (root, outside string) {
	t.Helper()
	root, outside = canonicalTemp(t), canonicalTemp(t)
	write(t, outside, map[string]string{"secret.txt": "s"})
	write(t, root, map[string]string{"d/f.txt": "f", "real.txt": "r"})
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, "out")
	link("d", "in")
	link("real.txt", "near.txt")
	link("nothing", "dangling.txt")
	link("loop", "loop")
	link("/dev/zero", "zero")
	if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root, outside
}

// TestRefusedTargets has every kind of target that is not touched, for reading and each change.
func TestRefusedTargets(t *testing.T) {
	root, outside := hostile(t)
	before, beyond := snapshot(t, root), snapshot(t, outside)
	p := open(t, root, Options{})
	p.SetDeny(func(path string, _ bool) bool { return path == "d/denied.txt" })
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	f2 := func(rel, code string) {
		t.Helper()
		if _, _, f := p.Read(rel); f == nil || f.Code != code || strings.Contains(f.Error(), root) {
			t.Errorf("Read %q: %v, want %s", rel, f, code)
		}
		for _, op := range []Op{Create, Modify, Delete} {
			f := pt.Add(Change{Path: rel, Op: op, Data: []byte("x")})
			if f == nil || f.Code != code && (op != Create || code != "FS-001") || strings.Contains(f.Error(), root) {
				t.Errorf("%s %q: %v, want %s", op, rel, f, code)
			}
		}
		if code == "SEC-002" && p.IsDir(rel) {
			t.Errorf("%q is a directory", rel)
		}
	}
	for _, rel := range []string{
		"out/secret.txt", "in/f.txt", "near.txt", "dangling.txt", "loop", "loop/x", "zero", "pipe", "out",
		".exacta/config.json", "a/.git/config", ".svn/x", ".hg", ".GIT/x", "d/denied.txt",
	} {
		f2(rel, "SEC-002")
	}
	for _, rel := range []string{"..", "../x", "d/../x", `d\..\x`} {
		f2(rel, "SEC-001")
	}
	for _, rel := range []string{"/etc/passwd", `d\f.txt`, "C:x", "//x"} {
		f2(rel, "FS-003")
	}
	for _, rel := range []string{"", ".", "d//f.txt", "d/", "./d", "a\x00b", "a\nb", "\xff", strings.Repeat("x/", 20) + "x", strings.Repeat("y", 1025)} {
		f2(rel, "VAL-003")
	}
	f2("real.txt/below", "FS-001")
	f2(strings.Repeat("n", 256), "FS-001")
	if _, f := p.Hash("d"); f == nil || f.Code != "SEC-002" {
		t.Errorf("Hash of a directory: %v", f)
	}
	if len(pt.Entries) != 0 {
		t.Errorf("entries %v", pt.Entries)
	}
	if got := snapshot(t, root); got != before {
		t.Errorf("root %q", got)
	}
	if got := snapshot(t, outside); got != beyond {
		t.Errorf("outside %q", got)
	}
}

// TestMissingAndPresent has the targets that are regular and not as a change wants them.
func TestMissingAndPresent(t *testing.T) {
	root, _ := scene(t)
	p := open(t, root, Options{MaxFile: 6})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	write(t, root, map[string]string{"big.txt": "1234567", "full.txt": "123456"})
	want(t, pt.Add(Change{Path: "none.txt", Op: Modify}), "FS-001")
	want(t, pt.Add(Change{Path: "none/x.txt", Op: Delete}), "FS-001")
	want(t, pt.Add(Change{Path: "m.txt", Op: Create}), "VAL-005")
	want(t, pt.Add(Change{Path: "m.txt", Op: Modify, Pre: Sum([]byte("other"))}), "VAL-005")
	want(t, pt.Add(Change{Path: "m.txt", Op: Delete, Pre: Sum([]byte("other"))}), "VAL-005")
	want(t, pt.Add(Change{Path: "big.txt", Op: Delete, Pre: Sum([]byte("1234567"))}), "RES-002")
	want(t, pt.Add(changes()[0], changes()[0]), "VAL-003")
	if len(pt.Entries) != 0 || len(pt.pending) != 0 {
		t.Errorf("%+v", pt)
	}
	if b, _, f := p.Read("full.txt"); f != nil || string(b) != "123456" {
		t.Errorf("%q %v", b, f)
	}
	if sum, f := p.Hash("none/x.txt"); f != nil || sum != "" {
		t.Errorf("%q %v", sum, f)
	}
}

// TestSocketsAndUnreadable are refused without waiting.
func TestSocketsAndUnreadable(t *testing.T) {
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := open(t, dir, Options{})
	_, _, f := p.Read("s")
	want(t, f, "SEC-002")
	if os.Getuid() != 0 {
		write(t, dir, map[string]string{"shut.txt": "x"})
		if err := os.Chmod(filepath.Join(dir, "shut.txt"), 0); err != nil {
			t.Fatal(err)
		}
		_, _, f = p.Read("shut.txt")
		want(t, f, "FS-002")
	}
}

// TestHardLinkKeepsItsBytes: another name of the same file, outside, is not written.
func TestHardLinkKeepsItsBytes(t *testing.T) {
	root, before := scene(t)
	outside := filepath.Join(canonicalTemp(t), "same.txt")
	if err := os.Link(filepath.Join(root, "m.txt"), outside); err != nil {
		t.Fatal(err)
	}
	p := open(t, root, Options{})
	pt, f := perform(p, DiffSetPoint)
	ok(t, f)
	if b, _ := os.ReadFile(outside); string(b) != "old\n" {
		t.Errorf("outside %q", b)
	}
	ok(t, pt.Undo(0))
	if got := snapshot(t, root); got != before {
		t.Errorf("%q", got)
	}
}

// TestLongNames: names of up to 255 bytes are written, whatever their temporary name is.
func TestLongNames(t *testing.T) {
	for _, n := range []int{213, 214, 215, 255} {
		root := canonicalTemp(t)
		name := strings.Repeat("n", n)
		p := open(t, root, Options{})
		pt, f := p.NewPoint(id1, DiffSetPoint, now)
		ok(t, f)
		if temp := pt.tempName(name); len(temp) > maxName || (temp == name+".tmp."+id1) != (n <= 214) {
			t.Errorf("%d: %s", n, temp)
		}
		ok(t, pt.Add(Change{Path: name, Op: Create, Data: []byte("x")}))
		ok(t, pt.Commit(nil))
		if got := snapshot(t, root); got != name+" 0644 x|" {
			t.Errorf("%q", got)
		}
		ok(t, pt.Undo(0))
		if got := snapshot(t, root); got != "" {
			t.Errorf("%q", got)
		}
	}
}

// TestTempNameIsTaken: a file with the temporary name that is not ours stops the set.
func TestTempNameIsTaken(t *testing.T) {
	root, _ := scene(t)
	p := open(t, root, Options{})
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	ok(t, pt.Add(changes()...))
	if err := os.Symlink("/dev/full", filepath.Join(root, "m.txt.tmp."+id1)); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	want(t, pt.Commit(nil), "VAL-005")
	ok(t, pt.Undo(0))
	if got := snapshot(t, root); got != before {
		t.Errorf("%q, want %q", got, before)
	}
}

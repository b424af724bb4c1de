package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// places is a project and directories around it; bundles may go to tmp, home and extra.
func places(t *testing.T, o Options) (p *Project, base string, out *Outputs) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"user/p/src", "tmp", "extra/d", "other"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p = open(t, filepath.Join(base, "user/p"), o)
	return p, base, &Outputs{Name: "named.zip", Home: base + "/user", Temp: base + "/tmp", Dirs: []string{base + "/extra"}}
}

func goesOn() bool { return false }

// TestPlaces has the checks of exacta §4.15, in their order.
func TestPlaces(t *testing.T) {
	p, base, out := places(t, Options{})
	write(t, base, map[string]string{"tmp/old.zip": "old", "tmp/file": "", "user/p/x.zip": ""})
	for link, to := range map[string]string{"tmp/out": base + "/other", "other/in": base + "/tmp", "tmp/dangling.zip": "none", "tmp/project": base + "/user/p/src"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	f := func(output, want string) {
		t.Helper()
		at, err := p.Place(output, out)
		got := ""
		if err != nil {
			got = err.Code
		} else {
			got = strings.TrimPrefix(at.Path, base+"/")
		}
		if got != want {
			t.Errorf("%s: %s %v, want %s", output, got, err, want)
		}
	}
	const own = "user/p/.exacta/diagnostics/"
	f("b.zip", own+"b.zip")
	f(".", own+"named.zip")
	f("./b.zip", own+"b.zip")
	f(base+"/"+own, own+"named.zip")
	f(base+"/tmp/b.zip", "tmp/b.zip")
	f(base+"/tmp", "tmp/named.zip")
	f(base+"/tmp/", "tmp/named.zip")
	f(base+"/user/b.zip", "user/b.zip")
	f(base+"/extra/d", "extra/d/named.zip")
	f(base+"/other/in/b.zip", "other/in/b.zip") // leads to tmp
	f(base+"/other/in", "other/in/named.zip")

	f("../b.zip", "SEC-001")
	f(base+"/tmp/../none/b.txt", "SEC-001")
	f(`a\..\b.zip`, "SEC-001")
	f("sub/b.zip", "FS-001")
	f(base+"/none/b.txt", "FS-001")
	f(base+"/tmp/file/b.zip", "FS-001")
	f(base+"/other/b.txt", "FS-003")
	f(base+"/other", "FS-003")
	f(base+"/b.zip", "FS-003")
	f(base+"/user/p/x.zip", "FS-003")
	f(base+"/user/p/src/b.zip", "FS-003")
	f(base+"/tmp/out/b.zip", "FS-003")
	f(base+"/tmp/project/b.zip", "FS-003")
	f("b.txt", "CFG-003")
	f(base+"/tmp/file", "CFG-003")
	f(base+"/tmp/old.zip", "FS-002")
	f(base+"/tmp/dangling.zip", "FS-002")
	if _, err := os.Lstat(filepath.Join(p.Root(), ".exacta")); err == nil {
		t.Error("a check made .exacta")
	}

	out.Home = "/" // would be everywhere
	f(base+"/user/b.zip", "FS-003")
	if err := os.Mkdir(base+"/user/p/.exacta", 0o700); err != nil {
		t.Fatal(err)
	}
	f(base+"/user/p/.exacta/b.zip", "FS-003")
	f(".", own+"named.zip")
	if err := os.MkdirAll(base+"/"+own+"sub", 0o700); err != nil {
		t.Fatal(err)
	}
	f("sub", own+"sub/named.zip")
	if err := os.RemoveAll(base + "/user/p/.exacta"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base+"/tmp", base+"/user/p/.exacta"); err != nil {
		t.Fatal(err)
	}
	f("b.zip", "SEC-002")
	f(base+"/user/p/.exacta/b.zip", "SEC-002")
}

// TestBundlesAreNew: a bundle is written as a whole to a new name, or nothing is left.
func TestBundlesAreNew(t *testing.T) {
	for _, output := range []string{"b.zip", "/tmp/b.zip", "/user/p/.exacta/diagnostics/sub/b.zip"} {
		var fails string
		p, base, out := places(t, Options{Before: func(op, _ string) error {
			if op == fails {
				return unix.EIO
			}
			return nil
		}})
		if output[0] == '/' {
			output = base + output
		}
		if strings.Contains(output, "sub") {
			if err := os.MkdirAll(filepath.Dir(output), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		at, no := p.Place(output, out)
		if no != nil {
			t.Fatal(no)
		}
		f := func(stopped func() bool, want string) {
			t.Helper()
			no := p.WriteBundle(at, []byte("zip"), stopped)
			if got := codeOf(no); got != want {
				t.Errorf("%s: %v, want %s", fails, no, want)
			}
			names, _ := os.ReadDir(filepath.Dir(at.Path))
			if want != "" && len(names) > 0 {
				t.Errorf("%s: %v is left", fails, names)
			}
		}
		for _, fails = range []string{"create", "write", "readback", "rename"} {
			f(goesOn, "FS-002")
		}
		fails = ""
		f(func() bool { return true }, "IPC-010")
		f(goesOn, "")
		b, err := os.ReadFile(at.Path)
		st, _ := os.Stat(at.Path)
		if err != nil || string(b) != "zip" || st.Mode() != 0o600 {
			t.Errorf("%v %q %v", err, b, st.Mode())
		}
		if no := p.WriteBundle(at, []byte("other"), goesOn); codeOf(no) != "FS-002" || no.Detail != "exists: b.zip" {
			t.Errorf("a second one: %v", no)
		}
		if b, _ := os.ReadFile(at.Path); string(b) != "zip" {
			t.Errorf("the file has %q", b)
		}
	}
}

func codeOf(f *errcode.Fault) string {
	if f == nil {
		return ""
	}
	return f.Code
}

// TestBundlesFollowNoLink that takes the place of a directory behind its check.
func TestBundlesFollowNoLink(t *testing.T) {
	p, base, out := places(t, Options{})
	at, no := p.Place(base+"/extra/d/b.zip", out)
	if no != nil {
		t.Fatal(no)
	}
	if err := os.Rename(base+"/extra", base+"/moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(base+"/other/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base+"/other", base+"/extra"); err != nil {
		t.Fatal(err)
	}
	if no := p.WriteBundle(at, []byte("zip"), goesOn); no == nil {
		t.Error("written")
	}
	if names, _ := os.ReadDir(base + "/other/d"); len(names) > 0 {
		t.Error(names)
	}
}

// TestTree has the directories and what no rule denies (exacta §4.15).
func TestTree(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"b/c.txt": "", "b/.git/x": "", "a.txt": "", "a/z": "", ".exacta/state.json": "", "no/x": ""})
	p := open(t, root, Options{})
	p.SetDeny(func(path string, dir bool) bool { return dir && path == "no" || path == "no/x" })
	got, no := p.Tree()
	if want := "a.txt a/ a/z b/ b/c.txt"; no != nil || strings.Join(got, " ") != want {
		t.Errorf("%v %v, want %s", got, no, want)
	}
}

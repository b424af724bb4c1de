package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRoots has the search for the root (exacta §4.1).
func TestRoots(t *testing.T) {
	top := canonicalTemp(t)
	deep := strings.Repeat("x/", maxAscent)
	write(t, top, map[string]string{
		"home/go.mod":               "",
		"home/plain/sub/f.txt":      "",
		"home/proj/.git/HEAD":       "",
		"home/proj/a/b/f.txt":       "",
		"home/proj/a/b/Makefile":    "",
		"home/proj/c/f.txt":         "",
		"home/mk/Makefile":          "",
		"home/mk/sub/f.txt":         "",
		"home/lib/deep/L.fsproj":    "",
		"home/lib/deep/u/v/f.txt":   "",
		"home/deep/Cargo.toml":      "",
		"home/deep/" + deep + "f":   "",
		"home/deep/" + deep + "x/f": "",
		"tmp/package.json":          "",
		"tmp/work/f.txt":            "",
	})
	if err := os.Symlink(filepath.Join(top, "home/proj"), filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	home, tmp := filepath.Join(top, "home"), filepath.Join(top, "tmp")
	f := func(path, root string, markers ...string) {
		t.Helper()
		got, found, f := Locate(filepath.Join(top, path), home, tmp, []string{filepath.Join(top, "nothing"), top})
		if f != nil || got != filepath.Join(top, root) || !slices.Equal(found, markers) || found == nil {
			t.Errorf("%s: %s %v %v, want %s %v", path, got, found, f, root, markers)
		}
	}
	f("home/proj", "home/proj", ".git")
	f("home/proj/a/b", "home/proj/a/b", "Makefile") // any marker of the start
	f("home/proj/a", "home/proj", ".git")
	f("home/proj/c/f.txt", "home/proj", ".git")
	f("home/proj/c/", "home/proj", ".git")
	f("link/c", "home/proj", ".git")
	f("home/mk/sub", "home/mk/sub") // a Makefile above is no root
	f("home/lib/deep/u/v", "home/lib/deep", ".csproj")
	f("home/plain/sub", "home/plain/sub") // the home is never considered
	f("tmp/work", "tmp/work")
	f("tmp", "tmp", "package.json")
	f("home", "home", "go.mod")
	f("home/deep/"+strings.TrimSuffix(deep, "/"), "home/deep", "Cargo.toml")
	f("home/deep/"+deep+"x", "home/deep/"+deep+"x") // 33 levels above
}

func TestMarkersInTheirOrder(t *testing.T) {
	root := canonicalTemp(t)
	write(t, root, map[string]string{
		".git/x": "", "build.gradle.kts": "", "pom.xml": "", "pyproject.toml": "", "GNUmakefile": "", "makefile": "",
		"CMakeLists.txt": "", "Cargo.toml": "", "package.json": "", "go.mod": "", "b.vbproj": "", "a.csproj": "",
		"z.sln": "", ".exacta/state.json": "", "Go.mod": "",
	})
	want := []string{
		".exacta", ".sln", ".csproj", "go.mod", "package.json", "Cargo.toml", "CMakeLists.txt", "Makefile",
		"pyproject.toml", "pom.xml", "build.gradle", ".git",
	}
	if got := markersOf(root); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	other := canonicalTemp(t)
	write(t, other, map[string]string{".exacta": "a file", ".git": "gitdir: x", "go.mod/x": ""})
	if got := markersOf(other); !slices.Equal(got, []string{".git"}) {
		t.Errorf("%v", got)
	}
}

// TestRefusedRoots has the checks in their order (exacta §4.1, §8).
func TestRefusedRoots(t *testing.T) {
	top := canonicalTemp(t)
	write(t, top, map[string]string{"a/go.mod": "", "ab/go.mod": "", "file": ""})
	pipe := filepath.Join(top, "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("circle", filepath.Join(top, "circle")); err != nil {
		t.Fatal(err)
	}
	f := func(path, code string, allowed ...string) {
		t.Helper()
		_, _, f := Locate(path, "", "", allowed)
		if f == nil || f.Code != code || strings.Contains(f.Error(), top) {
			t.Errorf("%s: %v, want %s", path, f, code)
		}
	}
	f(top+"/a/../ab", "SEC-001")
	f("/..", "SEC-001")
	f("../x", "SEC-001")
	f("a/b", "FS-003")
	f(top+"/none", "FS-001")
	f(top+"/none/x", "FS-001")
	f(top+"/file/x", "FS-001")
	f(pipe, "FS-003")
	f("/dev/null", "FS-003")
	f("/", "FS-003")
	f(top+"/ab", "FS-003", top+"/a")
	f(top+"/a", "FS-003", top+"/a/b", top+"/ab")
	f(top+"/"+strings.Repeat("n", 300), "FS-001")
	if _, _, f := Locate(top+"/circle", "", "", nil); f == nil {
		t.Error("a circle of links is a root")
	}
	if _, _, f := Locate(top+"/a", "", "", []string{top + "/a"}); f != nil {
		t.Error(f)
	}
	if os.Getuid() != 0 {
		shut := filepath.Join(top, "shut")
		write(t, top, map[string]string{"shut/in/go.mod": ""})
		if err := os.Chmod(shut, 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(shut, 0o755)
		f(shut, "FS-002")
		f(shut+"/in", "FS-002")
	}
}

func TestWithin(t *testing.T) {
	f := func(path, dir string, want bool) {
		t.Helper()
		if Within(path, dir) != want {
			t.Errorf("Within(%q, %q) = %v", path, dir, !want)
		}
	}
	f("/a/b", "/a", true)
	f("/a", "/a", true)
	f("/ab", "/a", false)
	f("/a", "/a/b", false)
	f("/a", "/", true)
	f("/a", "", false)
}

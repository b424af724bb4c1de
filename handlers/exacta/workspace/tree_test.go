package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/projects/relpath"
)

// TestIndexHasRegularFilesInByteOrder (exacta §4.17, last row).
func TestIndexHasRegularFilesInByteOrder(t *testing.T) {
	root, _ := hostile(t)
	deep := strings.Repeat("x/", relpath.MaxComponents-1)
	write(t, root, map[string]string{
		"a/b.txt": "12", "a.txt": "", "a-b/c": "", "a0": "", "bin/x": "", "Z": "", "ü": "", "no/\xff": "", "no/a\nb": "",
		".git/config": "", "sub/.hg/x": "", ".exacta/state.json": "", "sub/.env": "", "sub/f": "",
		deep + "f": "", deep + "y/f": "",
	})
	p := open(t, root, Options{})
	rules := relpath.NewRules(nil, nil, false)
	p.SetDeny(func(path string, dir bool) bool {
		if dir {
			return rules.Prune(path)
		}
		return rules.Denied(path, false)
	})
	files, f := p.Index()
	ok(t, f)
	got := make([]string, len(files))
	for i, file := range files {
		got[i] = fmt.Sprint(file.Path, " ", file.Size)
	}
	want := []string{
		"Z 0", "a-b/c 0", "a.txt 0", "a/b.txt 2", "a0 0", "d/f.txt 1", "real.txt 1", "sub/f 0", deep + "f 0", "ü 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !p.IsDir("a") || p.IsDir("a.txt") || p.IsDir("in") || p.IsDir("none") || p.IsDir("../x") || p.IsDir("a/none/x") {
		t.Error("IsDir")
	}
}

// TestIndexIsBounded: 10 000 files, the first ones in byte order.
func TestIndexIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("10,001 files take seconds")
	}
	t.Parallel()
	root := canonicalTemp(t)
	for i := range MaxIndexed + 1 {
		name := filepath.Join(root, fmt.Sprintf("%05d", MaxIndexed-i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, root, Options{})
	files, f := p.Index()
	ok(t, f)
	if len(files) != MaxIndexed || files[0].Path != "00000" || files[MaxIndexed-1].Path != "09999" {
		t.Errorf("%d files, %v", len(files), files[len(files)-1])
	}
	if err := os.Remove(filepath.Join(root, "05000")); err != nil {
		t.Fatal(err)
	}
	if files, f = p.Index(); f != nil || len(files) != MaxIndexed || files[MaxIndexed-1].Path != "10000" {
		t.Errorf("%d files, %v", len(files), f)
	}
}

// TestMarkersAndRoot are those of the open root.
func TestMarkersAndRoot(t *testing.T) {
	root := canonicalTemp(t)
	write(t, root, map[string]string{"go.mod": ""})
	p := open(t, root, Options{})
	if p.Root() != root || !slices.Equal(p.Markers(), []string{"go.mod"}) {
		t.Errorf("%s %v", p.Root(), p.Markers())
	}
}

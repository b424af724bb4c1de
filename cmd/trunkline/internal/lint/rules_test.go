package lint

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// A rule that cannot fail is decoration: each checker is shown one thing it must find and one it
// must not.

func parseDecls(t *testing.T, src string) goFile {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{path: "x.go", dir: "engine/x", src: src, ast: f}
}

func TestUndocumentedFinds(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		var got []string
		for _, d := range parseDecls(t, src).ast.Decls {
			got = append(got, undocumented(d)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", src, got, want)
		}
	}
	f("func A() {}", "A")
	f("// A is.\nfunc A() {}")
	f("func a() {}")
	f("type t int\nfunc (t) A() {}")
	f("// T is.\ntype T[K any] int\nfunc (*T[K]) A() {}", "A")
	f("type T int", "T")
	f("type (\n\t// T is.\n\tT int\n\tU int\n)", "U")
	f("const (\n\tA = 1\n\tB = 2 // B is.\n)", "A")
	f("// Numbers.\nconst (\n\tA = 1\n\tB = 2\n)")
	f("var V, w = 1, 2", "V")
}

func TestStateFinds(t *testing.T) {
	f := func(src string, want int) {
		t.Helper()
		file := parseDecls(t, src)
		if got := len(findState([]goFile{file})); got != want {
			t.Errorf("%q: %d findings, want %d", src, got, want)
		}
	}
	f("var m sync.Mutex", 1)
	f("var p = sync.Pool{}", 1)
	f("var p = &sync.Pool{}", 1)
	f("var a atomic.Int64", 1)
	f("var a atomic.Pointer[int]", 1)
	f("var m = map[int]int{}\nfunc f() { m[1] = 2 }", 1)
	f("var m = map[int]int{}\nfunc f() { delete(m, 1) }", 1)
	f("var n int\nfunc f() { n++ }", 1)
	f("var n struct{ a int }\nfunc f() { n.a = 1 }", 1)
	f("var n int\nfunc f() { n := 1; n = 2; _ = n }", 0)
	f("var n = 5\nfunc f() int { return n }", 0)
	f("type t struct { mu sync.Mutex }", 0)
	f("func f() { var mu sync.Mutex; mu.Lock() }", 0)
}

func TestWordsFind(t *testing.T) {
	f := func(line string, path, word bool) {
		t.Helper()
		if machinePath.MatchString(line) != path || unfinished.MatchString(line) != word {
			t.Errorf("%q: path %v, word %v", line, machinePath.MatchString(line), unfinished.MatchString(line))
		}
	}
	f("open /"+"root/x", true, false)
	f(`"/`+`home/me/x"`, true, false)
	f("https://example.org/"+"home/x", false, false)
	f("unix:///tmp/x", false, false)
	f("// TO"+"DO: later", false, true)
	f("mktemp file.XX"+"XXXX", false, false)
}

func TestDeadLinksAreFound(t *testing.T) {
	r := &repo{root: repository(t).root, texts: map[string]string{
		"a.md": "# One Two\n\n```\n# not a heading\n```\n## `code` and, more!\n",
	}}
	f := func(target, want string) {
		t.Helper()
		if got := deadLink(r, "a.md", target); got != want {
			t.Errorf("link to %s: %q, want %q", target, got, want)
		}
	}
	f("#one-two", "")
	f("#code-and-more", "")
	f("#not-a-heading", "no such heading")
	f("go.mod", "")
	f("nope.md", "no such file")
	f("https://example.org", "")
}

func TestDirectionsAreWellFormed(t *testing.T) {
	for _, d := range directions {
		if d.why == "" {
			t.Errorf("%v have no reason", d.rooms)
		}
		for _, to := range d.may {
			if storey(to) > storey(d.rooms[0]) {
				t.Errorf("%v may import %s, which is above them", d.rooms, to)
			}
		}
	}
	for _, k := range keepers {
		if k.why == "" || len(k.rooms) == 0 {
			t.Errorf("keeper of %s has no reason or no room", k.pkg)
		}
	}
}

// storey returns the height of a room in the house: codec at the bottom.
func storey(room string) int {
	top, _, _ := strings.Cut(room, "/")
	return slices.Index([]string{"codec", "engine", "handlers", "cmd", "fuzz", "bench"}, top)
}

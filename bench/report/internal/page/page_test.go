package page

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"trunkline/bench/internal/goal"
	"trunkline/bench/report/internal/figures"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected page in testdata with what the tests get")

// measurements are those in testdata, whose figures are made up.
func measurements(t *testing.T) *figures.Set {
	t.Helper()
	set, err := figures.Read(os.DirFS("testdata/data"))
	if err != nil {
		t.Fatal(err)
	}
	set.Asked = map[string]string{"FrameSplit": "How long does it take to split a frame off a read?"}
	return set
}

func build(t *testing.T, set *figures.Set, notes fs.FS) *Page {
	t.Helper()
	p, err := Build(set, notes, "docs/charts")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPage(t *testing.T) {
	p := build(t, measurements(t), os.DirFS("testdata/notes"))
	path := filepath.Join("testdata", "page.md")
	if *rewrite {
		if err := os.WriteFile(path, p.Markdown, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if line := firstDifference(string(want), string(p.Markdown)); line != "" {
		t.Errorf("%s (-rewrite accepts): %s", path, line)
	}
	again := build(t, measurements(t), os.DirFS("testdata/notes"))
	if !bytes.Equal(p.Markdown, again.Markdown) || !maps.EqualFunc(p.Charts, again.Charts, bytes.Equal) {
		t.Error("the same figures gave another page")
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return strings.Join([]string{"want", strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""), "got", strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")}, "\n")
		}
	}
	return ""
}

// TestEveryChartIsShown: what is drawn is linked, and what is linked is drawn.
func TestEveryChartIsShown(t *testing.T) {
	p := build(t, measurements(t), fstest.MapFS{})
	if len(p.Charts) < 8 {
		t.Errorf("%d charts", len(p.Charts))
	}
	for name, svg := range p.Charts {
		if strings.Count(string(p.Markdown), "](docs/charts/"+name+")") != 1 || !bytes.HasPrefix(svg, []byte("<?xml")) {
			t.Errorf("%s is not shown once", name)
		}
	}
	if links := strings.Count(string(p.Markdown), "]("); links != len(p.Charts) {
		t.Errorf("%d links to %d charts", links, len(p.Charts))
	}
}

// TestNothingMeasured: the page of an empty folder invents nothing.
func TestNothingMeasured(t *testing.T) {
	p := build(t, &figures.Set{}, fstest.MapFS{})
	page := string(p.Markdown)
	for _, s := range sources() {
		if !strings.Contains(page, "Not measured: `"+s.command+"` has left no figures.") {
			t.Errorf("nothing says that %s was not measured", s.name)
		}
	}
	if got := strings.Count(page, "| not measured"); got != len(aims())+len(sources()) || len(p.Charts) != 0 {
		t.Errorf("%d rows say that they were not measured, want %d goals and %d sources:\n%s", got, len(aims()), len(sources()), page)
	}
	if strings.ContainsAny(strings.ReplaceAll(page, "docs/charts", ""), "≤≥") {
		t.Error("something was asked of what was not measured")
	}
}

func TestNotes(t *testing.T) {
	set := &figures.Set{Runs: map[string]*figures.Run{"peers": {Goals: []goal.Goal{
		{ID: "G1", Verdict: goal.Miss}, {ID: "G2", Verdict: goal.Pass}, {ID: "G3", Verdict: goal.Miss}}}}}
	page := string(build(t, set, fstest.MapFS{
		"G1.md":     {Data: []byte("Half of it is system calls.\n")},
		"G2.md":     {Data: []byte("It holds.\n")},
		"store.md":  {Data: []byte("\n\nBefore.\n\n\n")},
		"limits.md": {Data: []byte("A network.")},
	}).Markdown)
	for _, want := range []string{"### G1 is missed: why\n\nHalf of it is system calls.\n\n### G3 is missed: why\n\nNot looked into yet.\n\n## Peers",
		"## The store\n\nBefore.\n\nNot measured", "## What it does not show\n\nA network.\n\n## Goals"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "It holds.") {
		t.Error("a goal that holds has its miss explained")
	}
	if _, err := Build(&figures.Set{}, broken{}, "c"); err == nil || !strings.Contains(err.Error(), "cannot read a note") {
		t.Errorf("notes that cannot be read: %v", err)
	}
}

// broken is a folder that cannot be read.
type broken struct{}

func (broken) Open(string) (fs.File, error) { return nil, errors.New("broken disk") }

func TestTidy(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := tidy(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	f("", "")
	f("\n\na\n\n\n\nb\n\n", "a\n\nb\n")
	f("a\n\n\n```\nx\n\n\n\ny\n```\n\n\nb", "a\n\n```\nx\n\n\n\ny\n```\n\nb\n")
}

// TestSourcesAreOnThePage: every kind of figures has a place in the template.
func TestSourcesAreOnThePage(t *testing.T) {
	drawn := []string{"peers", "scale", "questions"}
	for _, s := range sources() {
		if !slices.Contains(drawn, s.name) && !strings.Contains(layout, `{{printed "`+s.name+`"}}`) {
			t.Errorf("%s has no place", s.name)
		}
	}
}

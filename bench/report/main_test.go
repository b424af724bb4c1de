package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a folder like the real one, with one commit and something measured at it.
type repository struct {
	t    *testing.T
	root string
}

func newRepository(t *testing.T) repository {
	r := repository{t, t.TempDir()}
	r.put("bench/report/notes/missed.md", "- **G1**: why.\n")
	r.git("init", "-q")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "m")
	r.measured(r.git("rev-parse", "--short", "HEAD"))
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	args = append([]string{"-C", r.root, "-c", "user.name=n", "-c", "user.email=e"}, args...)
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// measured puts figures of a revision.
func (r repository) measured(revision string) {
	r.t.Helper()
	r.put("bench/data/scale.json", `{"part": "scale", "machine": {"cpus": 2, "revision": "`+revision+`"},
		"goals": [{"goal": "G1", "what": "costs", "measured": 3, "must": 2, "verdict": "MISS"}],
		"charts": [{"name": "rows", "title": "Costs", "x": "rows", "y": "µs", "lines": [{"name": "GetProcess", "points": [{"x": 1, "y": 2}, {"x": 2, "y": 3}]}]}]}`)
}

func (r repository) put(name, text string) {
	r.t.Helper()
	at := filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.root, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// run expects a status, and each of the texts in what is complained; without any it expects no
// complaint.
func (r repository) run(status int, args []string, want ...string) {
	r.t.Helper()
	var complaints strings.Builder
	got := command(append([]string{"-root", r.root}, args...), &complaints)
	if got != status || len(want) == 0 && complaints.Len() > 0 {
		r.t.Fatalf("%q: status %d, want %d: %s", args, got, status, complaints.String())
	}
	for _, w := range want {
		if !strings.Contains(complaints.String(), w) {
			r.t.Errorf("%q: %s, want %q in it", args, complaints.String(), w)
		}
	}
}

func TestWriteAndCheck(t *testing.T) {
	r := newRepository(t)
	check := []string{"-check"}
	r.run(1, check, "BENCHMARKS.md is not what", "docs/charts/rows.svg is not what", "hint: make bench-report")
	if _, err := os.Stat(filepath.Join(r.root, pageFile)); err == nil {
		t.Fatal("a check wrote the page")
	}
	r.run(0, nil)
	r.run(0, check)
	if page := r.read(pageFile); !strings.Contains(page, "- **G1**: why.") || !strings.Contains(page, "](docs/charts/rows.svg)") {
		t.Errorf("the page:\n%s", page)
	}

	r.put(pageFile, r.read(pageFile)+"written by hand\n")
	r.run(1, check, "BENCHMARKS.md")
	r.run(0, nil)
	r.run(0, check)

	r.git("add", ".")
	r.git("commit", "-q", "-m", "m") // the figures are of the commit before
	r.run(0, check)
}

// TestOnlyHistoryIsPublished: figures of other sources are refused, and shown with a warning where
// that is asked for.
func TestOnlyHistoryIsPublished(t *testing.T) {
	r := newRepository(t)
	r.git("checkout", "-q", "-b", "other")
	r.put("a.go", "package a")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "m")
	other := r.git("rev-parse", "--short", "HEAD")
	r.git("checkout", "-q", "-")
	for _, revision := range []string{other, "0123456789ab", "unknown", r.git("rev-parse", "--short", "HEAD") + "-dirty"} {
		r.measured(revision)
		r.run(1, nil, "report: cannot publish scale: of ")
		if _, err := os.Stat(filepath.Join(r.root, pageFile)); err == nil {
			t.Fatal("the page was written")
		}
	}
	r.run(0, []string{"-lenient"})
	r.run(1, []string{"-check"}, "cannot publish scale")
	if page := r.read(pageFile); !strings.Contains(page, "**Not to be published.** scale: of ") {
		t.Errorf("the page:\n%s", page)
	}
}

func TestOldChartsGo(t *testing.T) {
	r := newRepository(t)
	r.run(0, nil)
	r.put("docs/charts/old.svg", "<svg/>")
	r.put("docs/charts/README.md", "kept")
	r.run(1, []string{"-check"}, "docs/charts/old.svg")
	r.run(0, nil)
	r.run(0, []string{"-check"})
	if _, err := os.Stat(filepath.Join(r.root, "docs/charts/old.svg")); err == nil {
		t.Error("a chart that no page shows is still there")
	}
	r.read("docs/charts/README.md")
}

func TestRefuses(t *testing.T) {
	r := newRepository(t)
	r.run(2, []string{"-nonsense"}, "nonsense")
	r.run(2, []string{"-check", "more"}, "cannot run with arguments")
	r.put("bench/data/scale.json", "{")
	r.run(2, nil, "cannot read the figures in scale.json")
	r = newRepository(t)
	r.put("docs/charts", "no folder")
	r.run(2, nil, "cannot make the folder")
}

// TestPageIsUpToDate: the page in the repository is what the files there give.
func TestPageIsUpToDate(t *testing.T) {
	root := "../.."
	shallow, err := exec.Command("git", "-C", root, "rev-parse", "--is-shallow-repository").Output()
	if err != nil || strings.TrimSpace(string(shallow)) != "false" {
		t.Skip("there is no history to find the revisions of the figures in")
	}
	repository{t, root}.run(0, []string{"-check"})
}

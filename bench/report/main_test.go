package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a folder like the real one, with something measured.
type repository struct {
	t    *testing.T
	root string
}

func newRepository(t *testing.T) repository {
	r := repository{t, t.TempDir()}
	r.put("bench/data/soak.txt", "command: make soak\n\nPASS\n")
	r.put("bench/data/scale.json", `{"machine": {"cpus": 2}, "charts": [{"name": "rows", "title": "Costs", "x": "rows", "y": "µs",
		"lines": [{"name": "GetProcess", "points": [{"x": 1, "y": 2}, {"x": 2, "y": 3}]}]}]}`)
	r.put("bench/report/notes/soak.md", "All at once.\n")
	r.put("bench/questions/a_timing_test.go", "package questions\n\n// Question: what?\n\nfunc BenchmarkA(b *testing.B) {}\n")
	return r
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
	if page := r.read(pageFile); !strings.Contains(page, "All at once.\n\n`make soak`:\n\n```\nPASS\n```\n") || !strings.Contains(page, "](docs/charts/rows.svg)") {
		t.Errorf("the page:\n%s", page)
	}

	r.put(pageFile, r.read(pageFile)+"written by hand\n")
	r.run(1, check, "BENCHMARKS.md")
	r.run(0, nil)
	r.run(0, check)

	r.put("bench/data/soak.txt", "FAIL\n")
	r.run(1, check, "BENCHMARKS.md")
	r.run(0, nil)
	if page := r.read(pageFile); !strings.Contains(page, "FAIL") || strings.Contains(page, "PASS") {
		t.Error("the page does not follow its files")
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
		t.Error("a chart that nobody draws is still there")
	}
	r.read("docs/charts/README.md")
}

func TestRefuses(t *testing.T) {
	r := newRepository(t)
	r.run(2, []string{"-nonsense"}, "nonsense")
	r.run(2, []string{"-check", "more"}, "cannot run with arguments")
	r.put("bench/data/scale.json", "{")
	r.run(2, nil, "cannot read the measurements in scale.json")
	r = newRepository(t)
	r.put("docs/charts", "no folder")
	r.run(2, nil, "cannot make the folder")
}

// TestPageIsUpToDate: the page in the repository is what the files there give.
func TestPageIsUpToDate(t *testing.T) {
	repository{t, "../.."}.run(0, []string{"-check"})
}

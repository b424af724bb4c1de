package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Sources of a module with two benchmarks. What it does is in the numbers: how long it works, and
// how much it keeps.
const (
	workSource = `package work

var kept []byte

func spin(n int) (sum int) {
	for i := range n * %d {
		sum ^= i * sum
	}
	return sum
}

func keep() { kept = make([]byte, %d) }
`
	benchSource = `package work

import "testing"

func BenchmarkSpin(b *testing.B) {
	b.Run("n=1k", func(b *testing.B) {
		for b.Loop() {
			spin(1000)
		}
	})
}

func Benchmark%s(b *testing.B) {
	for b.Loop() {
		keep()
	}
	b.ReportMetric(3, "things/op")
}
`
)

// place is a repository with that module, and the working directory of the test.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) *place {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for _, tool := range []string{"git", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("the baseline's sources come out of git by tar:", err)
		}
	}
	// In a hook of git these name the repository that the hook is of.
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	p := &place{t, t.TempDir()}
	t.Chdir(p.dir)
	p.write("go.mod", "module work\n\ngo 1.26\n")
	p.work(1, 64)
	p.write("work/work_test.go", fmt.Sprintf(benchSource, "Keep"))
	p.git("init", "-q")
	p.commit()
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) work(times, bytes int) {
	p.t.Helper()
	p.write("work/work.go", fmt.Sprintf(workSource, times, bytes))
}

func (p *place) git(args ...string) {
	p.t.Helper()
	args = append([]string{"-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		p.t.Fatalf("cannot run git %q: %v\n%s", args, err, out)
	}
}

func (p *place) commit() {
	p.t.Helper()
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "work")
}

// compare runs the command over the module, with what it prints.
func (p *place) compare(update bool, more ...string) (out string, failed bool, err error) {
	p.t.Helper()
	args := append([]string{"-package", "./work", "-baseline", "data/baseline.txt", "-json", "data/report.json", "-benchstat", "",
		"-rounds", "4", "-benchtime", "1ms", "-fail", "30", "-again", "20s"}, more...)
	o, err := parseFlags(args)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(p.t.Context(), 8*time.Minute)
	defer stop()
	var b strings.Builder
	c := comparison{options: o, dir: p.t.TempDir(), out: &b, progress: io.Discard}
	if update {
		err = c.writeBaseline(ctx)
	} else {
		var faults []string
		faults, err = c.compare(ctx)
		failed = len(faults) > 0
	}
	return b.String(), failed, err
}

// want compares, and wants lines of the answer to begin and to go on like these (apart by ": "),
// and no line to begin like those in not.
func (p *place) want(failed bool, lines []string, not []string, more ...string) {
	p.t.Helper()
	out, got, err := p.compare(false, more...)
	if err != nil || got != failed {
		p.t.Fatalf("failed %v, %v, want %v; it printed\n%s", got, err, failed, out)
	}
	for _, line := range lines {
		begin, rest, _ := strings.Cut(line, ": ")
		if !hasLine(out, begin, rest) {
			p.t.Errorf("no line %q in\n%s", line, out)
		}
	}
	for _, begin := range not {
		if hasLine(out, begin, "") {
			p.t.Errorf("a line %q in\n%s", begin, out)
		}
	}
}

func hasLine(out, begin, rest string) bool {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, begin) && strings.Contains(line, rest) {
			return true
		}
	}
	return false
}

// baseline writes and commits it.
func (p *place) baseline() {
	p.t.Helper()
	if out, _, err := p.compare(true); err != nil || !strings.Contains(out, "2 benchmarks of ") {
		p.t.Fatalf("the baseline: %v\n%s", err, out)
	}
	p.commit()
}

func TestComparison(t *testing.T) {
	p := newPlace(t)
	p.want(false, []string{"there is no baseline data/baseline.txt", "2 benchmarks, 4 rounds"}, []string{"what moved"})
	if out, _, err := p.compare(true, "-bench", "Nothing"); err == nil || !strings.Contains(err.Error(), "cannot find benchmarks") {
		t.Errorf("a baseline of nothing: %v\n%s", err, out)
	}
	p.baseline()
	p.want(false, []string{"what moved since : nothing moved in 2 benchmarks"}, []string{"slower", "more", "WARNING"})

	p.work(3, 64)
	p.want(true, []string{"what moved since : 1 of 2 benchmarks", "slower: work/work Spin/n=1k"}, []string{"more", "faster"})
	p.want(true, []string{"slower: work/work Spin/n=1k"}, nil, "-bench", "Spin/n")

	p.work(1, 1024)
	p.want(true, []string{"more: 64 to 1024"}, []string{"less", "gone"}, "-bench", "Keep")

	p.work(1, 0)
	p.write("work/work_test.go", fmt.Sprintf(benchSource, "Other"))
	p.want(false, []string{"new: work/work Other", "gone: work/work Keep"}, []string{"more", "slower"})
	p.want(false, []string{"new: work/work Other"}, []string{"gone"}, "-bench", "Other")
}

func TestReportFile(t *testing.T) {
	p := newPlace(t)
	p.baseline()
	p.work(1, 0)
	p.want(false, []string{"less: 1 to 0", "less: 64 to 0"}, nil, "-bench", "Keep", "-keep", "kept")
	b, err := os.ReadFile("data/report.json")
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Benchmarks) != 1 || r.Rounds != 4 || r.Benchtime != 0.001 || !r.Baseline.Measured || len(r.Baseline.Revision) != 40 {
		t.Fatalf("the report is %s", b)
	}
	e := r.Benchmarks[0]
	if e.key() != (key{"work/work", "Keep"}) || e.Now.Time <= 0 || e.Now.Low > e.Now.High || e.Now.Allocs != 0 || e.Baseline.Bytes != 64 ||
		e.Now.Extra["things/op"] != 3 || e.Change == nil || len(e.Memory) != 2 {
		t.Errorf("the benchmark is %s", b)
	}
	for _, name := range []string{"kept/baseline.txt", "kept/now.txt"} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if text, err := parse(f); err != nil || len(text.results) != 4 {
			t.Errorf("%s has %d results, %v", name, len(text.results), err)
		}
	}
}

// TestWithoutHistory: where the baseline's sources are not to be had, memory is compared with its
// file, and times are not.
func TestWithoutHistory(t *testing.T) {
	p := newPlace(t)
	p.baseline()
	if err := os.RemoveAll(".git"); err != nil {
		t.Fatal(err)
	}
	p.work(3, 64)
	warning := "WARNING: there is no revision "
	p.want(false, []string{warning, "what moved since : nothing moved in 2 benchmarks"}, []string{"slower", "too noisy"})
	p.work(1, 128)
	p.want(true, []string{warning, "more: 64 to 128"}, []string{"slower"})
	p.want(false, []string{warning, "what moved since : nothing moved in 1 benchmarks"}, []string{"gone"}, "-bench", "Spin")
}

func TestBaselineIsOfCommittedSources(t *testing.T) {
	p := newPlace(t)
	p.write("data/figures.json", "{}") // measured: no source
	p.baseline()
	p.work(2, 64)
	if _, _, err := p.compare(true); err == nil || !strings.Contains(err.Error(), "not committed:") || !strings.Contains(err.Error(), "work/work.go") {
		t.Errorf("a baseline of changed sources: %v", err)
	}
	p.write("data/baseline.txt", "BenchmarkX\n")
	if _, _, err := p.compare(false); err == nil || !strings.Contains(err.Error(), "cannot take the baseline") {
		t.Errorf("a broken baseline: %v", err)
	}
}

// TestBrokenSide: what a benchmark complains of is in the error.
func TestBrokenSide(t *testing.T) {
	p := newPlace(t)
	p.write("work/work_test.go", "package work\n\nimport \"testing\"\n\nfunc BenchmarkBad(b *testing.B) { b.Fatal(\"wrong answer\") }\n")
	if _, _, err := p.compare(false); err == nil || !strings.Contains(err.Error(), "wrong answer") {
		t.Errorf("a benchmark that fails: %v", err)
	}
	p.write("work/work.go", "package work\n\nfunc broken\n")
	if _, _, err := p.compare(false); err == nil || !strings.Contains(err.Error(), "work.go:3") {
		t.Errorf("sources that do not compile: %v", err)
	}
}

func TestFlags(t *testing.T) {
	f := func(ok bool, args ...string) {
		t.Helper()
		if _, err := parseFlags(args); (err == nil) != ok {
			t.Errorf("parseFlags(%q): %v", args, err)
		}
	}
	f(true)
	f(true, "-package", "./a", "-package", "./b", "-long")
	f(false, "-rounds", "0")
	f(false, "-benchtime", "0s")
	f(false, "-fail", "-1")
	f(false, "words")
}

func TestPatterns(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	g := group{"./p", "BenchmarkX"}
	f(g.pattern("."), "^BenchmarkX$")
	f(g.pattern("X/rows/4"), "^BenchmarkX$/rows/4")
	f(exactly("BenchmarkX/a+b/c#01"), `^BenchmarkX$/^a\+b$/^c#01$`)
}

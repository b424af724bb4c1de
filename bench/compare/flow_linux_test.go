package compare

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/bench/internal/part"
	"trunkline/fuzz/rounds"
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
	if !rounds.Long() {
		t.Skip("builds and measures pairs of test binaries, in the long form")
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
	p.write("bench/questions/work_test.go", fmt.Sprintf(benchSource, "Keep"))
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
	p.write("bench/questions/work.go", fmt.Sprintf(workSource, times, bytes))
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

// compare runs the part over the module, with what it prints, and returns its report.
func (p *place) compare(status int, more ...string) (r part.Report, out string) {
	p.t.Helper()
	dir := p.t.TempDir()
	args := append([]string{"questions", "-rounds", "4", "-window", "1ms", "-fail", "30", "-again", "20s"}, more...)
	var b strings.Builder
	list := []part.Part{Part()}
	inner := list[0].Run
	list[0].Run = func(run *part.Run) error {
		err := inner(run)
		run.JSON = dir
		return err
	}
	if got := part.Main(list, args, &b, &b); got != status {
		p.t.Fatalf("status %d, want %d; it printed\n%s", got, status, b.String())
	}
	if text, err := os.ReadFile(filepath.Join(dir, "questions.json")); err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			p.t.Fatal(err)
		}
	}
	return r, b.String()
}

// want compares, and wants lines of the answer to contain these parts (apart by " | "), and no line
// to contain those in not.
func (p *place) want(failed bool, lines []string, not []string, more ...string) part.Report {
	p.t.Helper()
	status := 0
	if failed {
		status = 1
	}
	r, out := p.compare(status, more...)
	for _, line := range lines {
		begin, rest, _ := strings.Cut(line, " | ")
		if !hasLine(out, begin, rest) {
			p.t.Errorf("no line %q in\n%s", line, out)
		}
	}
	for _, begin := range not {
		if hasLine(out, begin, "") {
			p.t.Errorf("a line %q in\n%s", begin, out)
		}
	}
	return r
}

func hasLine(out, begin, rest string) bool {
	for line := range strings.Lines(out) {
		if strings.Contains(line, begin) && strings.Contains(line, rest) {
			return true
		}
	}
	return false
}

// baseline sets and commits it.
func (p *place) baseline() {
	p.t.Helper()
	if _, out := p.compare(0, "-update"); !strings.Contains(out, "names this baseline:\nrevision: ") {
		p.t.Fatalf("the baseline: %s", out)
	}
	p.commit()
}

func TestComparison(t *testing.T) {
	p := newPlace(t)
	p.want(false, []string{"there is no baseline bench/data/baseline.txt", "Spin/n=1k"}, []string{"slower", "PASS"})
	p.want(true, []string{"cannot find benchmarks"}, nil, "-only", "Nothing")
	p.baseline()
	r := p.want(false, []string{"Nothing moved in 2 benchmarks", "PASS"}, []string{"slower", "more memory"})
	if row := r.Tables[0].Rows[1]; len(r.Tables) != 1 || len(row) != len(r.Tables[0].Head) || row[0] != "Keep" ||
		row[1].(float64) <= 0 || row[4] != 64.0 || row[7] != 64.0 || row[14] != "3 things/op" {
		t.Errorf("%v", r.Tables)
	}

	p.work(3, 64)
	p.want(true, []string{"FAIL Spin/n=1k is slower: +", "Spin/n=1k | slower: +"}, []string{"more memory", "faster"})
	p.want(true, []string{"FAIL Spin/n=1k is slower"}, nil, "-only", "Spin/n")

	p.work(1, 1024)
	p.want(true, []string{"FAIL Keep uses more memory: 64 to 1024 B/op"}, []string{"less", "gone"}, "-only", "Keep")
	p.work(1, 0)
	p.want(false, []string{"Keep | less memory: 1 to 0 allocs/op", "Keep | less memory: 64 to 0 B/op"}, nil, "-only", "Keep")

	p.write("bench/questions/work_test.go", fmt.Sprintf(benchSource, "Other"))
	p.want(false, []string{"Other | new", "Keep | gone"}, []string{"more memory", "slower"})
	p.want(false, []string{"Other | new"}, []string{"gone"}, "-only", "Other")
}

// TestWithoutHistory: where the baseline's sources are not to be had, nothing is compared.
func TestWithoutHistory(t *testing.T) {
	p := newPlace(t)
	p.baseline()
	if err := os.RemoveAll(".git"); err != nil {
		t.Fatal(err)
	}
	p.work(1, 128)
	p.want(false, []string{"NOT COMPARED: there is no revision ", "Keep"}, []string{"slower", "more memory", "PASS"})
}

func TestBaselineIsOfCommittedSources(t *testing.T) {
	p := newPlace(t)
	p.write("bench/data/figures.json", "{}") // measured: no source
	p.baseline()
	p.work(2, 64)
	p.want(true, []string{"not committed:", "bench/questions/work.go"}, nil, "-update")
	p.write("bench/data/baseline.txt", "BenchmarkX\n")
	p.want(true, []string{"it names no revision"}, nil)
}

// TestBrokenSide: what a benchmark complains of is in the error.
func TestBrokenSide(t *testing.T) {
	p := newPlace(t)
	p.write("bench/questions/work_test.go", "package work\n\nimport \"testing\"\n\nfunc BenchmarkBad(b *testing.B) { b.Fatal(\"wrong answer\") }\n")
	p.want(true, []string{"wrong answer"}, nil)
	p.write("bench/questions/work.go", "package work\n\nfunc broken\n")
	p.want(true, []string{"work.go:3"}, nil)
}

func TestExactly(t *testing.T) {
	if got := exactly("BenchmarkX/a+b/c#01"); got != `^BenchmarkX$/^a\+b$/^c#01$` {
		t.Error(got)
	}
}

package part

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

func TestBenchmarkRows(t *testing.T) {
	row := regexp.MustCompile(`(?m)^Benchmark(A|B)/(\S+?)(?:-\d+)?\s.*\s([0-9.]+) ns/op`)
	f := func(out string, want ...goal.Sample) {
		t.Helper()
		got, err := benchmarked(out, row, func(groups []string) goal.Cell { return goal.Cell{Server: groups[0], Method: groups[1]} })
		if (err == nil) != (len(want) > 0) || !slices.Equal(got, want) {
			t.Errorf("%q: %+v %v, want %+v", out, got, err, want)
		}
	}
	f("goos: linux\nBenchmarkA/x-2  \t  500\t  2000 ns/op\t  94.37 MB/s\nBenchmarkB/y \t 7 \t 250000.5 ns/op\nPASS\n",
		goal.Sample{Cell: goal.Cell{Server: "A", Method: "x"}, PerSec: 500_000}, goal.Sample{Cell: goal.Cell{Server: "B", Method: "y"}, PerSec: 1e9 / 250000.5})
	f("PASS\n")
	f("BenchmarkA/x-2 500 0 ns/op\n")
	f("BenchmarkC/x-2 500 1 ns/op\n")
}

func TestBenchmarkIsRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.24\n", "x_test.go": "package x\n\nimport \"testing\"\n\nfunc BenchmarkX(b *testing.B) {\n\tfor range b.N {\n\t}\n}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &Run{Rig: &load.Rig{Dir: t.TempDir()}}
	row := regexp.MustCompile(`(?m)^Benchmark(X)\S*\s.*?([0-9.]+) ns/op`)
	step, err := r.Benchmark(dir, ".", "X", time.Millisecond, row, func(groups []string) goal.Cell { return goal.Cell{Server: groups[0]} })
	if err != nil {
		t.Fatal(err)
	}
	if all, err := step.Measure(); err != nil || len(all) != 1 || all[0].Cell.Server != "X" || all[0].PerSec <= 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := r.Benchmark(dir, "./none", "X", time.Millisecond, row, nil); err == nil || !strings.Contains(err.Error(), "cannot build") {
		t.Error(err)
	}
}

package part

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
)

// Benchmark builds the benchmarks of a package of the module in a folder, so that no round waits
// for a compiler, and returns the step that runs those of one name for that long each. row finds
// their rows: its last group is nanoseconds for each operation, and cell takes all groups.
func (r *Run) Benchmark(folder, pkg, name string, each time.Duration, row *regexp.Regexp, cell func(groups []string) goal.Cell) (goal.Step, error) {
	file, err := os.CreateTemp(r.Rig.Dir, "benchmark-")
	if err != nil {
		return goal.Step{}, err
	}
	file.Close()
	cmd := exec.Command("go", "test", "-c", "-o", file.Name(), pkg)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return goal.Step{}, fmt.Errorf("cannot build the benchmark of %s: %w\n%s", pkg, err, out)
	}
	return goal.Step{Name: "the benchmark of " + pkg, Measure: func() ([]goal.Sample, error) {
		out, err := exec.Command(file.Name(), "-test.run", "^$", "-test.bench", name, "-test.benchtime", each.String(), "-test.timeout", time.Minute.String()).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("cannot run the benchmark of %s: %w\n%s", pkg, err, out)
		}
		return benchmarked(string(out), row, cell)
	}}, nil
}

// benchmarked reads the rows of a benchmark's report.
func benchmarked(out string, row *regexp.Regexp, cell func(groups []string) goal.Cell) (all []goal.Sample, err error) {
	for _, m := range row.FindAllStringSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(m[len(m)-1], 64)
		if err != nil || ns <= 0 {
			return nil, fmt.Errorf("cannot read %q", m[0])
		}
		all = append(all, goal.Sample{Cell: cell(m[1:]), PerSec: 1e9 / ns})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot find a row in the report of the benchmark: %q", out)
	}
	return all, nil
}

// Package gobench builds the test binaries of Go packages, runs their benchmarks and reads what
// they print.
package gobench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// limit ends a test binary that hangs; filling the largest tables takes seconds.
const limit = 10 * time.Minute

// The units of every benchmark, and that of the processor time, which some report.
const (
	Time      = "ns/op"
	Bytes     = "B/op"
	Allocs    = "allocs/op"
	Processor = "cpu-ns/op"
)

// Binary is the test binary of a package.
type Binary struct {
	path, dir string // dir is the package's folder, in which the binary runs
}

// Build builds the test binary of the package in the folder dir below root, the folder of its
// module, as the file path. The paths of the sources are trimmed off, so that equal sources give
// equal binaries: with other lengths of constants, code and data would lie elsewhere.
func Build(root, dir, path string) (*Binary, error) {
	if _, err := Output(root, "go", "test", "-trimpath", "-c", "-o", path, "./"+filepath.ToSlash(filepath.Clean(dir))); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot find a test in %s: %w", dir, err)
	}
	return &Binary{path, filepath.Join(root, dir)}, nil
}

// List returns the names of the top-level benchmarks that a pattern asks for.
func (b *Binary) List(pattern string) (names []string, err error) {
	top, _, _ := strings.Cut(pattern, "/")
	out, err := Output(b.dir, b.path, "-test.list", top)
	for _, name := range strings.Fields(out) {
		if strings.HasPrefix(name, "Benchmark") {
			names = append(names, name)
		}
	}
	return names, err
}

// Run has a process of its own run the benchmarks that a pattern asks for, each count times, and
// returns their results in the order in which they came. The process runs a copy of the binary:
// where its pages lie in memory makes code some percent faster or slower for as long as they stay
// there, and equal binaries must not differ by that.
func (b *Binary) Run(pattern string, benchtime time.Duration, count int, flags ...string) ([]Result, error) {
	args := append([]string{"-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=" + benchtime.String(), "-test.benchmem",
		"-test.count=" + strconv.Itoa(count), "-test.timeout=" + limit.String()}, flags...)
	fresh := b.path + ".run"
	program, err := os.ReadFile(b.path)
	if err == nil {
		err = os.WriteFile(fresh, program, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot copy a test binary: %w", err)
	}
	defer os.Remove(fresh)
	out, err := Output(b.dir, fresh, args...)
	if err != nil {
		return nil, err
	}
	return parse(out)
}

// Result is what one benchmark showed in one process: the first of its tries, with the least times
// of all.
type Result struct {
	Name   string // without the word Benchmark before it and the number of CPUs behind it
	N      int    // iterations
	Values map[string]float64
}

// parse reads benchmark text (golang.org/design/14313). A line that begins as a result and is none
// is an error, because a figure would be lost; other lines are for people and left out.
func parse(text string) (all []Result, err error) {
	in := benchfmt.NewReader(strings.NewReader(text), "the benchmarks' output")
	for in.Scan() {
		switch line := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("cannot read a result: %w", line)
		case *benchfmt.Result:
			name := line.Name.String()
			if _, parts := line.Name.Parts(); len(parts) > 0 && parts[len(parts)-1][0] == '-' {
				name = strings.TrimSuffix(name, string(parts[len(parts)-1]))
			}
			at := slices.IndexFunc(all, func(r Result) bool { return r.Name == name })
			if at < 0 {
				at, all = len(all), append(all, Result{name, line.Iters, map[string]float64{}})
			}
			all[at].take(line.Values)
		}
	}
	return all, in.Err()
}

// take takes the figures of one try.
func (r *Result) take(try []benchfmt.Value) {
	for _, v := range try {
		if v.OrigUnit != "" { // they become seconds
			v.Value, v.Unit = v.OrigValue, v.OrigUnit
		}
		had, ok := r.Values[v.Unit]
		switch {
		case !ok:
			r.Values[v.Unit] = v.Value
		case v.Unit == Time || v.Unit == Processor:
			r.Values[v.Unit] = min(v.Value, had)
		}
	}
}

// Output runs a command in a folder and returns what it printed, without space around it. An error
// has what the command complained.
func Output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		complaint := out
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			complaint = append(complaint, exit.Stderr...)
		}
		return "", fmt.Errorf("cannot run %s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, complaint)
	}
	return strings.TrimSpace(string(out)), nil
}

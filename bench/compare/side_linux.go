package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
)

// processLimit ends a test binary that hangs; filling the largest tables takes seconds.
const processLimit = 10 * time.Minute

// group is what one process runs: a top-level benchmark of a package with all that is below it,
// because they share their inputs.
type group struct{ dir, name string }

// side is the sources of one revision and what they showed.
type side struct {
	root  string // its module
	bin   string // folder of its test binaries
	short bool   // passed on to the benchmarks
	time  time.Duration
	tries int // of each benchmark in a process

	groups []group
	dirs   map[string]string // of packages by import path, as their processes print it
	seen   *set
}

// build makes the test binary of a package, and lists its benchmarks that bench asks for. The paths
// of the sources are trimmed off, so that equal sources give equal binaries: with other lengths of
// constants, code and data would lie elsewhere.
func (s *side) build(ctx context.Context, dir, bench string) error {
	bin := s.binary(dir)
	if err := os.MkdirAll(s.bin, 0o755); err != nil {
		return fmt.Errorf("cannot make a folder for test binaries: %w", err)
	}
	if _, err := output(ctx, s.root, "go", "test", "-trimpath", "-c", "-o", bin, "./"+filepath.ToSlash(filepath.Clean(dir))); err != nil {
		return err
	}
	if _, err := os.Stat(bin); err != nil {
		return nil // a package without tests has no binary
	}
	top, _, _ := strings.Cut(bench, "/")
	names, err := output(ctx, filepath.Join(s.root, dir), bin, "-test.list", top)
	if err != nil {
		return err
	}
	for name := range strings.Lines(names) {
		if strings.HasPrefix(name, "Benchmark") {
			s.groups = append(s.groups, group{dir, strings.TrimSpace(name)})
		}
	}
	return nil
}

func (s *side) binary(dir string) string {
	return filepath.Join(s.bin, strings.NewReplacer("/", "-", ".", "-").Replace(filepath.Clean(dir))+".test")
}

// has reports whether the sources have the package at all.
func (s *side) has(dir string) bool {
	info, err := os.Stat(filepath.Join(s.root, dir))
	return err == nil && info.IsDir()
}

// run has a process of its own run the benchmarks that pattern asks for, and keeps the fastest try
// of each.
func (s *side) run(ctx context.Context, dir, pattern string) (text, error) {
	args := []string{"-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=" + s.time.String(), "-test.benchmem", "-test.count=" + strconv.Itoa(s.tries),
		"-test.timeout=" + processLimit.String()}
	if s.short {
		args = append(args, "-test.short")
	}
	out, err := output(ctx, filepath.Join(s.root, dir), s.binary(dir), args...)
	if err != nil {
		return text{}, err
	}
	t, err := parse(strings.NewReader(out))
	t.results = fastest(t.results)
	return t, err
}

// step runs a process in each round and keeps what it showed.
func (s *side) step(ctx context.Context, keep *set, dir, pattern string) goal.Step {
	round := 0
	return goal.Step{Name: pattern + " of " + filepath.Join(s.root, dir), Measure: func() ([]goal.Sample, error) {
		t, err := s.run(ctx, dir, pattern)
		if err != nil {
			return nil, err
		}
		for _, r := range t.results {
			s.dirs[r.pkg] = dir
		}
		round++
		return nil, keep.add(round-1, t)
	}}
}

// pattern asks for one top-level benchmark and, below it, what the regular expression of the flag
// asks for.
func (g group) pattern(bench string) string {
	_, below, deeper := strings.Cut(bench, "/")
	if deeper {
		below = "/" + below
	}
	return exactly(g.name) + below
}

// exactly is a pattern for one benchmark, which may be below others.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

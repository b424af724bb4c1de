package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"trunkline/bench/internal/goal"
)

// comparison is one run.
type comparison struct {
	options
	dir           string // goes with the run
	out, progress io.Writer

	now  *side
	base *side  // nil without a baseline
	file text   // the baseline as it is checked in
	lost string // why the sources of the baseline are not there; base then has the figures of the file
}

// open finds the baseline and builds both sides.
func (c *comparison) open(ctx context.Context) error {
	if err := c.buildNow(ctx); err != nil {
		return err
	}
	f, err := os.Open(c.baseline)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(c.out, "there is no baseline %s, so this measures one side only; -update (make bench-baseline) writes one\n", c.baseline)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the baseline: %w", err)
	}
	defer f.Close()
	if c.file, err = parse(f); err != nil {
		return fmt.Errorf("cannot take the baseline %s: %w", c.baseline, err)
	}
	return c.openBase(ctx)
}

// buildNow builds the sources of the working directory, which have to have benchmarks.
func (c *comparison) buildNow(ctx context.Context) error {
	c.now = c.newSide(".", "now")
	for _, dir := range c.packages {
		if err := c.now.build(ctx, dir, c.bench); err != nil {
			return err
		}
	}
	if len(c.now.groups) == 0 {
		return fmt.Errorf("cannot find benchmarks that match %q in %s", c.bench, c.packages)
	}
	return nil
}

// openBase builds the baseline from its sources, or reports that there are none. A package that
// they do not have is new.
func (c *comparison) openBase(ctx context.Context) (err error) {
	c.base = c.newSide(filepath.Join(c.dir, "sources"), "baseline")
	if c.lost, err = sourcesOf(ctx, c.revision(), c.base.root); err != nil {
		return err
	}
	if c.lost != "" {
		fmt.Fprintf(c.out, "WARNING: cannot measure the baseline: %s.\n"+
			"WARNING: its figures are of another run on %s, maybe of another machine: times mean nothing, only memory is compared.\n",
			c.lost, c.file.config["date"])
		return nil
	}
	for _, dir := range c.packages {
		if !c.base.has(dir) {
			continue
		}
		if err := c.base.build(ctx, dir, c.bench); err != nil {
			return fmt.Errorf("cannot build the baseline: %w", err)
		}
	}
	return nil
}

func (c *comparison) revision() string { return c.file.config["revision"] }

func (c *comparison) newSide(root, name string) *side {
	return &side{root: root, bin: filepath.Join(c.dir, name), short: !c.long, time: c.benchtime, tries: c.tries, seen: newSet(), dirs: map[string]string{}}
}

// measure is the first look: all benchmarks, the sides of each in turns, so that a pair is taken
// within moments.
func (c *comparison) measure(ctx context.Context) error {
	sides := []*side{c.now}
	groups := slices.Clone(c.now.groups)
	if c.base != nil {
		sides = []*side{c.base, c.now}
		for _, g := range c.base.groups {
			if !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
	}
	var steps []goal.Step
	for _, g := range groups {
		for _, s := range sides {
			if slices.Contains(s.groups, g) {
				steps = append(steps, s.step(ctx, s.seen, g.dir, g.pattern(c.bench)))
			}
		}
	}
	if _, err := goal.Rounds(c.rounds, steps, c.progress); err != nil {
		return err
	}
	if c.lost != "" {
		c.base.seen = setOf(c.file)
		c.base.seen.keep(c.asked)
	}
	return nil
}

// asked reports whether a benchmark of the file was asked for in this run: if not, it is not gone.
func (c *comparison) asked(k key) bool {
	if c.bench != "." {
		return c.now.seen.of[k] != nil
	}
	_, ok := c.now.dirs[k.pkg]
	return ok
}

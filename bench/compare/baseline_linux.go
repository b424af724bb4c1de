package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"trunkline/bench/internal/load"
)

// writeBaseline measures the committed sources and writes the file. Its figures are for reading,
// and for places without the history: a comparison measures its revision anew.
func (c *comparison) writeBaseline(ctx context.Context) error {
	revision, err := committed(ctx, filepath.Dir(c.baseline))
	if err != nil {
		return err
	}
	if err := c.buildNow(ctx); err != nil {
		return err
	}
	if err := c.measure(ctx); err != nil {
		return err
	}
	m := load.ThisMachine()
	config := maps.Clone(c.now.seen.config)
	maps.Copy(config, map[string]string{
		"revision": revision, "date": m.Date, "go": m.Go, "kernel": m.Kernel, "cpus": strconv.Itoa(m.CPUs),
		"rounds": strconv.Itoa(c.rounds), "benchtime": c.benchtime.String(), "tries": strconv.Itoa(c.tries),
	})
	if err := os.MkdirAll(filepath.Dir(c.baseline), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the baseline: %w", err)
	}
	if err := writeText(c.baseline, c.now.seen.text(config)); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s has %d benchmarks of %s, %d rounds of %v\n", c.baseline, len(c.now.seen.order), short(revision), c.rounds, c.benchtime)
	return nil
}

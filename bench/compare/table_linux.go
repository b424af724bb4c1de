package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// showTable has benchstat compare the two sides, and keeps its input if asked.
func (c *comparison) showTable(ctx context.Context) error {
	dir := c.dir
	if c.keep != "" {
		dir = c.keep
	}
	names, err := c.writeTexts(dir)
	if err != nil || c.benchstat == "" {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"-C", c.benchstat, "tool", "benchstat"}, names...)...)
	cmd.Stdout, cmd.Stderr = c.out, c.progress
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(c.out, "WARNING: cannot run benchstat (%v), so its table is left out; it does not decide what moved.\n", err)
	}
	return ctx.Err()
}

// writeTexts writes what each side showed to a file and returns the arguments that give them to
// benchstat.
func (c *comparison) writeTexts(dir string) (args []string, err error) {
	if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make the folder of the benchmark texts: %w", err)
	}
	sides := []*side{c.base, c.now}
	for i, name := range []string{"baseline", "now"} {
		if sides[i] == nil {
			continue
		}
		// Nothing else that is known of a side, because benchstat compares only what is configured
		// alike.
		known := map[string]string{}
		for _, k := range []string{"goos", "goarch", "cpu"} {
			known[k] = sides[i].seen.config[k]
		}
		path := filepath.Join(dir, name+".txt")
		args = append(args, name+"="+path)
		if err := writeText(path, sides[i].seen.text(known)); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func writeText(path string, t text) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write benchmark text: %w", err)
	}
	if err := errors.Join(t.write(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write benchmark text to %s: %w", path, err)
	}
	return nil
}

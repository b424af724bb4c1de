package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// files is what belongs in the repository, by path with slashes.
type files map[string][]byte

// write puts every file in its place and removes charts that are drawn no longer.
func (f files) write(root string) error {
	old, err := f.surplus(root)
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return fmt.Errorf("cannot remove an old chart: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fmt.Errorf("cannot make the folder of a chart: %w", err)
		}
		if err := os.WriteFile(at, f[name], 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}

// stale lists files that differ, are missing, or are charts that are drawn no longer.
func (f files) stale(root string) ([]string, error) {
	list, err := f.surplus(root)
	if err != nil {
		return nil, err
	}
	for name, want := range f {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		if err != nil || !bytes.Equal(got, want) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// surplus lists the charts in the repository that are none of f.
func (f files) surplus(root string) (list []string, err error) {
	charts, err := filepath.Glob(filepath.Join(root, chartsFolder, "*.svg"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the charts: %w", err)
	}
	for _, at := range charts {
		name := chartsFolder + "/" + filepath.Base(at)
		if _, ok := f[name]; !ok {
			list = append(list, name)
		}
	}
	return list, nil
}

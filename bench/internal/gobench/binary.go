package gobench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// limit ends a test binary that hangs; filling the largest tables takes seconds.
const limit = 10 * time.Minute

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
	if err := copyFile(b.path, fresh); err != nil {
		return nil, fmt.Errorf("cannot copy a test binary: %w", err)
	}
	defer os.Remove(fresh)
	out, err := Output(b.dir, fresh, args...)
	if err != nil {
		return nil, err
	}
	return parse(out)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
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

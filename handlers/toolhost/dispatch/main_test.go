package dispatch

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// installation is a root with the real program in it, linked under the names that its callers know. Empty with -short.
var installation string

// TestMain builds the program once.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	if testing.Short() {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "dispatch")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := install(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	installation = dir
	return m.Run()
}

func install(dir string) error {
	build := filepath.Join(dir, "build")
	if err := os.Mkdir(build, 0o755); err != nil {
		return err
	}
	program := filepath.Join(build, "trunkline")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", program, "trunkline/cmd/trunkline").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the program: %w\n%s", err, out)
	}
	for _, name := range []string{"machina_cli", "machina_toolhost"} {
		if err := os.Symlink("trunkline", filepath.Join(build, name)); err != nil {
			return err
		}
	}
	return nil
}

// root returns the installation, or skips.
func root(t *testing.T) string {
	t.Helper()
	if installation == "" {
		t.Skip("needs the real program, which -short does not build")
	}
	return installation
}

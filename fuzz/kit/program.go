package kit

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// built is the environment variable with the absolute path of the program, which make builds before
// the tests. It has no TRUNKLINE_ in front: programs that tests start warn of names that look like
// settings.
const built = "TEST_BINARY"

var building sync.Mutex

// Program returns the program that is shipped: that of TEST_BINARY, or else one that the first call
// builds into dir. Tests call it, not TestMain: go test knows its results by the variables and the
// files that were looked at while tests ran, and an older program's must not stand for a newer one.
func Program(t testing.TB, dir string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := os.Getenv(built)
	if path == "" {
		path = filepath.Join(dir, "trunkline")
		if _, err := os.Stat(path); err != nil {
			Build(t, path, "tested")
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Build builds the program with a version, as the Makefile does.
func Build(t testing.TB, path, version string) {
	t.Helper()
	flags := "-s -w -X main.version=" + version
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		flags += " -E main.entry"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", path, "trunkline/cmd/trunkline")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the program: %v\n%s", err, out)
	}
}

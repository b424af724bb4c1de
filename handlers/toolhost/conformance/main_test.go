package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the built binary, worker an external tool, scratch the directory that goes away with
// the test process.
var program, worker, scratch string

// roles are what else CONFORMANCE_WORKER can make of the test binary.
var roles = map[string]func() int{}

// TestMain builds the program as it is shipped. The external tool of the manifests in
// testdata/files is this package's test binary; it is built without cgo, whose threads need more
// address space than a worker has.
func TestMain(m *testing.M) {
	switch role := os.Getenv("CONFORMANCE_WORKER"); {
	case role == "":
		os.Exit(buildAndRun(m))
	case roles[role] != nil:
		os.Exit(roles[role]())
	}
	os.Exit(workerMain(os.Stdin, os.Stdout, os.Stderr))
}

func buildAndRun(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "thc"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	worker = filepath.Join(scratch, "worker")
	if !goTool("test", "-c", "-o", worker, ".") {
		return 1
	}
	if program = os.Getenv("CONFORMANCE_PROGRAM"); program == "" {
		program = filepath.Join(scratch, "trunkline")
		if !goTool("build", "-trimpath", "-ldflags", "-s -w", "-o", program, "trunkline/cmd/trunkline") {
			return 1
		}
	}
	return m.Run()
}

func goTool(args ...string) bool {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "go %s: %v\n%s", args[0], err, out)
	}
	return err == nil
}

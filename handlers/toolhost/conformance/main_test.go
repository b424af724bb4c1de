package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// worker is an external tool, scratch the directory that goes away with the test process, with what
// is built.
var worker, scratch string

// roles are what else CONFORMANCE_WORKER can make of the test binary.
var roles = map[string]func() int{}

// TestMain makes the external tool of the manifests in testdata/files, which is this package's test
// binary. Where that has cgo, another is built without: its threads need more address space than a
// worker has.
func TestMain(m *testing.M) {
	switch role := os.Getenv("CONFORMANCE_WORKER"); {
	case role == "":
		os.Exit(makeAndRun(m))
	case roles[role] != nil:
		os.Exit(roles[role]())
	}
	os.Exit(workerMain(os.Stdin, os.Stdout, os.Stderr))
}

func makeAndRun(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "thc"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		worker, err = os.Executable()
	} else {
		worker = filepath.Join(scratch, "worker")
		cmd := exec.Command("go", "test", "-c", "-ldflags=-w", "-o", worker, ".")
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make the worker:", err)
		return 1
	}
	return m.Run()
}

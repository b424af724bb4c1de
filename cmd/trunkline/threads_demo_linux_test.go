package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// TestThreadsDemo runs the demo: three agents in three languages, and two kills of the server.
func TestThreadsDemo(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"python3", "node", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "docs/threads-demo/run"))
	cmd.Env = append(os.Environ(), "BINARY="+kit.Program(t, t.TempDir()))
	cmd.WaitDelay = 10 * time.Second
	out := &kit.Text{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "no message is missing and none is there twice") ||
		strings.Count(out.String(), "the server is killed") != 2 {
		t.Fatalf("%v: %s", err, out)
	}
}

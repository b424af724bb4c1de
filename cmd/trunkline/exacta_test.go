package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestAReaderOfProjectsThatWentAway: it is a failed write, after which executions pause, and no
// death by SIGPIPE in the middle of a step.
func TestAReaderOfProjectsThatWentAway(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := exec.Command(os.Args[0], "exacta", "serve")
	cmd.Args[0] = "trunkline" // see TestMain
	cmd.Stdin = strings.NewReader("{\n")
	var talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &talk
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(talk.String(), "cannot write to stdout") {
		t.Errorf("%v, stderr %s", err, talk.String())
	}
}

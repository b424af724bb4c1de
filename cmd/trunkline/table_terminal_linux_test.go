package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestTablesOnATerminal: the longest table of all fits a narrow terminal, and is one line per
// method on a wide one.
func TestTablesOnATerminal(t *testing.T) {
	for columns, shown := range map[int]string{
		80:  "kernel.Ping",
		200: "kernel.Ping                       Echo a value and show the server's version, limits and extensions.",
	} {
		cmd := exec.Command(os.Args[0], "call", "--list")
		cmd.Args[0] = "trunkline" // see TestMain
		cmd.Env = []string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
		r := onTerminal(t, columns, 200, cmd)
		r.wantEnd(0)
		r.wantShown(shown)
		if n := r.State().Overflow; n > 0 {
			t.Errorf("%d columns: %d characters beyond the edge", columns, n)
		}
	}
}

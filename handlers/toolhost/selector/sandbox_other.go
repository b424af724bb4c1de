//go:build !linux

package selector

import (
	"os"
	"os/exec"
)

// The limits, the group and the parent-death signal need Linux; elsewhere the process runs without, which toolhost §4.8 allows as the
// best effort, and only the process itself is ended.

func isolate(*exec.Cmd) {}

func restrict(int, *limits) {}

// kill ends the process, if it is not gone.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = c.cmd.Process.Kill()
	}
}

// reap waits for the process and lets go of it. Kill knows by itself whether it is gone.
func (c *child) reap() {
	_ = c.cmd.Wait() // how it ended is in ProcessState
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
}

func signalCode(*os.ProcessState) int { return -1 }

//go:build !unix

package procgroup

import "os/exec"

// Isolate does nothing where there are no process groups: only the process itself is ended.
func Isolate(*exec.Cmd) {}

// Reap waits for the process; how it ended is in Cmd.ProcessState.
func (c *Child) Reap() {
	_ = c.Cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
}

func (c *Child) killGroup() { _ = c.Cmd.Process.Kill() }

//go:build unix && !linux

package procgroup

import (
	"os/exec"
	"syscall"
)

// Isolate gives the process its own group, so that all of it can be ended. Before Start.
func Isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Reap waits for the process and ends what is left of its group; how it ended is in Cmd.ProcessState. There is no way here to learn of
// the end without letting go of the number; a group that still has members keeps it from being given away.
func (c *Child) Reap() {
	_ = c.Cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	c.killGroup()
}

func (c *Child) killGroup() { _ = syscall.Kill(-c.Cmd.Process.Pid, syscall.SIGKILL) }

//go:build unix && !linux

package dispatch

import (
	"os/exec"
	"sync"
	"syscall"
)

// child is a process that was started, and its group.
type child struct {
	cmd *exec.Cmd

	mu     sync.Mutex
	reaped bool
}

// isolate gives the process its own group, so that all of it can be ended.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the process and its group, if they are not gone.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.killGroup()
	}
}

// reap waits for the process and ends what is left of its group. There is no way here to learn of the end without letting go of the
// number; a group that still has members keeps it from being given away.
func (c *child) reap() {
	_ = c.cmd.Wait() // how it ended is in ProcessState
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	c.killGroup()
}

func (c *child) killGroup() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

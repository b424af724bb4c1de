package dispatch

import (
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// child is a process that was started, and its group.
type child struct {
	cmd *exec.Cmd

	mu     sync.Mutex // between killing and reaping, after which the number may be somebody else's
	reaped bool
}

// isolate gives the process its own group, so that all of it can be ended, and lets it end with the caller.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the process and its group, if they are not gone.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.killGroup()
	}
}

// reap waits for the process, ends what is left of its group, and lets go of it. Until it is reaped its number, and so that of its
// group, is nobody else's: that is why the group is ended first.
func (c *child) reap() {
	for unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killGroup()
	_ = c.cmd.Wait() // how it ended is in ProcessState
	c.reaped = true
}

func (c *child) killGroup() { _ = unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL) }

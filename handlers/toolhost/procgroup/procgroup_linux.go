package procgroup

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Isolate gives the process its own group, so that all of it can be ended, and lets it end with this program. Before Start.
func Isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Reap waits for the process, ends what is left of its group, and lets go of it; how it ended is in Cmd.ProcessState. Until it is reaped
// its number, and so that of its group, is nobody else's: that is why the group is ended first.
func (c *Child) Reap() {
	for unix.Waitid(unix.P_PID, c.Cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killGroup()
	_ = c.Cmd.Wait()
	c.reaped = true
}

func (c *Child) killGroup() { _ = unix.Kill(-c.Cmd.Process.Pid, unix.SIGKILL) }

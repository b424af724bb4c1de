package selector

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate gives the process its own group, so that all of it can be ended, and lets it end with the server.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// restrict sets the resource limits of a process that has just been started, as far as that is allowed: a limit is lowered to what
// was asked for, never raised.
func restrict(pid int, l *limits) {
	for _, r := range [...]struct {
		what int
		most uint64
	}{
		{unix.RLIMIT_CPU, l.cpu}, {unix.RLIMIT_AS, l.as}, {unix.RLIMIT_FSIZE, l.fsize}, {unix.RLIMIT_NOFILE, l.nofile}, {unix.RLIMIT_NPROC, l.nproc},
	} {
		var now unix.Rlimit
		if r.most == 0 || unix.Prlimit(pid, r.what, nil, &now) != nil {
			continue
		}
		now.Max = min(now.Max, r.most)
		now.Cur = min(now.Cur, now.Max)
		_ = unix.Prlimit(pid, r.what, &now, nil)
	}
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

// signalCode returns what a shell calls the exit code of a process that a signal ended.
func signalCode(s *os.ProcessState) int {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return -1
	}
	return 128 + int(status.Signal())
}

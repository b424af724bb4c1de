package kit

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts a program that must not outlive the tests: the system kills it when they end, by the
// time limit of go test as well. The caller waits for it.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death of the thread that starts it is what counts
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		var pid int
		if err == nil {
			pid = cmd.Process.Pid
		}
		started <- err
		for err = unix.EINTR; pid != 0 && errors.Is(err, unix.EINTR); {
			err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		}
	}()
	return <-started
}

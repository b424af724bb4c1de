package procgroup

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func isolated() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until the process has ended, and leaves it to be reaped: until then its number,
// and so that of its group, is that of no other process. A handle that the poller waits for saves a
// thread for each process; kernels without one cost the thread.
func awaitExit(p *os.Process) *os.ProcessState {
	if fd, err := unix.PidfdOpen(p.Pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer func() { _ = f.Close() }() // only waited for
		if c, err := f.SyscallConn(); err == nil && c.Read(func(uintptr) bool { return exited(p.Pid, unix.WNOHANG) }) == nil {
			return nil
		}
	}
	for !exited(p.Pid, 0) {
		continue
	}
	return nil
}

// exited reports whether the process has ended; it leaves it to be reaped.
func exited(pid, how int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|how, nil)
	return err == unix.ECHILD || err == nil && info.Signo != 0
}

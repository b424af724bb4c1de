package workers

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// shimmed: programs are started through the shim here, which sets their limits.
const shimmed = true

// startProcess starts a process in a group of its own, which ends when the thread of the spawner does.
func startProcess(j *spawnJob) (*os.Process, error) {
	j.attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return os.StartProcess(j.file, j.argv, j.attr)
}

// self returns a path of this program that holds though its file was replaced.
func self() (string, error) { return "/proc/self/exe", nil }

// killGroup ends every process of the group. The caller knows that its leader is not reaped yet.
func killGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

// reap waits for the end of the process, ends what is left of its group, and takes its state. The lock is what signals are sent
// under: as long as the leader is not reaped, its number belongs to nobody else.
func reap(p *os.Process, mu *sync.Mutex, reaped *bool) *os.ProcessState {
	awaitExit(p.Pid)
	mu.Lock()
	defer mu.Unlock()
	killGroup(p.Pid)
	st, _ := p.Wait() // no state is judged as a kill
	*reaped = true
	return st
}

// awaitExit waits until the process has ended, and leaves it to be reaped. A handle that the poller waits for saves a thread for each
// worker; kernels without one cost the thread.
func awaitExit(pid int) {
	if fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer func() { _ = f.Close() }() // only waited for
		if c, err := f.SyscallConn(); err == nil && c.Read(func(uintptr) bool { return exited(pid, unix.WNOHANG) }) == nil {
			return
		}
	}
	for !exited(pid, 0) {
		continue
	}
}

// exited reports whether the process has ended; it leaves it to be reaped.
func exited(pid, how int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|how, nil)
	return err == unix.ECHILD || err == nil && info.Signo != 0
}

package procgroup

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

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

// Adopts reports whether processes whose parents have ended become children of this one: it is the first of its PID namespace, as in a
// container, or a child sub-reaper. Both are settled before a program begins.
func Adopts() bool {
	var reaper int32
	// unix.Prctl would not keep the pointer: it is a Go function, in which the stack may move.
	_, _, code := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&reaper)), 0, 0, 0, 0)
	return os.Getpid() == 1 || code == 0 && reaper != 0
}

// ReapOrphans lets go of every adopted process that has ended, so that none stays a zombie. It returns never. The main goroutine must
// call it, locked to its thread since the program's init.
//
// It takes no child from those who wait for one: the kernel keeps the children of each thread apart, and puts what the process adopts
// to those of the main thread. No other goroutine runs there, so nothing is started from there, and only children of this thread are
// looked at. Kernels from before 3.19 put an orphan to the thread that its ancestor was started from, unless the process is the first of
// its namespace: there it stays a zombie.
func ReapOrphans() {
	ended := make(chan os.Signal, 1) // the one that waits stands for all
	signal.Notify(ended, unix.SIGCHLD)
	for {
		for reapOrphan() {
			continue
		}
		<-ended
	}
}

// reapOrphan reports whether there may be more to reap.
func reapOrphan() bool {
	pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WNOTHREAD, nil)
	return pid > 0 || err == unix.EINTR
}

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

// awaitExit waits until the process has ended and leaves it to be reaped, so that no other has its
// number. A handle for the poller saves a thread for each process, where the kernel has one.
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

// Adopts reports whether orphans become children of this process: as the first of its PID namespace
// (in a container) or a child sub-reaper. Both are settled before a program begins.
func Adopts() bool {
	var reaper int32
	// unix.Prctl would not keep the pointer: it is a Go function, in which the stack may move.
	_, _, code := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&reaper)), 0, 0, 0, 0)
	return os.Getpid() == 1 || code == 0 && reaper != 0
}

// ReapOrphans reaps every adopted process that has ended. It never returns. The main goroutine must
// call it, locked to its thread since the program's init.
//
// It takes no child from those who wait for one: the kernel keeps children by thread and gives
// adopted ones to the main thread, from which nothing is started, and only its children are looked
// at. Kernels before 3.19 give an orphan to its ancestor's thread: it may stay a zombie there.
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

func reapOrphan() bool {
	pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WNOTHREAD, nil)
	return pid > 0 || err == unix.EINTR
}

package procgroup

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

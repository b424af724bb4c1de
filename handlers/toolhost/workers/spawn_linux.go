package workers

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// startProcess starts a process whose limits hold from its first instruction on: it is traced, so that it stops where its program
// begins, is given its limits, and let go. Only the thread that started it may do that, which is the spawner's. Where tracing is not
// permitted the limits come right after the start.
func startProcess(j *spawnJob) (*os.Process, error) {
	traced := j.limits != Limits{}
	proc, err := fork(j, traced)
	if traced && errors.Is(err, syscall.EPERM) {
		traced = false
		proc, err = fork(j, traced)
	}
	if err != nil {
		return nil, err
	}
	stopped := traced && awaitStop(proc.Pid)
	setLimits(proc.Pid, j.limits)
	if stopped {
		if err := unix.PtraceDetach(proc.Pid); err != nil && err != unix.ESRCH {
			_ = unix.Kill(proc.Pid, unix.SIGKILL) // it would stand still for ever
		}
	}
	return proc, nil
}

func fork(j *spawnJob, traced bool) (*os.Process, error) {
	j.attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Ptrace: traced}
	return os.StartProcess(j.file, j.argv, j.attr)
}

// awaitStop waits until the process stands at its first instruction; false means that it has ended before. It leaves the end of the
// process to whoever reaps it.
func awaitStop(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		return err == nil && info.Code == cldTrapped
	}
}

// cldTrapped is CLD_TRAPPED of siginfo: a traced process has stopped.
const cldTrapped = 4

// setLimits is best effort: a limit above what the server itself has is not permitted, and then the server's own holds.
func setLimits(pid int, l Limits) {
	for _, r := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_AS, l.AddressSpace},
		{unix.RLIMIT_CPU, l.CPU},
		{unix.RLIMIT_FSIZE, l.FileSize},
		{unix.RLIMIT_NOFILE, l.OpenFiles},
	} {
		if r.value > 0 {
			_ = unix.Prlimit(pid, r.resource, &unix.Rlimit{Cur: uint64(r.value), Max: uint64(r.value)}, nil)
		}
	}
}

// byDescriptor returns a path that a process with the given streams is started by, whatever is at the file's own path by then; held
// must be closed after the start. The process does not get the descriptor: it is closed when the program begins. nil: there is no
// such path here.
func byDescriptor(f *os.File, streams []*os.File) (path string, held *os.File) {
	// Between fork and exec, descriptors right above the highest stream may be put to other use.
	above := uintptr(0)
	for _, s := range streams {
		above = max(above, s.Fd())
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, int(above)+2*len(streams))
	if err != nil {
		return "", nil
	}
	held, path = os.NewFile(uintptr(fd), f.Name()), "/proc/self/fd/"+strconv.Itoa(fd)
	if unix.Access(path, unix.X_OK) != nil {
		_ = held.Close() // only read
		return "", nil
	}
	return path, held
}

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

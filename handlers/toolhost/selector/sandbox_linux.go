package selector

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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

// signalCode returns what a shell calls the exit code of a process that a signal ended.
func signalCode(s *os.ProcessState) int {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return -1
	}
	return 128 + int(status.Signal())
}

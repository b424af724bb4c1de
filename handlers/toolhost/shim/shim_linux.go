package shim

import (
	"os"
	"strconv"
	"syscall"
)

// prSetNoNewPrivs is PR_SET_NO_NEW_PRIVS: no program that the process starts has more rights than it has.
const prSetNoNewPrivs = 38

// resources are those of Limits.fields. The address space comes last: the least is done under it.
var resources = [...]int{syscall.RLIMIT_DATA, syscall.RLIMIT_CPU, syscall.RLIMIT_FSIZE, syscall.RLIMIT_NOFILE, syscall.RLIMIT_AS}

// confine is best effort: a limit above what the server itself has is not permitted, and then the server's own holds.
func confine(l *Limits) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0) // kernels from before 3.5 have none
	for i, value := range l.fields() {
		if *value > 0 {
			_ = syscall.Setrlimit(resources[i], &syscall.Rlimit{Cur: uint64(*value), Max: uint64(*value)})
		}
	}
}

// become starts the program in place of this one. It returns never.
func become(l *Limits, path string, argv []string) {
	syscall.CloseOnExec(StatusFD)
	if path == ByDescriptor {
		syscall.CloseOnExec(ProgramFD)
	}
	env := os.Environ()
	confine(l)
	err := syscall.Exec(path, argv, env)
	code, _ := err.(syscall.Errno)
	_, _ = syscall.Write(StatusFD, []byte(strconv.Itoa(int(code)))) // the server sees the end of the process if not this
	os.Exit(failedCode)
}

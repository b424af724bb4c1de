package shim

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// prSetNoNewPrivs is PR_SET_NO_NEW_PRIVS: no program that the process starts has more rights than it has.
const prSetNoNewPrivs = 38

// rlimitNproc is RLIMIT_NPROC.
const rlimitNproc = 6

// resources are those of Limits.fields. The address space comes last: the least is done under it.
var resources = [...]int{syscall.RLIMIT_DATA, syscall.RLIMIT_CPU, syscall.RLIMIT_FSIZE, syscall.RLIMIT_NOFILE, rlimitNproc, syscall.RLIMIT_AS}

// confine lowers limits and never raises one, which root could. It does not allocate.
func confine(l *Limits) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0) // kernels from before 3.5 have none
	for i, value := range l.fields() {
		var now syscall.Rlimit
		if *value > 0 && syscall.Getrlimit(resources[i], &now) == nil {
			most := min(now.Max, uint64(*value))
			_ = syscall.Setrlimit(resources[i], &syscall.Rlimit{Cur: most, Max: most})
		}
	}
}

// become starts the program in place of this one. It returns never. A limited address space may be smaller than what this process has
// already: between the limits and the program nothing is allocated, and no thread begins.
func become(l *Limits, path string, argv []string) {
	syscall.CloseOnExec(StatusFD)
	if path == ByDescriptor {
		syscall.CloseOnExec(ProgramFD)
	}
	file, err := syscall.BytePtrFromString(path)
	args, err1 := syscall.SlicePtrFromStrings(argv)
	env, err2 := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil || err1 != nil || err2 != nil { // a NUL, which no process can be given
		fail(make([]byte, 1), syscall.EINVAL)
	}
	report := make([]byte, 1)
	runtime.GOMAXPROCS(1)
	confine(l)
	_, _, code := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(file)), uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&env[0])))
	fail(report, code)
}

// fail reports why the program could not be started: by the number of the error.
func fail(report []byte, code syscall.Errno) {
	report[0] = byte(code)
	_, _ = syscall.Write(StatusFD, report) // the server sees the end of the process if not this
	os.Exit(failedCode)
}

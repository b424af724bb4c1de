package workerexec

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Enabled reports whether programs are started through this package.
const Enabled = true

// Self returns a path of this program that holds though its file was replaced.
func Self() (string, error) { return "/proc/self/exe", nil }

const (
	// prSetNoNewPrivs is PR_SET_NO_NEW_PRIVS: no program gains rights.
	prSetNoNewPrivs = 38
	rlimitNproc     = 6
)

// resources are those of Limits.fields. The address space comes last: the least is done under it.
var resources = [...]uintptr{syscall.RLIMIT_DATA, syscall.RLIMIT_CPU, syscall.RLIMIT_FSIZE, syscall.RLIMIT_NOFILE, rlimitNproc, syscall.RLIMIT_AS}

// confine sets the limits of a process that stays what it is.
func confine(limits string) {
	if text, err := syscall.BytePtrFromString(limits); err == nil {
		limit(text)
	}
}

// become starts the program in place of this one and never returns. A limited address space may be
// too small already: after the limits nothing is allocated, and no thread begins.
func become(limits, path string, argv []string) {
	text, err := syscall.BytePtrFromString(limits)
	file, err1 := syscall.BytePtrFromString(path)
	args, err2 := syscall.SlicePtrFromStrings(argv)
	env, err3 := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil || err1 != nil || err2 != nil || err3 != nil { // a NUL
		fail(syscall.EINVAL)
	}
	runtime.GOMAXPROCS(1)
	replace(text, file, unsafe.Pointer(&args[0]), unsafe.Pointer(&env[0]))
}

// What follows may run before the Go runtime begins: it has no goroutine and no heap, and uses
// system calls and the stack only. It must not be instrumented.

// Replace makes the process the program that its arguments ask for, if they do. stack is what the
// kernel starts a process with: argc, the arguments, nil, the environment, nil.
//
//go:nosplit
//go:norace
//go:nocheckptr
func Replace(stack unsafe.Pointer) {
	argc := *(*uintptr)(stack)
	argv := unsafe.Add(stack, unsafe.Sizeof(argc))
	if argc < 5 || !isVerb(argument(argv, 1)) {
		return
	}
	if path := argument(argv, 3); *path != 0 {
		replace(argument(argv, 2), path, unsafe.Add(argv, 4*unsafe.Sizeof(argc)), unsafe.Add(argv, (argc+1)*unsafe.Sizeof(argc)))
	}
}

// argument returns argument i, which ends with a NUL.
//
//go:nosplit
//go:norace
//go:nocheckptr
func argument(argv unsafe.Pointer, i uintptr) *byte {
	return *(**byte)(unsafe.Add(argv, i*unsafe.Sizeof(argv)))
}

// isVerb reports whether text is Verb.
//
//go:nosplit
//go:norace
//go:nocheckptr
func isVerb(text *byte) bool {
	for i := range len(Verb) {
		if *text != Verb[i] {
			return false
		}
		text = next(text)
	}
	return *text == 0
}

//go:nosplit
//go:norace
//go:nocheckptr
func next(text *byte) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(text), 1)) }

// number returns the number that text begins with, 0 if none, and what follows it and a comma.
//
//go:nosplit
//go:norace
//go:nocheckptr
func number(text *byte) (n uint64, rest *byte) {
	for ; '0' <= *text && *text <= '9'; text = next(text) {
		n = n*10 + uint64(*text-'0')
	}
	if *text == ',' {
		text = next(text)
	}
	return n, text
}

// limit is best effort. It lowers limits and never raises one, which root could.
//
//go:nosplit
//go:norace
//go:nocheckptr
func limit(text *byte) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
	for i := range resources {
		most, rest := number(text)
		text = rest
		if most == 0 {
			continue
		}
		var now syscall.Rlimit
		if _, _, err := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, resources[i], 0, uintptr(unsafe.Pointer(&now)), 0, 0); err != 0 {
			continue
		}
		now.Max = min(now.Max, most)
		now.Cur = now.Max
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, resources[i], uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	}
}

// replace limits the process and makes it the program at path. It returns never.
//
//go:nosplit
//go:norace
//go:nocheckptr
func replace(limits, path *byte, argv, env unsafe.Pointer) {
	for fd := uintptr(StatusFD); fd <= programFD; fd++ { // fails for one that is not there
		_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, syscall.FD_CLOEXEC)
	}
	limit(limits)
	_, _, code := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(argv), uintptr(env))
	fail(code)
}

// fail ends the process, and reports by the number of the error why the program did not start.
//
//go:nosplit
//go:norace
//go:nocheckptr
func fail(code syscall.Errno) {
	report := byte(code)
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, StatusFD, uintptr(unsafe.Pointer(&report)), 1)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, failedCode, 0, 0)
	}
}

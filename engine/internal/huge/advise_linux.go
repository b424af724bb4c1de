package huge

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// area is the size of a huge page on the platforms served.
const area = 2 << 20

// Advisor asks for the memory of one table. The zero value is ready; it may be used by several
// goroutines at once.
type Advisor struct {
	last atomic.Uintptr // the area asked for most recently: the heap hands out neighbours one after the other
}

// Advise asks for huge pages under the n values that begin at first, which a table with its size
// beyond that of a huge page keeps for long. It costs a system call for each area that it has not
// just asked for.
func Advise[T any](a *Advisor, first *T, n int) {
	start := uintptr(unsafe.Pointer(first))
	from := start &^ (area - 1)
	to := (start + uintptr(n)*unsafe.Sizeof(*first) + area - 1) &^ (area - 1)
	if to-from == area && a.last.Swap(from) == from {
		return
	}
	// The areas lie within, or around, memory of this process that stays reachable. The error is
	// ignored: ENOMEM where an end of them is not mapped, after the rest was advised, and EINVAL
	// where huge pages are not built in.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}

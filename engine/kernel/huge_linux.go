package kernel

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page on the platforms served.
const hugePage = 2 << 20

// hugeAdvisor asks for huge pages under the memory of one table. At ten million rows a look-up
// touches half a dozen lines anywhere in some gigabytes, and with pages of 4 KiB each of them costs
// a walk through page tables that are themselves too large for the caches. Many systems give huge
// pages only where they are asked for, and the Go runtime does not ask for its heap. Advice covers
// whole pages, and so whatever else the heap keeps there. The zero value is ready; goroutines may
// share it.
type hugeAdvisor struct {
	// the page asked for most recently: the heap hands out neighbours one after the other
	last atomic.Uintptr
	// loading has the memory of a kernel while it is loaded: Recover sets it, Finish takes it away.
	loading *stocks
}

// adviseHuge asks for huge pages under the n values that begin at first, which a table with its
// size beyond that of a huge page keeps for long. It costs a system call for each hugePage that it
// has not just asked for.
func adviseHuge[T any](a *hugeAdvisor, first *T, n int) {
	start := uintptr(unsafe.Pointer(first))
	from := start &^ (hugePage - 1)
	to := (start + uintptr(n)*unsafe.Sizeof(*first) + hugePage - 1) &^ (hugePage - 1)
	if to-from == hugePage && a.last.Swap(from) == from {
		return
	}
	// The areas are within, or around, memory of this process that stays reachable. ENOMEM: an end
	// is not mapped, and the rest was advised. EINVAL: the system has no huge pages.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}

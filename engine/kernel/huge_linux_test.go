package kernel

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// advised reports whether the mapping that holds p has the flag of MADV_HUGEPAGE.
func advised(t *testing.T, p *byte) bool {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("there is no smaps to look at:", err)
	}
	defer f.Close()
	inside := false
	for in := bufio.NewScanner(f); in.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(in.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= uintptr(unsafe.Pointer(p)) && uintptr(unsafe.Pointer(p)) < to
		}
		if flags, ok := strings.CutPrefix(in.Text(), "VmFlags:"); ok && inside {
			return strings.Contains(flags+" ", " hg ")
		}
	}
	return false
}

func TestAdvise(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("huge pages are not built into this system")
	}
	big := make([]byte, 5*hugePage)
	var a hugeAdvisor
	adviseHuge(&a, &big[0], len(big))
	for _, at := range []int{0, hugePage, len(big) - 1} {
		if !advised(t, &big[at]) {
			t.Errorf("byte %d of %d is not advised", at, len(big))
		}
	}
	big[1], big[len(big)-2] = 1, 2 // the memory is as good as before
	adviseHuge(&a, &big[1], 1)
	adviseHuge(&a, &big[1], 1)
	if want := uintptr(unsafe.Pointer(&big[0])) &^ (hugePage - 1); a.last.Load() != want || big[1] != 1 || big[len(big)-2] != 2 {
		t.Errorf("hugePage %x is remembered, want %x", a.last.Load(), want)
	}
}

func TestAdviseDoesNotAllocate(t *testing.T) {
	var a hugeAdvisor
	p := new([4096]byte)
	if n := testing.AllocsPerRun(100, func() { adviseHuge(&a, p, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

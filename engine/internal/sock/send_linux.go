package sock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Send makes one non-blocking send(2) of b, which is not empty. It goes around the runtime's bookkeeping for calls that may
// block, which costs as much as several requests: this one cannot, the socket being what takes the bytes or refuses them.
func Send(fd int, b []byte) (n int, err error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

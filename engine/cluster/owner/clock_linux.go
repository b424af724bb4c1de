package owner

import (
	"golang.org/x/sys/unix"

	"trunkline/engine/connection"
)

// Now reads the clock of leases, in nanoseconds. It goes on while the machine sleeps, as the clock
// of the Go runtime does not: an owner that wakes up knows that its lease is over. It does not
// allocate.
func Now() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return connection.Mono()
	}
	return t.Nano()
}

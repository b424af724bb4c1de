package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// keepDescriptors has the programs that are started not inherit what this one was started with: a
// log, a secret or a listening socket of a supervisor is nothing for a tool. An old kernel that
// cannot do it is no reason not to run.
func keepDescriptors() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

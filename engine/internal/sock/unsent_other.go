//go:build !linux

package sock

import "errors"

// Unsent is Queued: what was sent and not acknowledged counts here.
func Unsent(fd int) (n int, ok bool) { return Queued(fd) }

func boundTCP(int, int) error { return errors.ErrUnsupported }

//go:build !linux && !darwin

package sock

// Queued cannot tell here.
func Queued(int) (n int, ok bool) { return 0, false }

// Undelivered cannot tell here.
func Undelivered(int) (n int, ok bool) { return 0, false }

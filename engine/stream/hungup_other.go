//go:build !unix

package stream

import "io"

// hungUp cannot tell here; the answer's write will.
func hungUp(io.ReadWriteCloser) bool { return false }

// undelivered cannot tell here; the peer's end or the time will.
func undelivered(io.ReadWriteCloser) (n int, told bool) { return 0, false }

// queued cannot tell here.
func queued(io.ReadWriteCloser) (n int, told bool) { return 0, false }

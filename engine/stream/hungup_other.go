//go:build !unix

package stream

import "io"

// hungUp cannot tell here; the answer's write will.
func hungUp(io.ReadWriteCloser) bool { return false }

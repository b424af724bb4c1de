//go:build !linux

package workers

import "os"

// watch is not there: no other system reports in which order the two ends of two pipes were used.
type watch struct{}

func newWatch(_, _, _ *os.File) (*watch, error) { return nil, nil }

func (*watch) look() (took, spoke, first bool) { return true, true, false }

func (*watch) widen(*os.File) error { return nil }

func (*watch) narrow(*os.File) error { return nil }

func (*watch) close() {}

func canWatch() bool { return false }

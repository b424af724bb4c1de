//go:build !linux

package kernel

// hugeAdvisor stands in for that of Linux.
type hugeAdvisor struct{ loading *stocks }

// adviseHuge does nothing where huge pages cannot be asked for.
func adviseHuge[T any](*hugeAdvisor, *T, int) {}

//go:build unix && !linux

package tools

// synthetic reports whether the open file fd is one that the kernel makes up. Systems other than
// Linux show such files, if at all, as devices, which are not regular.
func synthetic(int) (bool, error) { return false, nil }

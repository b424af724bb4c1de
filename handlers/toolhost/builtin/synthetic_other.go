//go:build unix && !linux

package builtin

// synthetic returns false: other systems show such files as devices, which are not regular.
func synthetic(int) (bool, error) { return false, nil }

//go:build !linux

package workspace

import "golang.org/x/sys/unix"

// searchOnly opens a directory, which must be readable here.
const searchOnly = unix.O_RDONLY

// exchange is not there.
func exchange(dir, string, string) error { return unix.ENOSYS }

// copyXattrs copies nothing here.
func copyXattrs(int, int) bool { return true }

func renameNoReplace(d dir, from, to string) error { return linkThenUnlink(d, from, to) }

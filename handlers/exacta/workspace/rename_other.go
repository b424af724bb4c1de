//go:build !linux

package workspace

import "golang.org/x/sys/unix"

// searchOnly opens a directory, which must be readable here.
const searchOnly = unix.O_RDONLY

func renameNoReplace(d dir, from, to string) error { return linkThenUnlink(d, from, to) }

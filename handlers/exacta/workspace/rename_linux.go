package workspace

import "golang.org/x/sys/unix"

// renameNoReplace renames by one system call, or as file systems without it permit.
func renameNoReplace(d dir, from, to string) error {
	err := call(func() error { return unix.Renameat2(d.fd, from, d.fd, to, unix.RENAME_NOREPLACE) })
	if err == unix.EINVAL || err == unix.ENOSYS {
		return linkThenUnlink(d, from, to)
	}
	return err
}

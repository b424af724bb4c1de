package workspace

import "golang.org/x/sys/unix"

// searchOnly opens a directory that need not be readable.
const searchOnly = unix.O_PATH

// renameNoReplace renames by one system call, or as file systems without it permit.
func renameNoReplace(d dir, from, to string) error {
	err := call(func() error { return unix.Renameat2(d.fd, from, d.fd, to, unix.RENAME_NOREPLACE) })
	if err == unix.EINVAL || err == unix.ENOSYS {
		return linkThenUnlink(d, from, to)
	}
	return err
}

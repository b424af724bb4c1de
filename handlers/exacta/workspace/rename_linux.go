package workspace

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory that need not be readable.
const searchOnly = unix.O_PATH

// exchange gives two files each other's names, or is EINVAL or ENOSYS.
func exchange(d dir, a, b string) error {
	return unix.Renameat2(d.fd, a, d.fd, b, unix.RENAME_EXCHANGE)
}

// copyXattrs copies extended attributes, ACLs among them, and reports whether all were permitted.
func copyXattrs(to, from int) bool {
	size, err := unix.Flistxattr(from, nil)
	if err != nil || size == 0 {
		return err == nil || err == unix.ENOTSUP
	}
	names := make([]byte, size)
	size, err = unix.Flistxattr(from, names)
	kept := err == nil
	value, have := make([]byte, maxXattr), make([]byte, maxXattr)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:max(size, 0)]), "\x00"), "\x00") {
		n, err := unix.Fgetxattr(from, name, value)
		if h, e := unix.Fgetxattr(to, name, have); err == nil && (e != nil || !bytes.Equal(have[:h], value[:n])) {
			err = unix.Fsetxattr(to, name, value[:n], 0)
		}
		kept = kept && err == nil
	}
	return kept
}

// maxXattr is the most bytes of an extended attribute (xattr(7)).
const maxXattr = 64 << 10

// renameNoReplace renames by one system call, or as file systems without it permit.
func renameNoReplace(d dir, from, to string) error {
	err := call(func() error { return unix.Renameat2(d.fd, from, d.fd, to, unix.RENAME_NOREPLACE) })
	if err == unix.EINVAL || err == unix.ENOSYS {
		return linkThenUnlink(d, from, to)
	}
	return err
}

package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData brings the content of a file to the disk.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// fileSystems are the names of the common ones.
var fileSystems = map[int64]string{
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.NFS_SUPER_MAGIC: "nfs", unix.SMB2_SUPER_MAGIC: "smb",
	unix.SMB_SUPER_MAGIC: "smb", unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "fuse", unix.EXT4_SUPER_MAGIC: "ext4",
	unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
}

// fileSystem returns the kind of the file system that holds a directory, "" if it is not known.
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return fileSystems[int64(st.Type)] //nolint:unconvert // another type on other architectures
}

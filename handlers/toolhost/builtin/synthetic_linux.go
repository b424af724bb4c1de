package builtin

import "golang.org/x/sys/unix"

// File systems that x/sys/unix has no name for; the numbers are those of the kernel's own headers.
const (
	configfsMagic = 0x62656570
	fusectlMagic  = 0x65735543
	mqueueMagic   = 0x19800202
	nfsdMagic     = 0x6e667364
	rpcPipeMagic  = 0x67596969
)

// synthetic reports whether the kernel makes up the open file fd: even if it is regular by its
// mode, a read may wait for ever (/proc/kmsg), take data from others, or do something (trace_pipe).
func synthetic(fd int) (bool, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return false, err
	}
	switch uint32(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEBUGFS_MAGIC, unix.SECURITYFS_MAGIC, unix.AAFS_MAGIC,
		unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.BPF_FS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.RDTGROUP_SUPER_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC, unix.XENFS_SUPER_MAGIC,
		unix.USBDEVICE_SUPER_MAGIC, unix.NSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
		configfsMagic, fusectlMagic, mqueueMagic, nfsdMagic, rpcPipeMagic:
		return true, nil
	}
	return false, nil
}

// Package crashfs is a file system for tests of power loss: the disk of a server that is a process
// of its own. A test mounts it, ends the server by SIGKILL, has the disk lose its power, mounts it
// again and starts the next server in it.
//
//	disk.go         names, and what of them is durable
//	file.go         bytes, and what of them is durable
//	mount_linux.go  serves it to the kernel by FUSE
//
// # What is durable
//
// The bytes of a file are durable after a sync of the file (fsync, fdatasync, a write to a file
// that was opened with O_SYNC or O_DSYNC). A name that was made, moved or removed is durable after
// a sync of its directory. So is a name that is not durable yet after a sync of the file behind it,
// as file systems with a journal have it. What was changed before in the same directory is durable
// then too, and so are the names of the directories above.
//
// # What a power loss leaves
//
// What is durable is there. The rest is gone, or a part of it is there, by chance: the changes of
// names up to any moment, and of each page of 4096 bytes that was not synced its old content, its
// new content, or its first sectors of 512 bytes new and the others old. A file whose end was not
// synced ends behind the last page that is there, with zeros where pages before it are missing.
package crashfs

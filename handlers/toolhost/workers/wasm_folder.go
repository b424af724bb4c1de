package workers

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// folderPrefix begins the names of directories of compiled code.
const folderPrefix = "trunkline-wasm-"

// codeFolder is a directory of compiled code, which only this user may look into. Its lock is held as long as the process lives that
// made it, and is what others know by that it is in use: they remove what a process left behind that was killed. Cleaners of
// temporary files leave a directory alone that has one, too.
type codeFolder struct {
	path string
	lock *os.File
}

// newCodeFolder makes a directory in dir. Where directories cannot be locked there is none.
func newCodeFolder(dir string) (f codeFolder, err error) {
	if f.path, err = os.MkdirTemp(dir, folderPrefix); err != nil { // mode 0700
		return codeFolder{}, err
	}
	if f.lock, err = lockFolder(f.path); err == nil {
		// It may have been taken for left behind before it was locked.
		var mine, there os.FileInfo
		if mine, err = f.lock.Stat(); err == nil {
			there, err = os.Lstat(f.path)
		}
		if err == nil && os.SameFile(mine, there) {
			return f, nil
		}
	}
	f.remove()
	return codeFolder{}, os.ErrNotExist
}

// lockFolder locks a directory of this user that no other process has locked.
func lockFolder(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && int(st.Uid) != os.Geteuid() {
		err = unix.EPERM
	}
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// remove removes the directory with all that is in it.
func (f codeFolder) remove() {
	if f.path != "" {
		_ = os.RemoveAll(f.path) // what is left is of no use to anything
	}
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// sweepFolders removes the directories of compiled code in dir that no process has locked.
func sweepFolders(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }() // only read
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if !strings.HasPrefix(name, folderPrefix) {
				continue
			}
			path := filepath.Join(dir, name)
			if lock, err := lockFolder(path); err == nil {
				codeFolder{path, lock}.remove()
			}
		}
		if err != nil {
			return
		}
	}
}

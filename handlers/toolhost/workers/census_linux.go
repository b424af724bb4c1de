package workers

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openProcesses opens the list of all processes that this one can have started.
func openProcesses() (*os.File, error) {
	self, err := os.Readlink("/proc/self")
	if err == nil && self != strconv.Itoa(os.Getpid()) {
		err = errors.New("/proc is that of another PID namespace")
	}
	if err != nil {
		return nil, err
	}
	return os.Open("/proc")
}

// countGroups adds the processes, unreaped ones too, to the sizes of their groups that are keys.
func countGroups(proc *os.File, sizes map[int]int) {
	if _, err := proc.Seek(0, io.SeekStart); err != nil {
		return
	}
	names, _ := proc.Readdirnames(-1) // what was read before an error counts
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if group, err := unix.Getpgid(pid); err == nil {
				if n, watched := sizes[group]; watched {
					sizes[group] = n + 1
				}
			}
		}
	}
}

package pebbledir

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Used is what a directory takes on the disk, in bytes: blocks that are allocated, also before they
// are written. A file of several names counts once.
type Used struct {
	Bytes    uint64 // of all that is in it, at any depth
	LogBytes uint64 // of files of the directory itself whose names end with .log
}

// usageWithin is how long a reading is waited for.
const usageWithin = 200 * time.Millisecond

// Usage reads what one directory takes. Any goroutine may use it. A disk that does not answer holds
// up one goroutine: callers get what was read before.
type Usage struct {
	mu      sync.Mutex
	reading chan struct{} // closed at the end of the reading that is going on; nil: none is
	last    Used
}

// Read returns what dir takes.
func (u *Usage) Read(fsys vfs.FS, dir string) Used {
	u.mu.Lock()
	done := u.reading
	if done == nil {
		done = make(chan struct{})
		u.reading = done
		go func() {
			var now Used
			now.add(fsys, dir, 0, map[uint64]bool{})
			u.mu.Lock()
			defer u.mu.Unlock()
			u.last, u.reading = now, nil
			close(done)
		}()
	}
	u.mu.Unlock()
	patience := time.NewTimer(usageWithin)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// add counts a file, or a directory and what is in it. What is gone meanwhile takes nothing.
func (n *Used) add(fsys vfs.FS, path string, depth int, linked map[uint64]bool) {
	info, err := fsys.Stat(path)
	if err != nil {
		return
	}
	size := uint64(info.Size())
	if st, ok := info.Sys().(*syscall.Stat_t); ok { // a file system in memory has none
		if size = uint64(st.Blocks) * 512; !info.IsDir() && st.Nlink > 1 {
			if linked[st.Ino] {
				return
			}
			linked[st.Ino] = true
		}
	}
	n.Bytes += size
	if depth == 1 && strings.HasSuffix(path, ".log") {
		n.LogBytes += size
	}
	if !info.IsDir() {
		return
	}
	names, _ := fsys.List(path) // one that cannot be read is counted without its files
	for _, name := range names {
		n.add(fsys, fsys.PathJoin(path, name), depth+1, linked)
	}
}

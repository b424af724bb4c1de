package tools

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tempPrefix begins the names of temporary files: a list of files passes them over. tempBytes
	// random bytes follow, in lower-case hex, so that none can be guessed.
	tempPrefix = ".tmp-"
	tempBytes  = 8
	// staleTemp is for how long a temporary file has its name until it counts as one that a killed writer left. A writer needs a
	// moment; calls are over after ten minutes at most (toolhost §6). It is also how often a directory is looked through for such.
	staleTemp = time.Hour
	// maxSweep is how many names one look goes over: a directory of any size costs some tens of milliseconds at most.
	maxSweep = 1 << 16
	// maxSwept is how many directories are remembered as looked through. Of more, some are looked through too often.
	maxSwept = 256
)

// tempName returns a name for a temporary file, which nothing else has.
func tempName() string {
	var id [tempBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	return tempPrefix + hex.EncodeToString(id[:])
}

// isTemp reports whether name may come from tempName.
func isTemp(name string) bool {
	digits, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(digits) == 2*tempBytes && strings.Trim(digits, "0123456789abcdef") == ""
}

// sweeps removes the temporary files that writers left which were killed, directory by directory. Any goroutine may use it.
type sweeps struct {
	mu   sync.Mutex
	done map[string]time.Time // by path, when it was looked through
}

// sweep looks d through unless that was done lately. What cannot be removed stays: the write at hand does not depend on it.
func (s *sweeps) sweep(d *dir, now time.Time) {
	if s.due(d.path, now) {
		removeStale(d, now, maxSweep)
	}
}

// removeStale removes what is stale among the first names of d.
func removeStale(d *dir, now time.Time, names int) {
	_ = d.names(func(name string) bool {
		if isTemp(name) && d.isStale(name, now) {
			_ = d.remove(name)
		}
		names--
		return names > 0
	})
}

// due reports whether the directory path is to be looked through now, and takes note of it.
func (s *sweeps) due(path string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.done[path]; ok && now.Sub(last).Abs() < staleTemp {
		return false
	}
	if s.done == nil || len(s.done) >= maxSwept {
		s.done = make(map[string]time.Time)
	}
	s.done[path] = now
	return true
}

// isStale reports whether name is a file that has had its name for longer than any writer needs. The time of its content means nothing:
// the second name of a file on its way to becoming the backup is new, whatever the age of the file.
func (d *dir) isStale(name string, now time.Time) bool {
	st, err := d.lstat(name)
	return err == nil && typeOf(&st) == unix.S_IFREG && now.Sub(time.Unix(st.Ctim.Unix())) >= staleTemp
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/control"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

const keyDir = "store.dir"

// place is where a store is, or would be made.
type place struct {
	name string // as the settings have it
	dir  string // it, or the nearest directory above it that exists
	made bool   // it exists
}

// inStore makes a check of a look at the directory of the store. Without a store there is nothing
// to look at.
func inStore(look func(s *subject, p place) Finding) func(context.Context, *subject) []Finding {
	return func(_ context.Context, s *subject) []Finding {
		if s.cfg.Store.Mode == config.StoreMemory {
			return []Finding{skip("store.mode", "store.mode is memory: nothing is kept")}
		}
		name := s.cfg.Store.Dir
		dir, err := nearestDir(name)
		if err != nil {
			return []Finding{fail(keyDir, "name a directory that this user can use", "%s: %v", name, err)}
		}
		return []Finding{look(s, place{name: name, dir: dir, made: dir == filepath.Clean(name)})}
	}
}

// kept returns where files of a journal are: a node has copies of those that its cluster keeps.
func (p place) kept(s *subject) place {
	if p.made && s.cfg.Cluster.On() {
		p.name = filepath.Join(p.dir, control.CopiesDir)
		p.dir = p.name
		_, err := os.Stat(p.dir)
		p.made = err == nil
	}
	return p
}

// nearestDir returns dir, or the first directory above it that exists.
func nearestDir(dir string) (string, error) {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return dir, nil
		case err == nil:
			return "", &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return "", err
		}
	}
}

// tempFile makes a file without a name in a directory. One with a name could stay behind, and an
// empty directory with a file in it is no store.
func tempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".trunkline-doctor-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func storeDirectory(s *subject, p place) Finding {
	f, err := tempFile(p.dir)
	if err == nil {
		_, err = f.Write([]byte("x"))
		err = errors.Join(err, f.Close())
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fail(keyDir, "run this as the user of the server, or give the directory to that user", "%v", err)
	case err != nil:
		return fail(keyDir, "name a directory in which files can be made", "%v", err)
	case !p.made:
		return ok(keyDir, "%s is not there yet; a file could be made and removed in %s, where a server makes it", p.name, p.dir)
	}
	if mode, open := s.cfg.Store.Open(); open {
		return warn(keyDir, "chmod 700 "+p.dir, "other users can look into %s, which has mode %v", p.dir, mode)
	}
	return ok(keyDir, "a file could be made, written and removed in %s", p.dir)
}

func storeLayout(s *subject, p place) Finding {
	if s.cfg.Cluster.On() && p.made && embedded.IsStore(p.dir) {
		return fail(keyDir, "move it away, or set cluster.mode=off", "%s has the journal of a single server, which the cluster does not have", p.dir)
	}
	if p = p.kept(s); !p.made {
		return skip(keyDir, "%s is not there yet", p.name)
	}
	mode, err := journal.ParseMode(s.cfg.Store.Mode)
	if err != nil {
		return fail("store.mode", "", "%v", err)
	}
	stamped, err := embedded.CheckStamp(p.dir, mode)
	var other *journal.ErrModeMismatch
	var damage *journal.DamageError
	switch {
	case errors.As(err, &other):
		return fail("store.mode", fmt.Sprintf("set store.mode=%s, or name another store.dir", other.Made), "%v", err)
	case errors.As(err, &damage):
		return fail(keyDir,
			"'trunkline store verify' shows what can be done; an empty store.dir starts a new journal", "%v", err)
	case errors.Is(err, fs.ErrPermission):
		return fail(keyDir, "run this as the user of the server", "%v", err)
	case err != nil:
		return fail(keyDir, "use the version of trunkline that made it, or 'trunkline store export' of that version", "%v", err)
	case !stamped:
		return ok(keyDir, "%s is empty", p.dir)
	}
	return ok(keyDir, "the layout of %s is that of this version, its mode is %s", p.dir, mode)
}

// storeLock looks which process has the store open, without taking the lock.
func storeLock(s *subject, p place) Finding {
	if p = p.kept(s); !p.made {
		return skip(keyDir, "%s is not there yet", p.name)
	}
	pid, err := lockHolder(filepath.Join(p.dir, "LOCK"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(keyDir, "no server has had %s open", p.dir)
	case err != nil:
		return warn(keyDir, "run this as the user of the server", "cannot look at the lock: %v", err)
	case pid == 0:
		return ok(keyDir, "no process has %s open", p.dir)
	case s.admin.err == nil && s.admin.addr != "":
		return ok(keyDir, "process %d has %s open; a server answers on %s", pid, p.dir, s.admin.addr)
	}
	return warn(keyDir, "one process uses a store at a time: stop that one, or name another store.dir",
		"process %d has %s open, and no server answers on admin.listen_addr", pid, p.dir)
}

// lockHolder returns the process that has a lock on a file, 0 for none.
func lockHolder(name string) (pid int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, &fs.PathError{Op: "fcntl", Path: name, Err: err}
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

func storeFilesystem(_ *subject, p place) Finding {
	switch kind := fileSystem(p.dir); kind {
	case "":
		return skip(keyDir, "the file system of %s is not known", p.dir)
	case "tmpfs", "ramfs":
		return warn(keyDir, "name a directory on a disk; what needs no store is served with store.mode=memory", "%s is on %s, which a restart of the machine empties", p.dir, kind)
	case "nfs", "smb", "9p", "fuse":
		return warn(keyDir, "name a directory on a local disk", "%s is on %s, which may not honour syncs and locks", p.dir, kind)
	default:
		return ok(keyDir, "%s is on %s", p.dir, kind)
	}
}

// lowSpacePercent is the free share of a disk below which there is a warning.
const lowSpacePercent = 10

func storeSpace(_ *subject, p place) Finding { return spaceOf(keyDir, p.dir) }

// spaceOf looks at the free space of the disk of a directory that a setting names.
func spaceOf(key, dir string) Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return warn(key, "name a directory of a disk", "cannot read the free space of %s: %v", dir, err)
	}
	size := uint64(st.Bsize) //nolint:unconvert // another type on other systems
	f := rateSpace(uint64(st.Bavail)*size, st.Blocks*size)
	f.Subject = key
	return f
}

// rateSpace looks at the free bytes of the disk of a store.
func rateSpace(free, total uint64) Finding {
	const fix = "make room, or move the store to a larger disk"
	share := 100.0
	if total > 0 {
		share = 100 * float64(free) / float64(total)
	}
	seen := fmt.Sprintf("%s of %s are free (%.0f %%)", cli.Bytes(free), cli.Bytes(total), share)
	switch least := uint64(embedded.MinFreeBytes); {
	case free < least:
		return fail(keyDir, fix, "%s; below %s every change is refused", seen, cli.Bytes(least))
	case free < 2*least:
		return warn(keyDir, fix, "%s; below %s every change is refused", seen, cli.Bytes(least))
	case share < lowSpacePercent:
		return warn(keyDir, fix, "%s, less than %d %%", seen, lowSpacePercent)
	}
	return ok(keyDir, "%s", seen)
}

// What is synced to learn how fast a disk is.
const (
	syncCount = 8
	syncBytes = 4096
	// slowSync is the longest median of a good disk: each answer to a lone client waits for one.
	slowSync = 20 * time.Millisecond
)

func storeSync(s *subject, p place) Finding {
	f, err := tempFile(p.dir)
	if err != nil {
		return skip(keyDir, "no file can be made in %s", p.dir)
	}
	defer f.Close()
	took := make([]time.Duration, 0, syncCount)
	block := make([]byte, syncBytes)
	for range syncCount {
		began := time.Now()
		_, err := f.Write(block)
		if err == nil {
			err = syncData(f)
		}
		if err != nil {
			return fail(keyDir, "a disk that cannot sync keeps nothing: look at the log of the system", "cannot write and sync a file in %s: %v", p.dir, err)
		}
		took = append(took, time.Since(began))
	}
	return rateSyncs(took, s.cfg.Store.Mode)
}

// rateSyncs looks at how long syncs took.
func rateSyncs(took []time.Duration, mode string) Finding {
	slices.Sort(took)
	median, longest := took[len(took)/2], took[len(took)-1]
	seen := fmt.Sprintf("%d syncs of %d bytes: median %s, longest %s", len(took), syncBytes, shortly(median), shortly(longest))
	if median <= slowSync {
		return ok(keyDir, "%s", seen)
	}
	fix := "use a disk that syncs faster"
	if mode == config.StoreAlways {
		fix += ", or store.mode=interval, in which no answer waits for a sync"
	}
	return warn(keyDir, fix, "%s; more than %s", seen, slowSync)
}

// shortly is a duration with three digits.
func shortly(d time.Duration) string {
	unit := time.Microsecond / 100
	for unit*1000 <= d {
		unit *= 10
	}
	return d.Round(unit).String()
}

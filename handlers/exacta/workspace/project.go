// Package workspace is the only part of projects that touches their disk (exacta §4.1, §4.17,
// §4.18): finding the root, reading the tree, the folder .exacta, and writing with a way back.
//
// Everything below the root is reached through handles of directories, one component at a time,
// and no component that is a symbolic link is followed. What was checked and what is changed is
// the same handle, so a link that is put in between is refused or has no effect. A file is changed
// by a new file that takes its place: another hard link to it, inside or outside, keeps its bytes.
//
// A change of files belongs to a Point, which is the way back:
//
//	NewPoint   .exacta/rollback/<id>/manifest.json, without entries
//	Add        original bytes of the targets, fsynced; then the entries, fsynced
//	Prepare    directories and temporary files <name>.tmp.<id>, fsynced
//	Commit     each target is compared again and replaced
//	Seal       the point is complete; a set of diffs that is not is undone by Recover
//	Undo       from the last entry to the first
//
// After a stop at any place the files of the tree and the manifest determine what to undo: a target
// has its old hash, its new hash, or was changed by another program and stays as it is.
package workspace

import (
	"cmp"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// storeName is the folder of a project's storage (exacta §4.18).
const storeName = ".exacta"

// maxFile is the default of Options.MaxFile.
const maxFile = 64 << 20

// Options are what a project needs from its server.
type Options struct {
	// Secret reports whether a text contains a secret of high confidence (exacta §6.6). Nil finds
	// none.
	Secret func([]byte) bool
	// ReadOnly leaves the lock to others. Nothing may be changed then.
	ReadOnly bool
	// MaxFile is the most bytes of a file that Read and Add take; 0 means 64 MiB.
	MaxFile int64
	// Key is that of LoadKey. Without it a file of .exacta is proven to this process only.
	Key []byte

	// Before is called before each system call that reads or changes a file, and can make it fail.
	// Lazy makes fsync do nothing. Both are for tests.
	Before func(op, name string) error
	Lazy   bool
}

// Project is the open root of a project. All methods but Close and SetDeny, and different Points,
// may be used by several goroutines at once.
type Project struct {
	root   string
	config *Config
	dir    dir
	opts   Options
	deny   func(path string, dir bool) bool

	mu      sync.Mutex
	lock    *os.File // of .exacta/lock, nil as long as there is none
	read    bool     // state.json was read
	seen    string   // its SHA-256 then, "" of none
	lastSeq int64    // of the newest rollback point, -1 before one was looked for
}

// Open opens a root that Locate found: the checks of .exacta and its config.json, then the lock of
// an existing .exacta (exacta §4.1). It writes nothing.
func Open(root string, o Options) (*Project, *errcode.Fault) {
	o.MaxFile = cmp.Or(o.MaxFile, maxFile)
	if len(o.Key) == 0 {
		o.Key = processKey()
	}
	var fd int
	err := call(func() (e error) {
		fd, e = unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return e
	})
	if err != nil {
		return nil, faultOf(err, ".")
	}
	p := &Project{root: root, opts: o, lastSeq: -1, dir: dir{fd, &disk{before: o.Before, lazy: o.Lazy}}}
	var f *errcode.Fault
	if p.config, f = p.LoadConfig(); f == nil && !o.ReadOnly {
		f = p.lockExisting()
	}
	if f != nil {
		p.Close()
		return nil, f
	}
	return p, nil
}

// Close releases the lock and the handles. The project must not be used any more, except for
// another Close, which does nothing.
func (p *Project) Close() {
	if p.lock != nil {
		_ = p.lock.Close()
		p.lock = nil
	}
	p.dir.close()
	p.dir.fd = -1
}

// Root returns the canonical path of the root.
func (p *Project) Root() string { return p.root }

// Config returns the configuration that was read when the project was opened.
func (p *Project) Config() *Config { return p.config }

// inPlace refuses a root whose path has come to name another directory, or none: edits go by the
// handle of the one that was opened, builds by the path, and both must mean one tree (exacta
// §4.17).
func (p *Project) inPlace() *errcode.Fault {
	var opened, named unix.Stat_t
	err := cmp.Or(unix.Fstat(p.dir.fd, &opened), unix.Lstat(p.root, &named))
	if err != nil || opened.Ino != named.Ino || opened.Dev != named.Dev {
		return errcode.New("FS-001", "replaced: the project's directory was moved while it was open; close the project and open it again", "project root")
	}
	return nil
}

// Markers returns the markers that the root has now (exacta §4.1).
func (p *Project) Markers() []string { return markersOf(p.root) }

// SetDeny sets the rules for paths (exacta §4.17), beside those that always hold. deny gets a rel
// path. For a file it decides about the whole path; for a directory it reports that nothing below
// is allowed. It must be set before the first read.
func (p *Project) SetDeny(deny func(path string, dir bool) bool) { p.deny = deny }

// Check checks a rel path: its form, and the rules of SetDeny for a file (exacta §4.17). It looks
// at no disk.
func (p *Project) Check(rel string) *errcode.Fault {
	if f := checkPath(rel); f != nil {
		return f
	}
	if p.deny != nil && p.deny(rel, false) {
		return errcode.New("SEC-002", "denied: "+rel, rel)
	}
	return nil
}

// existingStore opens .exacta. err is unix.ENOENT if there is none.
func (p *Project) existingStore() (dir, error) {
	d, err := p.dir.open(storeName)
	if errors.Is(err, isNotDir) {
		return d, errcode.New("SEC-002", "not_a_directory: "+storeName, storeName)
	}
	return d, err
}

// Lock takes the lock of the project, also where no change took it yet: FS-005 if another process
// has it.
func (p *Project) Lock() *errcode.Fault {
	d, err := p.store()
	if err == nil {
		d.close()
	}
	return faultOf(err, storeName+"/lock")
}

// lockExisting takes the lock of an existing .exacta that has one.
func (p *Project) lockExisting() *errcode.Fault {
	d, err := p.existingStore()
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return faultOf(err, storeName)
	}
	defer d.close()
	if _, err := d.lstat("lock"); err == unix.ENOENT {
		return nil
	}
	return faultOf(p.takeLock(d), storeName+"/lock")
}

// takeLock locks the file lock of d, which is .exacta, unless that is what p holds.
func (p *Project) takeLock(d dir) error {
	if p.lock != nil {
		var have unix.Stat_t
		st, err := d.lstat("lock")
		if e := call(func() error { return unix.Fstat(int(p.lock.Fd()), &have) }); err == nil && e == nil &&
			st.Ino == have.Ino && st.Dev == have.Dev {
			return nil
		}
		_ = p.lock.Close()
		p.lock = nil
	}
	st, err := d.lstat("lock")
	if err == nil {
		if err := regularMode(st); err != nil {
			return err
		}
	}
	if err := d.disk.at("lock", "lock"); err != nil {
		return err
	}
	flags := unix.O_RDWR | unix.O_CREAT | unix.O_NONBLOCK
	fd, err := d.openat("lock", flags, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "lock")
	err = call(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		_ = f.Close()
		return err
	}
	p.lock = f
	return nil
}

// store opens .exacta for a change: it is made if needed, and its lock taken.
func (p *Project) store() (dir, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, err := p.existingStore()
	if err == unix.ENOENT {
		if err = p.dir.mkdir(storeName, 0o700); err != nil && err != unix.EEXIST {
			return d, err
		}
		if err = p.dir.sync(); err != nil {
			return d, err
		}
		d, err = p.existingStore()
	}
	if err != nil {
		return d, err
	}
	late := p.lock == nil
	if err = p.takeLock(d); err == nil && late {
		err = p.untouched(d)
	}
	if err == nil {
		if _, e := d.lstat(".gitignore"); e == unix.ENOENT {
			err = d.replace(".gitignore", []byte("*\n"))
		}
	}
	if err != nil {
		d.close()
		return d, err
	}
	return d, nil
}

// untouched refuses storage in which another process, which had the lock first, left work that is
// not over. Only an open finds what is to become of that (exacta §5.6).
func (p *Project) untouched(d dir) error {
	text, _, err := d.read("state.json", maxRecord)
	if !p.read || err != nil || Sum(text) == p.seen {
		return nil
	}
	if s, problem := parseState(text); problem == "" && s.Execution == nil {
		return nil
	}
	_ = p.lock.Close()
	p.lock = nil
	const rel = storeName + "/state.json"
	return errcode.New("FS-005", "interrupted work of another process; the project is to be opened again: "+rel, rel)
}

// sub opens a directory of the storage, which is made if it is missing.
func (d dir) sub(name string) (dir, error) {
	s, err := d.open(name)
	if err != unix.ENOENT {
		return s, err
	}
	if err := d.mkdir(name, 0o700); err != nil && err != unix.EEXIST {
		return s, err
	}
	if err := d.sync(); err != nil {
		return s, err
	}
	return d.open(name)
}

// replace writes a file of the storage as a whole: afterwards it has its old bytes or the new ones,
// also after a crash.
func (d dir) replace(name string, data []byte) error {
	d.disk.replacing.Lock()
	defer d.disk.replacing.Unlock()
	tmp := name + ".tmp"
	if _, err := d.lstat(tmp); err == nil {
		if err := d.remove(tmp); err != nil {
			return err
		}
	}
	if err := d.place(tmp, data, 0o600, nil); err != nil {
		return err
	}
	if err := d.rename(tmp, name); err != nil {
		_ = d.remove(tmp)
		return err
	}
	return d.sync()
}

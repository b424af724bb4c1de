package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"trunkline/engine/internal/pebbledir"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errLogFailed is what pebble gets for every change of the directory after the log has failed.
var errLogFailed = errors.New("the journal has stopped")

// logFS is the file system under pebble. It keeps the errors of the log from pebble, which panics
// on some while it holds locks. The first error goes to fail. From then on the log takes every
// write, keeps nothing, and nothing is acknowledged. No other file changes any more, as if the
// process had ended: the outcome of the failed operation is not known, so no manifest may name it
// and no clean-up delete it. With lazy it also postpones the syncs of the log until sync is called.
//
// While the store is opening, the first error of any change, and of pebble's work in the
// background, fails the log too: pebble repeats a failed flush without end, and its Open waits for
// it. From then on all changes go to memory, so that Open ends, and the error is what the opening
// returns.
type logFS struct {
	vfs.FS
	dir     string
	lazy    bool
	opening atomic.Bool
	// imaginary has the files that are made after the log has failed during the opening.
	imaginary *vfs.MemFS
	// fatal is called with the error that ends the log, once, when failure is set.
	fatal func(error)
	// pause is called before a SSTable is made: pebble repeats a failed flush at once and for
	// ever.
	pause func()

	slow diskWatch // what the disk has not answered

	// failure is why the log has failed. It is set before anything fails, so that a caller that
	// sees a failed write also sees it.
	failure atomic.Pointer[error]

	reusing sync.Mutex // held while a log gets another name, or is emptied

	mu   sync.Mutex
	open map[*logFile]struct{}
}

func newLogFS(inner vfs.FS, dir string, lazy bool) *logFS {
	l := &logFS{FS: inner, dir: dir, lazy: lazy, slow: diskWatch{log: slog.New(slog.DiscardHandler)}, imaginary: vfs.NewMem(), open: map[*logFile]struct{}{}}
	l.opening.Store(true)
	return l
}

func (l *logFS) fail(err error) {
	err = fmt.Errorf("cannot write journal %s: %w", l.dir, typed(err))
	if l.failure.CompareAndSwap(nil, &err) && !l.opening.Load() {
		l.fatal(err)
	}
}

// opened ends the opening and returns why the log has failed meanwhile. Later such an error is
// fatal.
func (l *logFS) opened() error {
	l.opening.Store(false)
	return l.err()
}

// met takes an error of a change while the store is opening. A missing file is left to pebble.
func (l *logFS) met(err error) error {
	if err == nil || !l.opening.Load() || errors.Is(err, os.ErrNotExist) {
		return err
	}
	l.fail(err)
	return nil
}

// unreal reports whether files are imaginary.
func (l *logFS) unreal() bool { return l.failed() && l.opening.Load() }

func (l *logFS) failed() bool { return l.failure.Load() != nil }

// err returns why the log has failed, if it has.
func (l *logFS) err() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// isLog distinguishes a log of this database from one that a checkpoint makes elsewhere.
func (l *logFS) isLog(name string) bool {
	return strings.HasSuffix(name, ".log") && l.PathDir(name) == l.dir
}

// Create implements vfs.FS.
func (l *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if l.isLog(name) {
		return l.wrap(name, func() (vfs.File, error) { return l.FS.Create(name, category) })
	}
	if strings.HasSuffix(name, ".sst") {
		l.pause()
	}
	if l.unreal() {
		return l.imagine(name, category)
	}
	if l.failed() {
		return nil, errLogFailed
	}
	f, err := l.create(name, category)
	if l.met(err) == nil && err != nil {
		return l.imagine(name, category)
	}
	if err != nil || l.PathDir(name) != l.dir && l.PathDir(name) != l.PathJoin(l.dir, incomingDir) {
		return f, err
	}
	return &tableFile{File: f, fs: l, name: name}, nil
}

func (l *logFS) create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if l.PathDir(name) == l.dir && strings.HasPrefix(l.PathBase(name), "marker.manifest.") {
		// Pebble syncs both names at once, after this: a power loss before could keep the marker
		// without the manifest that it names.
		if err := pebbledir.Sync(l.FS, l.dir); err != nil {
			return nil, err
		}
	}
	return l.FS.Create(name, category)
}

func (l *logFS) imagine(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := l.imaginary.MkdirAll(l.PathDir(name), 0o700); err != nil {
		return nil, err
	}
	return l.imaginary.Create(name, category)
}

// Open implements vfs.FS. A log that is being written ends for its reader where a write has ended:
// what a checkpoint copies has no hole, and nothing of an older log behind it.
func (l *logFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if l.unreal() {
		if f, err := l.imaginary.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	n, growing := l.written(name)
	f, err := l.FS.Open(name, opts...)
	if err == nil && growing {
		return &logPrefix{File: f, left: n}, nil
	}
	return f, err
}

// ReuseForWrite implements vfs.FS. Pebble reuses logs only.
func (l *logFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.wrap(newname, func() (vfs.File, error) {
		l.reusing.Lock()
		defer l.reusing.Unlock()
		return l.FS.ReuseForWrite(oldname, newname, category)
	})
}

// Remove implements vfs.FS.
func (l *logFS) Remove(name string) error {
	return l.tidy(func() error { return l.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (l *logFS) RemoveAll(name string) error {
	return l.tidy(func() error { return l.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (l *logFS) Rename(oldname, newname string) error {
	return l.change(func() error { return l.FS.Rename(oldname, newname) })
}

// Link implements vfs.FS.
func (l *logFS) Link(oldname, newname string) error {
	return l.change(func() error { return l.FS.Link(oldname, newname) })
}

func (l *logFS) change(f func() error) error { return l.met(l.tidy(f)) }

// tidy removes something. A file that stays is no reason to end an opening.
func (l *logFS) tidy(f func() error) error {
	if l.unreal() {
		return nil
	}
	if l.failed() {
		return errLogFailed
	}
	return f()
}

func (l *logFS) wrap(name string, create func() (vfs.File, error)) (vfs.File, error) {
	if !l.failed() {
		f, err := create()
		if err == nil {
			return l.add(&logFile{File: f, fs: l, name: name}), nil
		}
		l.fail(err)
	}
	return &logFile{File: vfs.NewMemFile(nil), fs: l, name: name}, nil
}

func (l *logFS) add(f *logFile) *logFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[f] = struct{}{}
	return f
}

// written returns how much of a log was written, if it is being written.
func (l *logFS) written(name string) (n int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.open {
		if f.name == name {
			return f.length.Load(), true
		}
	}
	return 0, false
}

// OpenDir implements vfs.FS.
func (l *logFS) OpenDir(name string) (vfs.File, error) {
	f, err := l.FS.OpenDir(name)
	if err != nil || name != l.dir {
		return f, err
	}
	return &logDir{File: f, fs: l}, nil
}

// Unwrap implements vfs.FS.
func (l *logFS) Unwrap() vfs.FS { return l.FS }

// timed runs a sync of a file.
func (l *logFS) timed(name string, sync func() error) error {
	op := l.slow.begin(opSync, name)
	defer l.slow.end(op)
	return sync()
}

// sync makes what was written so far durable. It does nothing unless lazy. It may run beside the
// rest.
func (l *logFS) sync() {
	if !l.lazy {
		return
	}
	l.mu.Lock()
	files := make([]*logFile, 0, len(l.open))
	for f := range l.open {
		files = append(files, f)
	}
	l.mu.Unlock()
	for _, f := range files {
		f.syncNow()
	}
}

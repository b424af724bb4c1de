package workers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/workerexec"
)

const (
	// defaultCompileTime is what a module has to be read and compiled, else it is refused.
	defaultCompileTime = 30 * time.Second
	// maxModuleMemory is what a child may write to: 64 MiB of the module's, code, compiler.
	maxModuleMemory = 1 << 30
	maxModuleCode   = 256 << 20
	// maxCompiles is how many modules are compiled at a time, for all tools of a Spawner.
	maxCompiles = 2
	// lateNice is the priority of a child that compiles for a call that has ended.
	lateNice = 10
	// fatalCode is the exit code of a child that ran out of memory: the runtime's.
	fatalCode = 2
)

// What a child reports when it is ready for calls: its compiled code is in the folder, or is not.
const (
	moduleKept  = "kept"
	moduleReady = "ready"
)

// moduleEnv is the environment of the child: one thread works, beside the collector's.
var moduleEnv = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}

// moduleStarts is what the starts of one module's children share. The compiled code is kept for as
// long as the tool is open: whatever kills a child, the next one does not compile again.
type moduleStarts struct {
	one chan struct{} // a place for one: a module is not compiled twice at a time

	mu       sync.Mutex
	folder   codeFolder // none before it is needed, or where none can be made: each child compiles
	closed   bool
	compiled identity // the file that was compiled, or could not be
	why      error    // why not; nil: its code is in the folder
}

// codePath returns the path of the directory of the compiled code, "" if there is none.
func (m *moduleStarts) codePath() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.folder.path == "" && !m.closed {
		m.folder, _ = newCodeFolder(os.TempDir())
	}
	return m.folder.path
}

func (m *moduleStarts) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.folder.remove()
	m.folder, m.closed = codeFolder{}, true
}

// verdict reports whether the file at path is compiled, or why not; false and nil: unknown.
func (m *moduleStarts) verdict(path string) (id identity, compiled bool, err error) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return identity{}, false, nil // the child reports it
	}
	id = identityOf(&st)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.compiled != id {
		return id, false, nil
	}
	return id, m.why == nil, m.why
}

func (m *moduleStarts) record(id identity, why error) error {
	if id != (identity{}) {
		m.mu.Lock()
		m.compiled, m.why = id, why
		m.mu.Unlock()
	}
	return why
}

// launchModule starts a child and waits until it has compiled the module, for which it needs one of
// maxCompiles places, or found it compiled. If the call ends before, the child goes on for the next
// call's sake, with less of the processors, until the code is kept.
func (t *Process) launchModule(ctx context.Context, streams []*os.File) (*procgroup.Process, error) {
	var held []chan struct{}
	defer func() {
		for _, place := range held {
			<-place
		}
	}()
	id, compiled, err := t.module.verdict(t.cfg.Module)
	for _, place := range [...]chan struct{}{t.module.one, t.spawner.compiling} {
		if compiled || err != nil {
			break
		}
		select {
		case place <- struct{}{}:
			held = append(held, place)
		case <-t.ctx.Done():
			return nil, errClosed
		case <-ctx.Done():
			return nil, errLateStart
		}
		id, compiled, err = t.module.verdict(t.cfg.Module) // another start may have been at it
	}
	if err != nil {
		return nil, err
	}
	argv := workerexec.Argv(t.cfg.Limits, "", []string{t.cfg.Module, t.cfg.SHA256, t.module.codePath()})
	s, err := t.launchSelf(ctx, &selfStart{argv: argv, streams: streams, limit: t.compileTime, lowers: true})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, t.module.record(id, fmt.Errorf("%w: it was not compiled within %s", errModule, t.compileTime))
	case err != nil:
		return nil, err
	case s.said == moduleReady:
		return s.proc, nil
	case s.said == moduleKept:
		_ = t.module.record(id, nil)
		if !s.lowered {
			return s.proc, nil
		}
		discard(s.proc)
		return nil, errLateStart
	}
	if code := discard(s.proc); s.said == "" && code == fatalCode {
		return nil, t.module.record(id, fmt.Errorf("%w: it was not compiled within %d bytes of memory", errModule, t.cfg.Limits.Data))
	}
	err = moduleError(s.said)
	if errors.Is(err, errModule) {
		_ = t.module.record(id, err)
	}
	return nil, err
}

// The kinds of errors that a child reports, by the first word.
var moduleErrors = map[string]error{"hash": errHash, "absent": fs.ErrNotExist, "forbidden": fs.ErrPermission,
	"module": errModule}

// moduleError is the answer of a child: a kind, a space and the text.
func moduleError(said string) error {
	kind, text, _ := strings.Cut(said, " ")
	if err, ok := moduleErrors[kind]; ok {
		return childError{text, err}
	}
	return errMuteStart
}

// childError is an error of the child, with its text and its kind.
type childError struct {
	text string
	kind error
}

func (e childError) Error() string { return e.text }
func (e childError) Unwrap() error { return e.kind }

func report(err error) string {
	for kind, is := range moduleErrors {
		if kind != "module" && errors.Is(err, is) {
			return kind + " " + err.Error()
		}
	}
	return "module " + err.Error()
}

const folderPrefix = "trunkline-wasm-"

// codeFolder is a directory of compiled code for this user only. Its lock, for the life of its
// process, shows that it is in use: others remove only what is not locked.
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

package workers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/shim"
)

const (
	// DefaultCompileTime is what a module has to be read and compiled. One that takes longer is refused.
	DefaultCompileTime = 30 * time.Second
	// MaxModuleMemory is what the child that runs a module may write to: 64 MiB of the module's own, its code, and what the compiler needs.
	MaxModuleMemory = 1 << 30
	// maxModuleCode is the largest file of compiled code.
	maxModuleCode = 256 << 20
)

// moduleEnv is the environment of the child: compiling and running are work of one thread each, beside that of the collector.
var moduleEnv = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}

// moduleStarts is what the starts of one module's children share. The compiled code is kept in a directory that only this user may
// look into, for as long as the tool is open: whatever kills a child, the next one does not compile again.
type moduleStarts struct {
	one chan struct{} // a place for one: a module is not compiled twice at a time

	mu      sync.Mutex
	dir     string   // "" if none could be made, or none was needed yet
	refused identity // the file that could not be compiled within the limits
	why     error
}

// folder returns the directory of the compiled code, "" if none can be made.
func (m *moduleStarts) folder() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir == "" {
		m.dir, _ = os.MkdirTemp("", "trunkline-wasm-") // mode 0700; without one each child compiles
	}
	return m.dir
}

func (m *moduleStarts) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != "" {
		_ = os.RemoveAll(m.dir) // what is left is of no use to anything
		m.dir = ""
	}
}

// verdict returns why the file could not be compiled within the limits, nil if it was not tried.
func (m *moduleStarts) verdict(id identity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused == id && id != (identity{}) {
		return m.why
	}
	return nil
}

func (m *moduleStarts) refuse(id identity, why error) {
	m.mu.Lock()
	m.refused, m.why = id, why
	m.mu.Unlock()
}

// launchModule starts a child that runs the module, and waits until it has compiled it.
func (t *Process) launchModule(ctx context.Context, streams []*os.File) (*os.Process, error) {
	select {
	case t.module.one <- struct{}{}:
	case <-t.ctx.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, errLateStart
	}
	defer func() { <-t.module.one }()
	var st unix.Stat_t
	var id identity
	if unix.Stat(t.cfg.Module, &st) == nil {
		id = identityOf(&st)
	}
	if err := t.module.verdict(id); err != nil {
		return nil, err
	}
	argv := shim.Argv(t.cfg.Limits, "", []string{t.cfg.Module, t.cfg.SHA256, t.module.folder()})
	proc, said, err := t.launchSelf(ctx, argv, streams, t.compileTime)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: it was not compiled within %s", errModule, t.compileTime)
		t.module.refuse(id, err)
	case err == nil && len(said) > 0:
		err = moduleError(string(said))
	}
	return proc, err
}

// The kinds of errors that a child reports, by the first word.
var moduleErrors = map[string]error{"hash": errHash, "absent": fs.ErrNotExist, "forbidden": fs.ErrPermission, "module": errModule}

// moduleError is what a child said: a kind, a space and the text.
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

// report is the reverse of moduleError.
func report(err error) string {
	for kind, is := range moduleErrors {
		if kind != "module" && errors.Is(err, is) {
			return kind + " " + err.Error()
		}
	}
	return "module " + err.Error()
}

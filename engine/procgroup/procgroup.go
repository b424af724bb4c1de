// Package procgroup starts a program as the leader of a process group, and ends it with all that it
// started (toolhost §4.8, §4.9); it also finds programs, makes environments and reaps orphans.
package procgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a process that leads its group. Any goroutine may use it.
type Process struct {
	*os.Process

	mu     sync.Mutex // signals are sent under it: after the leader is reaped its number is free
	reaped bool
}

// Start starts a process in a group of its own. On Linux it ends with the thread that starts it.
func Start(file string, argv []string, attr *os.ProcAttr) (*Process, error) {
	attr.Sys = isolated()
	proc, err := os.StartProcess(file, argv, attr)
	if err != nil {
		return nil, err
	}
	return &Process{Process: proc}, nil
}

// Kill ends the process and every process of its group. After Wait it does nothing.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.Pid, unix.SIGKILL)
		_ = p.Process.Kill() // it may have moved to another group
	}
}

// Terminate asks every process of the group to end. After Wait it does nothing.
func (p *Process) Terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.Pid, unix.SIGTERM)
	}
}

// Wait waits for the end of the process, ends what is left of its group, and returns the exit code
// of toolhost §3.5: 128 and the number of the signal if one ended it.
func (p *Process) Wait() (code int) {
	st := awaitExit(p.Process)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	if st == nil {
		st, _ = p.Process.Wait()
	}
	p.reaped = true
	if st == nil {
		return Killed
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return st.ExitCode()
}

// Killed is the exit code of a process that SIGKILL ended.
const Killed = 128 + int(syscall.SIGKILL)

// inherited lists what a worker gets of the server's environment (toolhost §4.9).
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "MACHINA_ROOT"}

// Environ returns a worker's environment: variables of the server that lookup knows, then extra
// "NAME=value". What loads code (LD_*) and secrets (MACHINA_*TOKEN*) are left out.
func Environ(lookup func(name string) (value string, ok bool), extra []string) []string {
	env := make([]string, 0, len(inherited)+len(extra))
	at := make(map[string]int, cap(env)) // by name: a manifest may have many
	for _, name := range inherited {
		if value, ok := lookup(name); ok {
			at[name] = len(env)
			env = append(env, name+"="+value)
		}
	}
	for _, e := range extra {
		name, _, ok := strings.Cut(e, "=")
		if !ok || forbidden(name) {
			continue
		}
		if i, have := at[name]; have {
			env[i] = e
			continue
		}
		at[name] = len(env)
		env = append(env, e)
	}
	return env
}

func forbidden(name string) bool {
	return Secret(name) || name == "" || strings.HasPrefix(name, "LD_")
}

// Secret reports whether a variable of that name is a secret, which no worker is given.
func Secret(name string) bool {
	token, _ := path.Match("MACHINA_*TOKEN*", strings.ReplaceAll(name, "/", "_"))
	return token
}

// ErrNotInPath is the error of a program that no directory of PATH has.
var ErrNotInPath = errors.New("executable not found in PATH")

// Executable returns the file of a command's first word: a path, or a name in the PATH of env.
func Executable(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, runnable(name)
	}
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if i < 0 {
		return "", fmt.Errorf("%w: %s", ErrNotInPath, name)
	}
	for _, dir := range filepath.SplitList(env[i][len("PATH="):]) {
		// An empty or relative entry would mean another program in every working directory.
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNotInPath, name)
}

func runnable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return &fs.PathError{Op: "exec", Path: file, Err: fs.ErrPermission}
	}
	return nil
}

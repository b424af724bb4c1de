package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/workerexec"
)

const (
	// launchLimit is what a process has until its program begins.
	launchLimit = 30 * time.Second
	maxStatus   = 4 << 10
)

// errMuteStart is a process that ended, or had to be, before its program began.
var errMuteStart = errors.New("the process ended before its program began")

// program returns what a process is started from. close must follow.
func (t *Process) program(ctx context.Context) (*program, error) {
	if t.cfg.Module != "" {
		return new(program), nil // the child reads the module, and compares its hash
	}
	file, err := procgroup.Executable(t.cfg.Command[0], t.cfg.Env)
	if err != nil {
		return nil, err
	}
	p, err := openProgram(ctx, file, t.cfg.SHA256, t.maxProgram)
	if err == nil {
		p.native = p.native && workerexec.Enabled && t.cfg.Wrapper.none() // a wrapper needs its path
	}
	return p, err
}

// launch starts a process, and waits until its program runs: it was started or compiled.
func (t *Process) launch(ctx context.Context, p *program, streams []*os.File) (*procgroup.Process, error) {
	if t.cfg.MaxProcesses > 0 {
		if err := t.spawner.census.open(); err != nil {
			return nil, fmt.Errorf("cannot count processes: %w", err)
		}
	}
	switch {
	case t.cfg.Module != "":
		return t.launchModule(ctx, streams)
	case !p.same():
		return nil, errHash
	}
	file, argv, err := t.cfg.Wrapper.around(p.path, t.cfg.Command)
	if err != nil {
		return nil, err
	}
	if !workerexec.Enabled {
		return t.spawner.start(ctx, file, argv, t.attr(streams))
	}
	path, files := file, []*os.File(nil)
	if p.native {
		path, files = workerexec.ByDescriptor, []*os.File{p.file}
	}
	s, err := t.launchSelf(ctx, &selfStart{argv: workerexec.Argv(t.cfg.Limits, path, argv), streams: streams, files: files, limit: launchLimit})
	if err == nil && s.said != "" {
		discard(s.proc)
		return nil, &fs.PathError{Op: "fork/exec", Path: file, Err: syscall.Errno(s.said[0])}
	}
	return s.proc, err
}

func (t *Process) attr(files []*os.File) *os.ProcAttr {
	return &os.ProcAttr{Dir: t.cfg.Dir, Env: t.cfg.Env, Files: files}
}

type selfStart struct {
	argv    []string
	streams []*os.File
	files   []*os.File // further descriptors, from workerexec.ProgramFD on
	limit   time.Duration
	lowers  bool // the process gets less of the processors once the call has ended

	proc    *procgroup.Process
	said    string // on its status descriptor
	lowered bool
}

// launchSelf starts this binary as a worker, and waits for the end of its status descriptor.
func (t *Process) launchSelf(ctx context.Context, s *selfStart) (*selfStart, error) {
	file, err := workerexec.Self()
	if err != nil {
		return s, err
	}
	var status pipe
	if err := status.open(); err != nil {
		return s, err
	}
	defer status.close()
	if t.ctx.Err() != nil {
		return s, errClosed
	}
	files := append(append(slices.Clip(s.streams), status.w), s.files...)
	if s.proc, err = t.spawner.start(ctx, file, s.argv, t.attr(files)); err != nil {
		return s, err
	}
	_ = status.w.Close() // the process has its own
	_ = status.r.SetReadDeadline(time.Now().Add(s.limit))
	defer context.AfterFunc(t.ctx, func() { _ = status.r.SetReadDeadline(time.Unix(1, 0)) })()
	lowered := make(chan struct{})
	stop := func() bool { return true }
	if s.lowers {
		stop = context.AfterFunc(ctx, func() {
			defer close(lowered)
			lower(s.proc.Pid)
		})
	}
	said, err := io.ReadAll(io.LimitReader(status.r, maxStatus))
	if !stop() {
		<-lowered // before the number can be another process's
		s.lowered = true
	}
	if err == nil {
		s.said = string(said)
		return s, nil
	}
	discard(s.proc)
	s.proc = nil
	if t.ctx.Err() != nil {
		return s, errClosed
	}
	return s, errors.Join(errMuteStart, err)
}

// discard ends a process that no worker has, with its group, and returns its exit code.
func discard(proc *procgroup.Process) int {
	proc.Kill()
	return proc.Wait()
}

// lower gives the processes of a group less of the processors, as far as the system permits.
func lower(pid int) { _ = syscall.Setpriority(syscall.PRIO_PGRP, pid, lateNice) }

// Wrapper is a command that programs are started through, as one that confines them: path and
// arguments follow its own. It must execute them, in its group, and not use its standard streams.
type Wrapper struct {
	// Command is the wrapper, a path or a name that is looked up in Path, and its arguments.
	Command []string
	// Path is as the variable PATH is.
	Path string
}

func (w *Wrapper) none() bool { return len(w.Command) == 0 }

// Check reports why nothing can be started through the wrapper, nil if nothing is known.
func (w *Wrapper) Check() error {
	_, err := w.file()
	return err
}

func (w *Wrapper) file() (string, error) {
	if w.none() {
		return "", nil
	}
	return procgroup.Executable(w.Command[0], []string{"PATH=" + w.Path})
}

// errWrapper is an error of the wrapper, where it could be taken for one of the program.
func errWrapper(err error) error { return fmt.Errorf("cannot use the wrapper: %w", err) }

// around returns what is started, with which arguments, to run the program at path as command.
func (w *Wrapper) around(path string, command []string) (file string, argv []string, err error) {
	if w.none() {
		return path, command, nil
	}
	if file, err = w.file(); err != nil {
		return "", nil, errWrapper(err)
	}
	return file, slices.Concat(w.Command, []string{path}, command[1:]), nil
}

// Spawner starts processes from one OS thread of its own lifetime: a worker gets the signal of the
// server's death when its starting thread ends (toolhost §4.9). Any number of tools may share one.
type Spawner struct {
	jobs      chan func()
	done      chan struct{}
	stop      sync.Once
	compiling chan struct{} // has room for maxCompiles
	sweep     sync.Once     // of what earlier servers left behind
	watches   bool          // this system reports when a worker takes its request
	census    census
}

// NewSpawner starts the thread. Close ends it.
func NewSpawner() *Spawner {
	s := &Spawner{jobs: make(chan func()), done: make(chan struct{}), compiling: make(chan struct{}, maxCompiles), watches: canWatch()}
	ready := make(chan struct{})
	go s.loop(ready)
	<-ready
	return s
}

func (s *Spawner) loop(ready chan<- struct{}) {
	runtime.LockOSThread()
	// Without this the thread would end with the goroutine, and every process it started with it.
	defer runtime.UnlockOSThread()
	close(ready)
	for {
		select {
		case start := <-s.jobs:
			start()
		case <-s.done:
			return
		}
	}
}

// start starts a process in a process group of its own. It waits for its turn until ctx ends.
func (s *Spawner) start(ctx context.Context, file string, argv []string, attr *os.ProcAttr) (p *procgroup.Process, err error) {
	ended := make(chan struct{})
	job := func() {
		p, err = procgroup.Start(file, argv, attr)
		close(ended)
	}
	select {
	case s.jobs <- job:
		<-ended
		return p, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.done:
		return nil, os.ErrClosed
	}
}

// Close ends the thread. Tools that use it must be closed before. It may be called again.
func (s *Spawner) Close() {
	s.stop.Do(func() {
		close(s.done)
		s.census.close()
	})
}

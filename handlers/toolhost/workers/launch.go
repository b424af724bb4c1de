package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"trunkline/handlers/toolhost/procgroup"
	"trunkline/handlers/toolhost/shim"
)

const (
	// launchLimit is what a process has until its program begins.
	launchLimit = 30 * time.Second
	// maxStatus is how much of the report of a start that failed is read.
	maxStatus = 4 << 10
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
		p.native = p.native && shim.Enabled && t.cfg.Wrapper.none() // a wrapper opens the program by its path
	}
	return p, err
}

// launch has the spawner start a process, and waits until its program runs: until it was started, or the module was compiled.
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
	if !shim.Enabled {
		return t.spawner.start(ctx, t.job(file, argv, streams))
	}
	path, files := file, []*os.File(nil)
	if p.native {
		path, files = shim.ByDescriptor, []*os.File{p.file}
	}
	s, err := t.launchSelf(ctx, &selfStart{argv: shim.Argv(t.cfg.Limits, path, argv), streams: streams, files: files, limit: launchLimit})
	if err == nil && s.said != "" {
		discard(s.proc)
		return nil, &fs.PathError{Op: "fork/exec", Path: file, Err: syscall.Errno(s.said[0])}
	}
	return s.proc, err
}

func (t *Process) job(file string, argv []string, files []*os.File) *spawnJob {
	return &spawnJob{file: file, argv: argv, ended: make(chan struct{}), attr: &os.ProcAttr{Dir: t.cfg.Dir, Env: t.cfg.Env, Files: files}}
}

// selfStart is a start of this binary as a worker.
type selfStart struct {
	argv    []string
	streams []*os.File
	files   []*os.File // further descriptors, from shim.ProgramFD on
	limit   time.Duration
	lowers  bool // the process gets less of the processors once the call has ended

	proc    *procgroup.Process
	said    string // on its status descriptor
	lowered bool
}

// launchSelf starts this binary as a worker, and waits for the end of its status descriptor. There is no process if it fails.
func (t *Process) launchSelf(ctx context.Context, s *selfStart) (*selfStart, error) {
	file, err := shim.Self()
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
	if s.proc, err = t.spawner.start(ctx, t.job(file, s.argv, files)); err != nil {
		return s, err
	}
	_ = status.w.Close() // the process has its own
	_ = status.r.SetReadDeadline(time.Now().Add(s.limit))
	defer context.AfterFunc(t.ctx, func() { _ = status.r.SetReadDeadline(time.Unix(1, 0)) })() // closed by then: nothing waits
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

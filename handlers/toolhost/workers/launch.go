package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

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
	file, err := executable(t.cfg.Command[0], t.cfg.Env)
	if err != nil {
		return nil, err
	}
	p, err := openProgram(ctx, file, t.cfg.SHA256, t.maxProgram)
	if err == nil {
		p.native = p.native && shimmed && t.cfg.Wrapper.none() // a wrapper opens the program by its path
	}
	return p, err
}

// launch has the spawner start a process, and waits until its program runs: until it was started, or the module was compiled.
func (t *Process) launch(ctx context.Context, p *program, streams []*os.File) (*os.Process, error) {
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
	if !shimmed {
		return t.spawner.start(ctx, t.job(file, argv, streams))
	}
	path, files := file, []*os.File(nil)
	if p.native {
		path, files = shim.ByDescriptor, []*os.File{p.file}
	}
	proc, said, err := t.launchSelf(ctx, shim.Argv(t.cfg.Limits, path, argv), streams, launchLimit, files...)
	if err == nil && len(said) > 0 {
		err = &fs.PathError{Op: "fork/exec", Path: file, Err: syscall.Errno(said[0])}
	}
	return proc, err
}

func (t *Process) job(file string, argv []string, files []*os.File) *spawnJob {
	return &spawnJob{file: file, argv: argv, ended: make(chan struct{}), attr: &os.ProcAttr{Dir: t.cfg.Dir, Env: t.cfg.Env, Files: files}}
}

// launchSelf starts this binary as a worker, and waits for the end of its status descriptor. What it said there, if anything, is why the
// start failed; the process is nil then.
func (t *Process) launchSelf(ctx context.Context, argv []string, streams []*os.File, limit time.Duration, more ...*os.File) (proc *os.Process, said []byte, err error) {
	file, err := self()
	if err != nil {
		return nil, nil, err
	}
	var status pipe
	if err := status.open(); err != nil {
		return nil, nil, err
	}
	defer status.close()
	files := append(append(slices.Clip(streams), status.w), more...)
	if proc, err = t.spawner.start(ctx, t.job(file, argv, files)); err != nil {
		return nil, nil, err
	}
	_ = status.w.Close() // the process has its own
	_ = status.r.SetReadDeadline(time.Now().Add(limit))
	defer context.AfterFunc(t.ctx, func() { _ = status.r.SetReadDeadline(time.Unix(1, 0)) })() // closed by then: nothing waits
	said, err = io.ReadAll(io.LimitReader(status.r, maxStatus))
	if len(said) == 0 && err == nil {
		return proc, nil, nil
	}
	var mu sync.Mutex
	killGroup(proc.Pid)
	reap(proc, &mu, new(bool))
	switch {
	case t.ctx.Err() != nil:
		return nil, nil, errClosed
	case err != nil:
		return nil, nil, errors.Join(errMuteStart, err)
	}
	return nil, said, nil
}

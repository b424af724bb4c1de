package workers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

// defaultTimeout bounds a call whose context has no deadline (toolhost §6).
const defaultTimeout = 30 * time.Second

// closeGrace is how long Close waits for processes that the kernel may not end after SIGKILL.
const closeGrace = stopGrace + 3*time.Second

// ProcessConfig is what a Process is made of. It is not changed, and must not be after NewProcess.
type ProcessConfig struct {
	// Command is the program, a path or a name in the PATH of Env, and its arguments.
	Command []string
	// Wrapper is what the program is started through. Modules are not.
	Wrapper Wrapper
	// Module, if not empty, is a WASI preview-1 command module that a child runs for Command.
	Module string
	// Dir is the working directory.
	Dir string
	// Env is the whole environment; see Environ.
	Env []string
	// SHA256 of the program, in lower-case hex, is checked with each start. Empty: any.
	SHA256 string
	// Oneshot starts a process for each call, of which Pool.Max run at a time.
	Oneshot bool
	// Stateless means that the tool is never shown the caller's state (state "none").
	Stateless bool
	// Plain means no tool: it gets the call's input as its line and replies with any JSON object.
	Plain bool
	// Pool is how many workers there are.
	Pool tool.Pool
	// Limits of each process.
	Limits workerexec.Limits
	// MaxProcesses is how many processes a worker's group may have, unreaped ones included; one
	// with more is ended. 0: any number. Where CanCount fails, nothing with a limit is started.
	MaxProcesses int
	// Spawner starts the processes. nil: one of its own.
	Spawner *Spawner
	// Started and Exited, if not nil, are called for each process, from any goroutine.
	Started func(pid int)
	Exited  func(pid, code int, reason string)
}

// Process is a tool that programs run (toolhost §4.9). Any number of goroutines may call Run.
type Process struct {
	cfg     ProcessConfig
	spawner *Spawner
	own     bool // spawner is to be closed
	pool    pool

	maxProgram  int64         // maxProgram
	compileTime time.Duration // defaultCompileTime

	ctx    context.Context // ended by Close: no start outlives it
	cancel context.CancelFunc
	module moduleStarts
}

// NewProcess returns a tool that starts its processes when they are needed. Close ends them.
func NewProcess(cfg ProcessConfig) *Process {
	without := tool.DefaultPool()
	cfg.Pool.Max = cmp.Or(max(cfg.Pool.Max, 0), without.Max)
	cfg.Pool.MaxRequests = cmp.Or(max(cfg.Pool.MaxRequests, 0), without.MaxRequests)
	if cfg.Oneshot {
		cfg.Pool.Min, cfg.Pool.Idle = 0, 0
	} else {
		cfg.Limits.CPU = 0 // it is per call (toolhost §4.9)
	}
	if cfg.Module != "" {
		cfg.Env, cfg.Dir, cfg.Oneshot = moduleEnv, "", false
		cfg.Limits = workerexec.Limits{Data: maxModuleMemory, FileSize: maxModuleCode, OpenFiles: 64}
	}
	if len(cfg.Command) == 0 {
		cfg.Command = []string{""}
	}
	if cfg.Started == nil {
		cfg.Started = func(int) {}
	}
	if cfg.Exited == nil {
		cfg.Exited = func(int, int, string) {}
	}
	t := &Process{cfg: cfg, spawner: cfg.Spawner, maxProgram: maxProgram, compileTime: defaultCompileTime}
	if t.spawner == nil {
		t.spawner, t.own = NewSpawner(), true
	}
	if cfg.Module != "" {
		t.spawner.sweep.Do(func() { sweepFolders(os.TempDir()) })
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.module.one = make(chan struct{}, 1)
	t.pool.t, t.pool.all = t, make(map[*worker]struct{})
	return t
}

// Workers returns how many processes there are: starting, idle, busy or ending.
func (t *Process) Workers() int {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return t.pool.places + t.pool.forsaken
}

// Run has a worker run the call until ctx or defaultTimeout; it may return a dispatch error (§3.5).
func (t *Process) Run(ctx context.Context, c *tool.Call) tool.Result {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	for {
		w, err := t.pool.take(ctx)
		if err != nil {
			return notRun(c.AID, err)
		}
		if ctx.Err() != nil {
			t.pool.put(w) // unused
			return notRun(c.AID, errNoWorker)
		}
		w.req = t.appendRequest(w.req[:0], c)
		if t.cfg.Oneshot {
			return t.runOnce(ctx, w, c)
		}
		w.asked(time.Now())
		line, f := w.ask(ctx)
		switch {
		case f == fine:
			return t.answer(w, c, line)
		case f == ended && w.untouched():
			w.turn.after = reasonExited // it ended right after its last reply
		case f != unfit:
			return t.fail(w, c, f)
		case w.fresh() && w.turn.after == reasonUnsolicited:
			return t.garbled(w, c, reasonUnsolicited, "output before the first request", nil)
		case w.fresh():
			return t.fail(w, c, ended)
		}
		t.pool.retire(w, w.turn.after, false)
	}
}

// appendRequest appends the line that a worker of this tool gets.
func (t *Process) appendRequest(dst []byte, c *tool.Call) []byte {
	if t.cfg.Plain {
		return append(append(dst, c.Input...), '\n')
	}
	return appendRequest(dst, c, t.cfg.Stateless)
}

// parseReply reads what a worker of this tool answered, as the function parseReply does.
func (t *Process) parseReply(line []byte, c *tool.Call) (r tool.Result, bad string) {
	if !t.cfg.Plain {
		return parseReply(line, c, t.cfg.Stateless)
	}
	if line = jsonx.TrimBOM(line); !jsonx.Check(line, maxDepth).OK() || jsonx.ValueOf(line).Kind != jsonx.ObjectStart {
		return tool.Result{}, notObject(line)
	}
	return tool.Result{Output: bytes.Clone(line)}, ""
}

func (t *Process) answer(w *worker, c *tool.Call, line []byte) tool.Result {
	if w.turn.after == reasonUnsolicited { // which of them would be the answer?
		return t.garbled(w, c, reasonUnsolicited, "more than the one line of a reply", w.buf)
	}
	if !w.proven() {
		return t.swapped(w, c)
	}
	r, bad := t.parseReply(line, c)
	switch {
	case bad != "":
		return t.garbled(w, c, reasonGarbage, bad, line)
	case w.turn.after != "":
		t.pool.retire(w, w.turn.after, true)
	case w.turn.spoilt:
		t.pool.retire(w, reasonTimeout, false)
	default:
		t.pool.give(w)
	}
	return r
}

// runOnce is Run for a process of one call: its exit code counts, its whole output is the reply.
func (t *Process) runOnce(ctx context.Context, w *worker, c *tool.Call) tool.Result {
	text, f := w.askOnce(ctx)
	if f != ended {
		return t.fail(w, c, f)
	}
	select {
	case <-w.gone:
	case <-ctx.Done():
		return t.fail(w, c, late)
	}
	switch {
	case !w.proven():
		return t.swapped(w, c)
	case w.exitCodeNow() != 0:
		return t.discard(w, c, reasonExited, tool.Crash)
	}
	r, bad := t.parseReply(text, c)
	if bad != "" {
		return t.garbled(w, c, reasonGarbage, bad, text)
	}
	t.pool.retire(w, reasonExited, false)
	return r
}

// swapped ends a worker that may have run another program than the one that was hashed.
func (t *Process) swapped(w *worker, c *tool.Call) tool.Result {
	t.discard(w, c, reasonSwapped, tool.NotFound)
	return notRun(c.AID, errHash)
}

func (t *Process) fail(w *worker, c *tool.Call, f fault) tool.Result {
	switch f {
	case late:
		return t.discard(w, c, reasonTimeout, tool.Timeout)
	case tooLong:
		return t.garbled(w, c, reasonOversize, "longer than a reply may be", w.buf)
	case strayed:
		return t.garbled(w, c, reasonUnsolicited, "output before the request was taken", w.buf)
	}
	if !w.settle(exitGrace) {
		return t.discard(w, c, reasonMute, tool.Crash)
	}
	return t.discard(w, c, reasonExited, tool.Crash)
}

// garbled ends a worker that wrote something that is no reply, text, and returns why it is none.
func (t *Process) garbled(w *worker, c *tool.Call, reason, why string, text []byte) tool.Result {
	text = bytes.Clone(text[:min(len(text), maxShown+1)])
	t.discard(w, c, reason, tool.ParseError)
	return tool.Broken(c.AID, tool.ParseError, 0, explain(why, text, w.errs.String()))
}

func (t *Process) discard(w *worker, c *tool.Call, reason string, kind tool.DispatchType) tool.Result {
	t.pool.retire(w, reason, false)
	w.settle(settleGrace)
	return tool.Broken(c.AID, kind, w.exitCodeNow(), w.errorDetail(t.cfg.MaxProcesses))
}

// notStartable are the errors of programs and modules that are missing or must not be run.
var notStartable = []error{errModule, fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC, syscall.ENOTDIR, syscall.ELOOP,
	syscall.ETXTBSY, errHash, errTooLarge, procgroup.ErrNotInPath}

func notRun(aid string, err error) tool.Result {
	kind := tool.Exception
	switch is := func(e error) bool { return errors.Is(err, e) }; {
	case is(errNoWorker), is(errLateStart):
		kind = tool.Timeout
	case slices.ContainsFunc(notStartable, is):
		kind = tool.NotFound
	}
	r := tool.Broken(aid, kind, 0, err.Error())
	r.Failure.Dispatch.Waited = errors.Is(err, errNoWorker)
	return r
}

// Close ends all processes with their groups, and waits for that: idle ones have stopGrace. Calls
// that run end as crashes, later ones are refused. It may be called again.
func (t *Process) Close() error {
	t.cancel()
	all := t.pool.close()
	t.module.close()
	if t.own {
		t.spawner.Close()
	}
	if !all {
		return errors.New("cannot end all workers: " + cmp.Or(t.cfg.Module, t.cfg.Command[0]))
	}
	return nil
}

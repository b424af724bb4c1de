package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"trunkline/engine/procgroup"
)

const (
	runLimit = 600 * time.Second // for a command that neither ends nor is acknowledged (threads §4.9)
	// maxProcesses bounds the commands that run, with those that were acknowledged and go on.
	maxProcesses = 64
	// outputGrace is how long output is read after the end of a command, where something that left
	// its group holds the pipe. Else the pipe ends with the group.
	outputGrace = time.Second
	// termGrace is between the order to end and the end by force.
	termGrace = time.Second
)

// RunnerConfig configures a Runner.
type RunnerConfig struct {
	Dir     string   // the working directory of commands
	Environ []string // their environment
	LogDir  string   // the folder of their output, which is made
}

// Runner runs fallback commands. It may be used by many goroutines.
type Runner struct {
	cfg   RunnerConfig
	limit time.Duration
	most  int
	ctx   context.Context // ends with Close
	stop  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	asked   bool // commands have got SIGTERM
	running int
	procs   map[*procgroup.Process]struct{}
	ended   sync.WaitGroup // of all that run
}

// NewRunner returns a Runner. Close must follow.
func NewRunner(cfg RunnerConfig) (*Runner, error) {
	if err := os.MkdirAll(cfg.LogDir, 0o700); err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, limit: runLimit, most: maxProcesses, procs: map[*procgroup.Process]struct{}{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Drain starts no more commands, and waits for those that run until ctx ends. Then it sends
// them SIGTERM, and waits termGrace. Close must follow.
func (r *Runner) Drain(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		r.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	r.mu.Lock()
	r.asked = true
	for proc := range r.procs {
		proc.Terminate()
	}
	r.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(termGrace):
	}
}

// hold notes a process that runs, until release.
func (r *Runner) hold(proc *procgroup.Process) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.procs[proc] = struct{}{}; r.asked {
		proc.Terminate()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.procs, proc)
	}
}

// Close ends every command with what it started, and waits. It may be called again.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.ended.Wait()
}

// Run runs a command. It succeeds at exit code 0, or when acked is closed: then the command goes
// on, without a limit. Any other command is ended after 600 s, or with ctx.
func (r *Runner) Run(ctx context.Context, c Command, acked <-chan struct{}) Outcome {
	switch {
	case !plainID().MatchString(c.TriggerID):
		return outcome(RunFailed, "the identifier of the trigger cannot name a file")
	case len(c.Argv) == 0:
		return outcome(RunFailed, "the command is empty")
	}
	r.mu.Lock()
	closed, full := r.closed, r.running >= r.most
	if closed || full {
		r.mu.Unlock()
		if closed {
			return outcome(Interrupted, "")
		}
		return outcome(RunFailed, fmt.Sprintf("%d commands run already", r.most))
	}
	r.running++
	r.ended.Add(1)
	r.mu.Unlock()
	end := make(chan error, 1)
	released, cancel := context.WithCancelCause(r.ctx)
	go func() {
		defer r.ended.Done()
		defer cancel(nil)
		err := r.execute(released, c)
		r.mu.Lock()
		r.running--
		r.mu.Unlock()
		end <- err
	}()
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	select {
	case err := <-end:
		return r.outcome(err)
	case <-acked:
		return Outcome{}
	case <-timer.C:
		cancel(fmt.Errorf("ended after %v without exit or acknowledgement", r.limit))
	case <-ctx.Done():
		cancel(errInterrupted)
	}
	return r.outcome(<-end)
}

var errInterrupted = errors.New("interrupted")

// outcome returns the outcome of a command that has ended.
func (r *Runner) outcome(err error) Outcome {
	r.mu.Lock()
	asked := r.asked
	r.mu.Unlock()
	switch {
	case err == nil:
		return Outcome{}
	case asked || errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled):
		return outcome(Interrupted, "")
	}
	return outcome(RunFailed, err.Error())
}

// execute runs a command until it ends, or ctx does.
func (r *Runner) execute(ctx context.Context, c Command) error {
	// The parent-death signal comes when the starting thread ends, which must outlive the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log, err := openLog(r.cfg.LogDir, c.TriggerID)
	if err != nil {
		return err
	}
	defer log.close()
	proc, out, err := r.start(c)
	if err != nil {
		log.note("cannot start: " + err.Error())
		return err
	}
	defer r.hold(proc)()
	stop := context.AfterFunc(ctx, proc.Kill)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(log, out) // the log never fails, and output that cannot be read is none
	}()
	code := proc.Wait()
	ownEnd := stop()
	_ = out.SetReadDeadline(time.Now().Add(outputGrace))
	<-copied
	_ = out.Close()
	switch {
	case !ownEnd && code != 0:
		err = context.Cause(ctx)
	case code != 0:
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		log.note(err.Error())
	}
	return err
}

// start starts the process of a command. out is its stdout and stderr.
func (r *Runner) start(c Command) (proc *procgroup.Process, out *os.File, err error) {
	name := c.Argv[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(r.cfg.Dir, name) // as the system would find it
	}
	file, err := procgroup.Executable(name, r.cfg.Environ)
	if err != nil {
		return nil, nil, err
	}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = stdin.Close() }()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = stdout.Close() }()
	attr := &os.ProcAttr{Dir: r.cfg.Dir, Env: r.cfg.Environ, Files: []*os.File{stdin, stdout, stdout}}
	if proc, err = procgroup.Start(file, c.Argv, attr); err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	return proc, out, nil
}

const (
	// maxLogBytes bounds the output that is kept of the commands of one job.
	maxLogBytes = 1 << 20
	// maxLogs bounds the log files that are kept: the newest ones.
	maxLogs   = 1000
	logSuffix = ".log"
)

// runLog is the log file of a job. It drops what exceeds its cap, so that a command never waits for
// its output to be read.
type runLog struct {
	f    *os.File
	left int64
}

// openLog opens the log of a job: a further command of the same job appends to it.
func openLog(dir, id string) (*runLog, error) {
	removeOldLogs(dir)
	f, err := os.OpenFile(filepath.Join(dir, id+logSuffix), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &runLog{f, maxLogBytes - info.Size()}, nil
}

// removeOldLogs makes room for one more log. Identifiers of triggers begin with their time, so that
// names are in the order of age.
func removeOldLogs(dir string) {
	entries, _ := os.ReadDir(dir) // without it the next step fails
	var logs []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), logSuffix) {
			logs = append(logs, e.Name())
		}
	}
	for len(logs) >= maxLogs {
		_ = os.Remove(filepath.Join(dir, logs[0])) // another command may have removed it
		logs = logs[1:]
	}
}

// Write never fails: a full disk must not end a command.
func (l *runLog) Write(b []byte) (int, error) {
	if l.left > 0 {
		n, _ := l.f.Write(b[:min(int64(len(b)), l.left)])
		if l.left -= int64(n); l.left == 0 {
			_, _ = l.f.WriteString("\n[what follows is not kept]\n")
		}
	}
	return len(b), nil
}

// note adds a line of the server.
func (l *runLog) note(text string) { _, _ = l.Write([]byte("[" + text + "]\n")) }

func (l *runLog) close() { _ = l.f.Close() }

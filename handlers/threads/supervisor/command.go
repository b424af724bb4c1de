package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"trunkline/engine/procgroup"
)

const (
	commandTimeout = 5 * time.Second // of one run of tmux (threads §4.9)
	maxOutput      = 64 << 10        // of one run of tmux (threads §4.9)
)

var (
	errTimeout = errors.New("tmux did not end in time")
	errOutput  = fmt.Errorf("tmux wrote more than %d bytes", maxOutput)
)

// exitError is a run of tmux that it ended with a failure.
type exitError struct {
	code int
	text string // what it wrote
}

func (e *exitError) Error() string {
	return fmt.Sprintf("tmux: exit code %d: %s", e.code, strings.TrimSpace(e.text))
}

// run runs tmux once, without a shell, and returns what it wrote.
func (t *Tmux) run(ctx context.Context, input []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, errTimeout)
	defer cancel()
	// The parent-death signal comes when the starting thread ends, which must outlive the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	proc, in, out, err := t.start(args)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, proc.Kill)()
	// What left the group may hold a pipe open: the deadlines end that.
	_ = in.SetWriteDeadline(time.Now().Add(t.timeout))
	_ = out.SetReadDeadline(time.Now().Add(t.timeout))
	fed := make(chan error, 1)
	go func() {
		_, err := in.Write(input)
		fed <- errors.Join(err, in.Close())
	}()
	text, readErr := io.ReadAll(io.LimitReader(out, maxOutput+1))
	_ = out.Close() // what writes more ends by that, or in time
	code := proc.Wait()
	feedErr := <-fed
	switch {
	case len(text) > maxOutput:
		return "", errOutput
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case readErr != nil:
		return "", readErr
	case code != 0:
		return "", &exitError{code, string(text)}
	}
	return string(text), feedErr
}

// start starts tmux with pipes: in is its stdin, out its stdout and stderr.
func (t *Tmux) start(args []string) (proc *procgroup.Process, in, out *os.File, err error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = stdin.Close() }() // the process has its own
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, errors.Join(err, in.Close())
	}
	defer func() { _ = stdout.Close() }()
	attr := &os.ProcAttr{Env: t.env, Files: []*os.File{stdin, stdout, stdout}}
	if proc, err = procgroup.Start(t.file, append([]string{"tmux"}, args...), attr); err != nil {
		return nil, nil, nil, errors.Join(err, in.Close(), out.Close())
	}
	return proc, in, out, nil
}

// Code is how an attempt ended (threads §5.4).
type Code string

// The outcomes of attempts. Success is empty.
const (
	Success            Code = ""
	OperatorBusy       Code = "OPERATOR_BUSY"
	TargetNotFound     Code = "TARGET_NOT_FOUND"
	PaneDead           Code = "PANE_DEAD"
	PaneIsShell        Code = "PANE_IS_SHELL"
	TargetNotAllowed   Code = "TARGET_NOT_ALLOWED"
	UnsupportedRuntime Code = "UNSUPPORTED_RUNTIME"
	SendKeysError      Code = "SEND_KEYS_ERROR"
	RunFailed          Code = "FALLBACK_FAILED"
	// Interrupted is an attempt that the end of the server stopped. It is not reported to Jobs: its
	// job is as one that a crash stopped.
	Interrupted Code = "INTERRUPTED"
)

// Outcome is the end of an attempt.
type Outcome struct {
	Code   Code
	Detail string // for logs: without prompt, at most maxDetail bytes
}

const maxDetail = 256

func outcome(code Code, detail string) Outcome {
	return Outcome{Code: code, Detail: detail[:min(len(detail), maxDetail)]}
}

// Attempt is a prompt for a live runtime.
type Attempt struct {
	TriggerID string
	Runtime   string
	Envelope  []byte
	Forced    bool // a person at the runtime is no reason to wait
}

// Command is a fallback command.
type Command struct {
	TriggerID string
	Argv      []string // with its placeholders replaced
}

// plainID matches trigger identifiers: they name buffers of tmux and log files.
var plainID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$`) })

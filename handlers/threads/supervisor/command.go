package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
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

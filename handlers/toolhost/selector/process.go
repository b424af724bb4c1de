package selector

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"trunkline/handlers/toolhost/procgroup"
)

// The causes of a failure that need no number (toolhost §4.8 "Failure").
const (
	whyNotStarted = "policy not started"
	whyTimedOut   = "policy timed out"
	whyInvalid    = "invalid policy output"
)

// stdoutGrace is how long the rest of the output is waited for when the process has ended and something that left its group still
// holds the pipe. In all other cases the pipe ends with the group, at once.
const stdoutGrace = time.Second

// execute runs the policy on the payload and returns what it wrote to stdout, or why it failed. When it returns, the process, its
// group and the file of the payload are gone.
func (p *Policy) execute(ctx context.Context, payload []byte) (out []byte, why string) {
	file, err := writePrivate(p.tmp, payload)
	if err != nil {
		return nil, whyNotStarted
	}
	defer func() { _ = os.Remove(file) }()
	// The parent-death signal goes by the thread that started the process: it must not end before the process does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := p.start(file)
	if err != nil {
		return nil, whyNotStarted
	}
	out, why = c.collect(ctx, p.timeout, p.stdoutMax)
	if code := c.exitCode(); why == "" && code != 0 {
		why = "policy exit_code=" + strconv.Itoa(code)
	}
	return out, why
}

// writePrivate writes content to a new file in dir, with an unforeseeable name, that only this user may read.
func writePrivate(dir string, content []byte) (name string, err error) {
	f, err := os.CreateTemp(dir, "policy-*.json") // mode 0600, and never a file that exists
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// child is a policy process that was started.
type child struct {
	procgroup.Child
	out *os.File // the read end of its stdout
}

func (p *Policy) start(file string) (*child, error) {
	exe := p.executable()
	if exe == "" {
		return nil, exec.ErrNotFound
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// Stdin and stderr are the null device: only stdout is read (toolhost D27).
	cmd := &exec.Cmd{Path: exe, Args: append(slices.Clone(p.argv), file), Dir: p.root, Env: p.env, Stdout: w}
	procgroup.Isolate(cmd)
	c := &child{Child: procgroup.Child{Cmd: cmd}, out: r}
	err = c.begin(&p.limits, p.timeout)
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return c, nil
}

// collect reads the output until the process has ended, which it sees to. why says if it was ended early.
func (c *child) collect(ctx context.Context, timeout time.Duration, limit int) (out []byte, why string) {
	text, ended := make(chan []byte, 1), make(chan struct{})
	go func() {
		b, _ := io.ReadAll(io.LimitReader(c.out, int64(limit)+1))
		text <- b
	}()
	go func() {
		c.Reap()
		close(ended)
	}()
	out, rest, why := c.watch(ctx, timeout, limit, text, ended)
	if rest {
		_ = c.out.SetReadDeadline(time.Now().Add(stdoutGrace))
		out = <-text
	}
	_ = c.out.Close()
	if why == "" && len(out) > limit {
		why = whyInvalid
	}
	return out, why
}

// watch waits until the process has ended and kills it when it must. rest tells that the output was not delivered yet.
func (c *child) watch(ctx context.Context, timeout time.Duration, limit int, text <-chan []byte, ended <-chan struct{}) (out []byte, rest bool, why string) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	stop, rest := ctx.Done(), true
	for {
		select {
		case out = <-text:
			// A process that closed its stdout may go on; one that writes too much must not.
			if text, rest = nil, false; len(out) > limit {
				c.Kill()
			}
		case <-ended:
			return out, rest, why
		case <-timer.C:
			why = whyTimedOut
			c.Kill()
		case <-stop:
			stop, why = nil, whyTimedOut
			c.Kill()
		}
	}
}

// exitCode returns how the process ended: 128 and the number of the signal if one ended it.
func (c *child) exitCode() int {
	if code := c.Cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return signalCode(c.Cmd.ProcessState)
}

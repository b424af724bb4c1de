package dispatch

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"trunkline/handlers/toolhost/procgroup"
	"trunkline/handlers/toolhost/tool"
)

const (
	// pipeGrace is how long the rest of the output is waited for when the process has ended and something that left its group still
	// holds a pipe. In all other cases the pipes end with the group, at once.
	pipeGrace = time.Second
	// maxDetail is how many bytes of each stream the detail of a crash shows, the last ones.
	maxDetail = tool.MaxDetail
)

// program is one process to run.
type program struct {
	path    string
	args    []string
	dir     string
	env     []string
	timeout time.Duration
}

// outcome is how a process ended: with an output, or why there is none.
type outcome struct {
	stdout []byte
	kind   tool.DispatchType
	detail string
}

// run starts the process, gives it its stdin, and waits until it and its group are gone.
func (p *program) run(ctx context.Context, stdin []byte) outcome {
	if ctx.Err() != nil {
		return p.ended(ctx)
	}
	// The parent-death signal goes by the thread that started the process: it must not end before the process does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stdout, stderr head
	cmd := &exec.Cmd{Path: p.path, Args: append([]string{p.path}, p.args...), Dir: p.dir, Env: p.env,
		Stdin: bytes.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, WaitDelay: pipeGrace}
	procgroup.Isolate(cmd)
	if err := cmd.Start(); err != nil {
		return launchFailed(err)
	}
	gone := make(chan struct{})
	c := procgroup.Child{Cmd: cmd}
	go func() {
		c.Reap()
		close(gone)
	}()
	if !p.wait(ctx, &c, gone) {
		return p.ended(ctx)
	}
	if code := exitCode(cmd.ProcessState); code != 0 {
		return outcome{kind: tool.Crash, detail: crashDetail(stdout.b, stderr.b, code)}
	}
	return outcome{stdout: stdout.b}
}

// wait returns when the process is gone; false says that it was killed, because its time was up or ctx ended.
func (p *program) wait(ctx context.Context, c *procgroup.Child, gone <-chan struct{}) bool {
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case <-gone:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	c.Kill()
	<-gone
	return false
}

// ended is the outcome of a call that was ended early.
func (p *program) ended(ctx context.Context) outcome {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return outcome{kind: tool.Exception, detail: err.Error()}
	}
	return outcome{kind: tool.Timeout, detail: "timed out after " + p.timeout.String()}
}

// launchFailed tells a program that is not there, or must not be executed, from everything else.
func launchFailed(err error) outcome {
	kind := tool.Exception
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		kind = tool.NotFound
	}
	return outcome{kind: kind, detail: err.Error()}
}

// crashDetail is stdout, a line end and stderr, or the exit code where both are empty (toolhost §4.11).
func crashDetail(stdout, stderr []byte, code int) string {
	text := strings.TrimSpace(tail(stdout) + "\n" + tail(stderr))
	if text == "" {
		return "rc=" + strconv.Itoa(code)
	}
	return text
}

func tail(b []byte) string {
	b = bytes.TrimSpace(b)
	return strings.ToValidUTF8(string(b[max(0, len(b)-maxDetail):]), "\ufffd")
}

// exitCode returns how the process ended: 128 and the number of the signal if one ended it.
func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// head keeps the first MaxOutput bytes of a stream and drops the rest, so that the writer never waits.
type head struct{ b []byte }

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), MaxOutput-len(h.b))]...)
	return len(p), nil
}

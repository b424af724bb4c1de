package selector

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/workerexec"
)

// The causes of a failure that need no number (toolhost §4.8 "Failure").
const (
	whyNotStarted = "policy not started"
	whyTimedOut   = "policy timed out"
	whyInvalid    = "invalid policy output"
)

// stdoutGrace is how long the rest of the output is waited for after the process has ended, where
// something that left its group holds the pipe. Else the pipe ends with the group.
const stdoutGrace = time.Second

// execute runs the policy and returns its stdout, or why it failed; nothing of it is left then.
func (p *Policy) execute(ctx context.Context, payload []byte) (out []byte, why string) {
	file, err := writePrivate(p.tmp, payload)
	if err != nil {
		return nil, whyNotStarted
	}
	defer func() { _ = os.Remove(file) }()
	// The parent-death signal comes when the starting thread ends, which must outlive the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := p.start(file)
	if err != nil {
		return nil, whyNotStarted
	}
	out, why = c.collect(ctx, p.timeout, p.stdoutMax)
	if why == "" && c.code != 0 {
		why = "policy exit_code=" + strconv.Itoa(c.code)
	}
	return out, why
}

// writePrivate writes content to a new file of an unforeseeable name that only this user may read.
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

type child struct {
	*procgroup.Process
	out  *os.File // the read end of its stdout
	code int      // after its end
}

func (p *Policy) start(file string) (*child, error) {
	exe, err := p.executable()
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	// Stdin and stderr are the null device: only stdout is read (toolhost D27).
	attr := &os.ProcAttr{Dir: p.root, Env: p.env, Files: []*os.File{null, w, null}}
	proc, err := p.begin(exe, append(slices.Clone(p.argv), file), attr)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return &child{Process: proc, out: r}, nil
}

var errNotBegun = errors.New("the program did not begin")

// begin starts the process as every worker, with limits where they can be set (toolhost §4.8).
func (p *Policy) begin(exe string, argv []string, attr *os.ProcAttr) (*procgroup.Process, error) {
	if !workerexec.Enabled {
		return procgroup.Start(exe, argv, attr)
	}
	self, err := workerexec.Self()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()   // only read
	attr.Files = append(attr.Files, w) // workerexec.StatusFD
	proc, err := procgroup.Start(self, workerexec.Argv(p.limits, exe, argv), attr)
	_ = w.Close()
	if err != nil {
		return nil, err
	}
	_ = r.SetReadDeadline(time.Now().Add(p.timeout)) // ended later, as any that is late
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		proc.Wait()
		return nil, errNotBegun
	}
	return proc, nil
}

// collect reads the output until the process has ended. why reports if it was ended early.
func (c *child) collect(ctx context.Context, timeout time.Duration, limit int) (out []byte, why string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, c.Kill)
	text := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(c.out, int64(limit)+1))
		if len(b) > limit {
			c.Kill() // a process that closed its stdout may go on, this one must not
		}
		text <- b
	}()
	c.code = c.Wait()
	inTime := stop()
	_ = c.out.SetReadDeadline(time.Now().Add(stdoutGrace))
	out = <-text
	_ = c.out.Close()
	switch {
	case !inTime:
		return out, whyTimedOut
	case len(out) > limit:
		return out, whyInvalid
	}
	return out, ""
}

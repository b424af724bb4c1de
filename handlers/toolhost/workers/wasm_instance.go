package workers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"trunkline/handlers/toolhost/tool"
)

// trapCode is the exit code of a module that ran into a trap: that of a program that was aborted.
const trapCode = 128 + 6

var (
	// errOver ends an instance that wrote more than a reply.
	errOver  = errors.New("the reply is too long")
	errFault = errors.New("cannot run a module")
)

// instance is one call of a module. Its code runs on a goroutine of its own, which may go on after the call was answered: it can be
// interrupted between functions and in loops only, and an operation on the whole memory is neither.
type instance struct {
	out  capped
	errs tail
	err  error         // nil if the code came to its end; valid once done is closed, as out is
	done chan struct{} // closed when the code runs no more
	// parted is set by the first of both to leave, the code or the call.
	parted atomic.Bool
}

func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// run runs the code to its end or until ctx is done, whichever it notices.
func (i *instance) run(ctx context.Context, m *module, aid string, request []byte) {
	defer func() {
		if fault := recover(); fault != nil { // of the runtime's: nobody else is on this goroutine to see it
			i.err = fmt.Errorf("%w: %v", errFault, fault)
		}
		close(i.done)
	}()
	streams := wazero.NewModuleConfig().WithName("").WithArgs(aid).
		WithStdin(bytes.NewReader(request)).WithStdout(&i.out).WithStderr(&i.errs).
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime().
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) })
	ran, err := m.runtime.InstantiateModule(ctx, m.code, streams)
	if ran != nil {
		_ = ran.Close(context.WithoutCancel(ctx)) // its memory; nothing was written to it that could be lost
	}
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	i.err = err
}

// result is what has come of the code. The call is answered for good: what the code does later, if it still runs, is nobody's business.
func (i *instance) result(ctx context.Context, c *tool.Call, stateless bool) tool.Result {
	if !i.ended() || i.err != nil {
		switch cause := context.Cause(ctx); {
		case i.ended() && errors.Is(i.err, errFault):
			return tool.Broken(c.AID, tool.Exception, 0, i.err.Error())
		case errors.Is(cause, errOver):
			return tool.Broken(c.AID, tool.ParseError, 0, i.errs.String())
		case errors.Is(cause, errClosed):
			return tool.Broken(c.AID, tool.Crash, killed, i.errs.String())
		case cause != nil:
			return tool.Broken(c.AID, tool.Timeout, 0, i.errs.String())
		}
		code, trapped := wasmExit(i.err)
		return tool.Broken(c.AID, tool.Crash, code, i.errs.String()+trapped)
	}
	if i.out.over {
		return tool.Broken(c.AID, tool.ParseError, 0, explain("longer than a reply may be", i.out.buf, i.errs.String()))
	}
	r, bad := parseReply(i.out.text(), c, stateless)
	if bad != "" {
		return tool.Broken(c.AID, tool.ParseError, 0, explain(bad, i.out.text(), i.errs.String()))
	}
	return r
}

// wasmExit returns the exit code of an instance, and what a trap has to say.
func wasmExit(err error) (code int, trapped string) {
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) {
		return int(exit.ExitCode()), ""
	}
	return trapCode, err.Error()
}

// sleep is what an instance sleeps with: the deadline wakes it.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// capped keeps what an instance writes to stdout, up to a reply and its end; more ends the instance.
type capped struct {
	buf  []byte
	over bool
	full func()
}

// Write takes all of p or, if that would be too much, nothing.
func (o *capped) Write(p []byte) (int, error) {
	if o.over || len(o.buf)+len(p) > MaxReply+len("\r\n") {
		o.over = true
		o.full()
		return 0, io.ErrShortWrite
	}
	o.buf = append(o.buf, p...)
	return len(p), nil
}

// text returns the reply without its line's end; over is set if that is too long.
func (o *capped) text() []byte {
	text := bytes.TrimSuffix(bytes.TrimSuffix(o.buf, []byte{'\n'}), []byte{'\r'})
	if len(text) > MaxReply {
		return nil // no reply
	}
	return text
}

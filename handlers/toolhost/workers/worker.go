package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/procgroup"
)

// How long what is about to happen anyway is waited for.
const (
	// stopGrace is what a worker has to end after its stdin was closed (toolhost §4.9).
	stopGrace = 2 * time.Second
	// exitGrace is what a worker that closed its stdout has to exit with its own code.
	exitGrace = 500 * time.Millisecond
	// drainGrace bounds emptying an ended process's pipes, which one outside the group may hold.
	drainGrace = 100 * time.Millisecond
	// settleGrace is how long a failed call waits for the code and last words of its killed worker.
	settleGrace = 500 * time.Millisecond
	// lostGrace is how long after SIGKILL a process keeps its place: the kernel may hold it.
	lostGrace = 10 * time.Second
)

// Why a worker ended, for Config.Exited (toolhost §4.12).
const (
	reasonExited      = "exited"
	reasonTimeout     = "timeout"
	reasonOversize    = "oversize"
	reasonGarbage     = "garbage"
	reasonUnsolicited = "unsolicited output"
	reasonMaxRequests = "max_requests"
	reasonIdle        = "idle"
	reasonClosed      = "closed"
	reasonMute        = "closed stdout"
	reasonSwapped     = "program changed"
	reasonProcesses   = "too many processes"
)

// worker is one process with its pipes. It belongs to the pool while it is idle, else to one call.
type worker struct {
	proc *procgroup.Process
	in   *os.File // its stdin
	out  *os.File // its stdout
	// stderr is read by drain alone, into errs.
	stderr *os.File
	errs   tail

	req    []byte // reused between calls
	buf    []byte // what was read of its stdout
	served int
	turn   turn
	watch  *watch   // nil if nothing shows what came first
	prog   *program // what it was started from

	raw       syscall.RawConn // of out
	step      func(fd uintptr) bool
	peek      func(fd uintptr) bool
	peeked    int
	peekErr   error
	interrupt func() // ends a read and a write that are waiting

	// When the worker was busy, for rest.
	askedAt, freeAt, quietAt time.Time
	calls                    int           // since quietAt
	busy                     time.Duration // with them
	idleAt                   time.Time     // for the sweep

	mu       sync.Mutex // guards the process number and the four below
	reaped   bool
	reason   string
	code     int         // 128 and the signal if one ended it
	stopping *time.Timer // ends it if it does not end itself, and then gives up its place

	exited chan struct{} // closed once reaped: code and reason are final
	silent chan struct{} // closed once stderr is read to its end
	gone   chan struct{} // closed once both are, and the pool knows

	// Guarded by the pool's lock.
	retired  bool // taken out of service
	forsaken bool // its place was given up though the process has not ended
	ended    bool // the process has ended
}

// newWorker starts a process for t. It ends soon after ctx, if the system's start does.
func newWorker(ctx context.Context, t *Process) (*worker, error) {
	prog, err := t.program(ctx)
	if err != nil {
		return nil, err
	}
	var p pipes
	if err := p.open(); err != nil {
		prog.close()
		return nil, err
	}
	w, err := startWorker(ctx, t, prog, &p)
	if err != nil {
		prog.close()
		p.close()
		return nil, err
	}
	p.closeTheirs()
	return w, nil
}

// startWorker is the rest of newWorker, which closes what it opened if this fails.
func startWorker(ctx context.Context, t *Process, prog *program, p *pipes) (w *worker, err error) {
	w = &worker{
		in: p.in.w, out: p.out.r, stderr: p.stderr.r, prog: prog, quietAt: time.Now(),
		exited: make(chan struct{}), silent: make(chan struct{}), gone: make(chan struct{}),
	}
	if t.spawner.watches && !t.cfg.Oneshot {
		if w.watch, err = newWatch(p.in.w, p.in.r, p.out.r); err != nil {
			return nil, err
		}
	}
	if w.proc, err = t.launch(ctx, prog, p.theirs()); err != nil {
		w.watch.close()
		return nil, err
	}
	w.raw, _ = w.out.SyscallConn() // a pipe has one
	w.step, w.peek, w.interrupt = w.stepAt, w.peekAt, w.endIO
	return w, nil
}

func (w *worker) drain() {
	defer close(w.silent)
	defer func() { _ = w.stderr.Close() }() // only read
	buf := make([]byte, 1024)
	for {
		n, err := w.stderr.Read(buf)
		_, _ = w.errs.Write(buf[:n]) // never fails
		if err != nil {
			return
		}
	}
}

func (w *worker) await() {
	code := w.proc.Wait()
	w.mu.Lock()
	w.code, w.reaped = code, true
	w.reason = cmp.Or(w.reason, reasonExited)
	if w.stopping != nil {
		w.stopping.Stop()
	}
	w.mu.Unlock()
	close(w.exited)
	// A call may still read what the process wrote before it ended.
	soon := time.Now().Add(drainGrace)
	_ = w.out.SetReadDeadline(soon) // fails only if closed
	_ = w.stderr.SetReadDeadline(soon)
	<-w.silent
}

// kill ends the process and its group; the first reason given is the one that is reported.
func (w *worker) kill(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reaped {
		return
	}
	w.reason = cmp.Or(w.reason, reason)
	w.proc.Kill()
}

// end ends the process: politely, by the end of its input, and by a kill if that does not help; or
// at once. forsake is called if it is there for lostGrace after the kill.
func (w *worker) end(reason string, politely bool, forsake func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reaped {
		return
	}
	w.reason = cmp.Or(w.reason, reason)
	if !politely {
		w.proc.Kill()
		w.stopping = time.AfterFunc(lostGrace, forsake)
		return
	}
	_ = w.in.Close() // closed before: all the same
	w.stopping = time.AfterFunc(stopGrace, func() { w.end(reason, false, forsake) })
}

// settle waits a little for the process to end and for its last words.
func (w *worker) settle(grace time.Duration) (ended bool) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-w.gone:
		return true
	case <-t.C:
	}
	return false
}

// errorDetail returns what an error shows of an ended worker: a broken limit, its stderr.
func (w *worker) errorDetail(most int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason == reasonProcesses {
		return explain(fmt.Sprintf("more than %d processes", most), nil, w.errs.String())
	}
	return w.errs.String()
}

// exitCodeNow returns the code, that of a kill if the process has not ended.
func (w *worker) exitCodeNow() int {
	select {
	case <-w.exited:
		return w.code
	default:
		return procgroup.Killed
	}
}

func (w *worker) endIO() {
	past := time.Unix(1, 0)
	_ = w.out.SetReadDeadline(past) // fails only if closed: then nothing waits
	_ = w.in.SetWriteDeadline(past)
}

// peekAt reads without waiting; peeked and peekErr are what came.
func (w *worker) peekAt(fd uintptr) bool {
	var b [1]byte
	w.peeked, w.peekErr = syscall.Read(int(fd), b[:])
	return true
}

// unfit returns why an idle worker must not be used, "" if it may be: it has ended, or it wrote
// something since its last reply. What is there before a request cannot be its answer.
func (w *worker) unfit() (reason string) {
	select {
	case <-w.exited:
		return reasonExited
	default:
	}
	if w.raw.Read(w.peek) != nil {
		return reasonExited
	}
	return w.seen()
}

// seen returns what a peek means for a worker from which nothing must come: "" if nothing did.
func (w *worker) seen() (reason string) {
	switch {
	case w.peeked > 0:
		return reasonUnsolicited
	case errors.Is(w.peekErr, syscall.EAGAIN):
		return ""
	}
	return reasonExited
}

func (w *worker) fresh() bool { return w.served == 0 }

// proven reports whether the worker is the hashed program, as far as its first reply can show.
func (w *worker) proven() bool { return !w.fresh() || w.prog.same() }

// closePipes closes what is left of the worker's stdin and stdout. It may be called again.
func (w *worker) closePipes() {
	_ = w.in.Close() // nothing is waiting to be written
	_ = w.out.Close()
	w.watch.close()
}

// tailSize is how many last bytes of a worker's stderr are kept (toolhost §4.9). A power of two.
const tailSize = 8 << 10

// tail keeps the last tailSize bytes written to it. The zero tail is empty.
type tail struct {
	mu  sync.Mutex
	buf []byte // allocated with the first byte: most workers write none
	n   uint64 // bytes written since reset
}

// Write keeps the end of p. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf == nil && len(p) > 0 {
		t.buf = make([]byte, tailSize)
	}
	for rest := p[max(len(p)-tailSize, 0):]; len(rest) > 0; {
		k := copy(t.buf[t.n%tailSize:], rest)
		rest, t.n = rest[k:], t.n+uint64(k)
	}
	return len(p), nil
}

// reset forgets what was written, so that no call is shown what a worker wrote during another.
func (t *tail) reset() {
	t.mu.Lock()
	t.n = 0
	t.mu.Unlock()
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n <= tailSize {
		return string(t.buf[:t.n])
	}
	at := t.n % tailSize
	return string(t.buf[at:]) + string(t.buf[:at])
}

// pipe is one pipe; nil ends are not open.
type pipe struct{ r, w *os.File }

func (p *pipe) open() (err error) {
	p.r, p.w, err = os.Pipe()
	return err
}

func (p *pipe) close() {
	_ = p.r.Close() // nil, or its content is not needed
	_ = p.w.Close()
}

type pipes struct{ in, out, stderr pipe }

func (p *pipes) open() error {
	for _, one := range []*pipe{&p.in, &p.out, &p.stderr} {
		if err := one.open(); err != nil {
			p.close()
			return err
		}
	}
	return nil
}

func (p *pipes) close() {
	p.in.close()
	p.out.close()
	p.stderr.close()
}

// theirs are the ends that the process gets, in the order of its descriptors.
func (p *pipes) theirs() []*os.File { return []*os.File{p.in.r, p.out.w, p.stderr.w} }

// closeTheirs leaves them to the process.
func (p *pipes) closeTheirs() {
	for _, f := range p.theirs() {
		_ = f.Close() // the process has its own
	}
}

// ready reports whether a descriptor has what is asked for, an end or an error included.
func ready(fd uintptr, events int16) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: events}}
	n, _ := unix.Poll(p[:], 0)
	return n > 0
}

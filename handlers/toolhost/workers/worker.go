package workers

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// How long what is about to happen anyway is waited for.
const (
	// stopGrace is what a worker has to end after its stdin was closed (toolhost §4.9).
	stopGrace = 2 * time.Second
	// exitGrace is what a worker that closed its stdout has to exit, so that its own code is reported and not that of a kill.
	exitGrace = 500 * time.Millisecond
	// drainGrace is what is left in the pipes of a process that has ended may take: only a process that left the group holds them
	// open longer.
	drainGrace = 100 * time.Millisecond
	// settleGrace is how long a failed call waits for the code and the last words of the worker it killed.
	settleGrace = 500 * time.Millisecond
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
)

// killed is the exit code of a process that SIGKILL ended.
const killed = 128 + int(syscall.SIGKILL)

// worker is one process with its pipes. It belongs to the pool while it is idle, else to one call.
type worker struct {
	proc *os.Process
	in   *os.File // its stdin
	out  *os.File // its stdout
	// stderr is read by drain alone, into errs.
	stderr *os.File
	errs   tail

	req    []byte // reused between calls
	buf    []byte // what was read of its stdout
	extra  bool   // there was something behind the reply
	spoilt bool   // the deadline came with the reply: the pipes are of no more use
	served int
	idleAt time.Time

	raw       syscall.RawConn // of out
	peek      func(fd uintptr) bool
	peeked    int
	peekErr   error
	interrupt func() // ends a read and a write that are waiting

	mu       sync.Mutex // guards the process number and the four below
	reaped   bool
	reason   string
	code     int // 128 and the signal if one ended it
	stopping *time.Timer

	exited chan struct{} // closed once reaped: code and reason are final
	silent chan struct{} // closed once stderr is read to its end
	gone   chan struct{} // closed once both are, and the pool knows

	// Guarded by the pool's lock.
	retired bool // taken out of service
	freed   bool // its place was given up though the process has not ended
	ended   bool // the process has ended
}

// newWorker starts a process for t.
func newWorker(t *Process) (*worker, error) {
	file, err := executable(t.cfg.Command[0], t.cfg.Env)
	if err != nil {
		return nil, err
	}
	if err := checkHash(file, t.cfg.SHA256); err != nil {
		return nil, err
	}
	var p pipes
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	attr := &os.ProcAttr{Dir: t.cfg.Dir, Env: t.cfg.Env, Files: p.theirs[:]}
	proc, err := t.spawner.start(file, t.cfg.Command, attr, t.cfg.Limits)
	if err != nil {
		p.close()
		return nil, err
	}
	for _, f := range p.theirs {
		_ = f.Close() // the process has its own
	}
	w := &worker{
		proc: proc, in: p.ours[0], out: p.ours[1], stderr: p.ours[2],
		exited: make(chan struct{}), silent: make(chan struct{}), gone: make(chan struct{}),
	}
	w.raw, _ = w.out.SyscallConn() // a pipe has one
	w.peek, w.interrupt = w.peekAt, w.endIO
	return w, nil
}

// pipes are the three streams of a process.
type pipes struct {
	ours, theirs [3]*os.File
}

func (p *pipes) open() (err error) {
	if p.theirs[0], p.ours[0], err = os.Pipe(); err != nil {
		return err
	}
	for i := 1; i < len(p.ours); i++ {
		if p.ours[i], p.theirs[i], err = os.Pipe(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipes) close() {
	for i := range p.ours {
		_ = p.ours[i].Close() // nil, or nothing was written
		_ = p.theirs[i].Close()
	}
}

// drain reads stderr to its end.
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

// await waits for the end of the process and closes what it had. It returns once all of that is done.
func (w *worker) await() {
	st := reap(w.proc, &w.mu, &w.reaped)
	w.mu.Lock()
	w.code = exitCode(st)
	if w.reason == "" {
		w.reason = reasonExited
	}
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

// exitCode returns the exit code of toolhost §3.5.
func exitCode(st *os.ProcessState) int {
	if st == nil {
		return killed
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return st.ExitCode()
}

// kill ends the process and its group; the first reason given is the one that is told.
func (w *worker) kill(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reaped {
		return
	}
	if w.reason == "" {
		w.reason = reason
	}
	killGroup(w.proc.Pid)
}

// stop asks the process to end, and ends it if it does not.
func (w *worker) stop(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reaped {
		return
	}
	if w.reason == "" {
		w.reason = reason
	}
	w.stopping = time.AfterFunc(stopGrace, func() { w.kill(reason) })
	_ = w.in.Close() // closed before: all the same
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

// exitCodeNow returns the code, that of a kill if the process has not ended.
func (w *worker) exitCodeNow() int {
	select {
	case <-w.exited:
		return w.code
	default:
		return killed
	}
}

// endIO makes reads and writes that wait return at once.
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

// unfit says why an idle worker must not be used, "" if it may be: it has ended, or it wrote something since its last reply. What is
// there before a request cannot be its answer.
func (w *worker) unfit() (reason string) {
	select {
	case <-w.exited:
		return reasonExited
	default:
	}
	switch err := w.raw.Read(w.peek); {
	case err != nil || w.peeked == 0:
		return reasonExited
	case w.peeked > 0:
		return reasonUnsolicited
	case errors.Is(w.peekErr, syscall.EAGAIN):
		return ""
	}
	return reasonExited
}

// closePipes closes what is left of the worker's stdin and stdout. It may be called again.
func (w *worker) closePipes() {
	_ = w.in.Close() // nothing is waiting to be written
	_ = w.out.Close()
}
